//! The conformance table of the field, as far as it states a delay or a count: through the profile of the system where
//! it has one, else through the native backoffs and jitters. Each test has the id of its row; where stagger deliberately does
//! something else, the test asserts that and says why.
//!
//! Rows left out:
//!
//! - XB-09, PL-29: about building another library's objects; the tests of the policy's faults cover what stagger has.
//! - TN-35 to TN-37, TN-43 to TN-47, PL-25, PL-27, FG-13, FG-15, R4-09, AW-07, AW-27: counts of calls, which take a driver;
//!   they are in `stagger`'s tests.
//! - TN-11: a negative step cannot be written down. TN-15, TN-29: sums and choices as combinators are not native.
//! - PL-11, PL-13, PL-15: the curve of Polly's exponential jitter is tested where it is written, in `profile/polly.rs`.
//! - Budgets and throttles: AW-05 to AW-21 (their quotas), AW-31, AW-33, GR-03, GR-05, GR-19, GR-21, FG-21, FG-27, FG-29,
//!   BD; in `budgets`. Breakers: PL-31 to PL-35, R4-11 to R4-15, FG-17, FG-35; in `breaker`. GR-13: `hedging`.
//! - PL-37, PL-39, FG-19, FG-23 to FG-25, FG-31, FG-33, FG-37, NF: other policies, limiters and reports.
//! - AW-23, AW-25, AW-29: the send rate that adapts, which stagger has not; a budget bounds retries, and never delays a call.
//! - CK: most of it is the package and not its numbers, and is tested in `stagger`. GR-07, GR-11, GR-15, GR-17, FG-39, HT:
//!   HTTP and gRPC, in `stagger-http`.

mod across;
mod aws;
mod cenkalti;
mod failsafe;
mod grpc;
mod polly;
mod resilience4j;
mod series;
mod tenacity;
