//! The conformance table of the field, as far as it states a delay or a count: through the profile of the system where
//! it has one, else through the native backoffs and jitters. Each test has the id of its row; where stagger deliberately does something else, the test asserts that and says why.
//!
//! Rows left out:
//!
//! - XB-09, PL-29, FG-13, R4-09, TN-29, TN-35, TN-37, TN-43, TN-45, TN-47, PL-25, PL-27, AW-07, AW-27: they are
//!   about building another library's objects, classifying results, logs, errors or cancellation, which are no delays;
//!   the drivers' tests and those of the policy's faults cover what stagger has of them.
//! - TN-11: a negative step cannot be written down. TN-15, TN-29, TN-33: sums, choices and conditions as combinators
//!   are not native. TN-31: a limit that does not count the coming sleep is not native.
//! - PL-11, PL-13, PL-15: the curve of Polly's exponential jitter is tested where it is written, in `profile/polly.rs`.
//! - PL-31 to PL-39, FG-15 to FG-39, R4-11 to R4-15, AW-11, AW-13, AW-21 to AW-25, AW-29 to AW-33, and the quotas in
//!   AW-05, AW-09, AW-15, AW-17: budgets, breakers, hedging and limiters, which are not in this crate.
//! - CK: most of it is the package, not its numbers, and is tested in `stagger`. GR-03 to GR-07 and GR-11 to GR-21, BD,
//!   NF, HT: guards, HTTP and gRPC.

mod across;
mod aws;
mod cenkalti;
mod failsafe;
mod grpc;
mod polly;
mod resilience4j;
mod series;
mod tenacity;
