//! The conformance table of other libraries, as far as it states a delay or a count: tested with the profile of the
//! library if there is one, otherwise with the native backoffs and jitters. Each test has the id of its row. Where
//! stagger deliberately differs, the test asserts the difference and says why.
//!
//! Rows left out:
//!
//! - XB-09, PL-29: validation of another library's objects; the tests of policy problems cover what stagger has.
//! - TN-35 to TN-37, TN-43 to TN-47, PL-25, PL-27, FG-13, FG-15, R4-09, AW-07, AW-27: counts of calls, which need a
//!   driver; tested in `stagger`.
//! - TN-11: a negative step cannot be represented. TN-15, TN-29: there are no combinators for sums and choices.
//! - PL-11, PL-13, PL-15: the curve of Polly's exponential jitter is tested next to its code, in `profile/polly.rs`.
//! - Budgets and throttles: AW-05 to AW-21 (their quotas), AW-31, AW-33, GR-03, GR-05, GR-19, GR-21, FG-21, FG-27,
//!   FG-29, BD; in `budgets`. Breakers: PL-31 to PL-35, R4-11 to R4-15, FG-17, FG-35; in `breaker`. GR-13: `hedging`.
//! - PL-37, PL-39, FG-19, FG-23 to FG-25, FG-31, FG-33, FG-37, NF: other policies, limiters and reports.
//! - AW-23, AW-25, AW-29: adaptive send rate, which stagger does not have; a budget limits retries and never delays a
//!   call.
//! - CK: most rows are about the package rather than its numbers; tested in `stagger`. GR-07, GR-11, GR-15, GR-17,
//!   FG-39, HT: HTTP and gRPC, in `stagger-http`.

mod across;
mod libraries;
mod polly;
mod series;
mod tenacity;
