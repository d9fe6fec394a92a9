//! Tests against the Go package cenkalti/backoff. Names with a code (`ck_…`) refer to its conformance rows.

mod backoffs;
mod both_modes;
mod calls;
mod distribution;
mod later_versions;
mod permanent;
mod tickers;
