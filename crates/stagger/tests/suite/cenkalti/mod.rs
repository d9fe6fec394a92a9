//! The Go package cenkalti/backoff, by the numbers of its conformance rows (`ck_…`) and beyond them.

mod backoffs;
mod calls;
mod distribution;
mod later_versions;
mod permanent;
mod ran;
mod tickers;
