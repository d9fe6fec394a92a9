//! Tests against the Go package cenkalti/backoff. Names with a code (`ck_…`) refer to its conformance rows.

#[cfg(test)]
mod suite {
    mod backoffs;
    mod both_modes;
    mod calls;
    mod distribution;
    mod error_texts;
    mod later_versions;
    mod permanent;
    mod support;
    mod tickers;
}
