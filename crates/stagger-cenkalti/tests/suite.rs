//! Tests against the Go package cenkalti/backoff. Names with a code (`ck_…`) refer to its conformance rows.

#[cfg(test)]
mod suite {
    mod backoffs;
    mod calls;
    mod permanent;
    mod support;
    mod tickers;
}
