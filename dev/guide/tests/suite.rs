//! Checks the statements in the pages of the guide, against the other crate where it is available.

#[cfg(test)]
mod suite {
    mod book;
    mod choosing;
    mod compared;
    mod conformance;
    mod connections;
    mod databases;
    mod delays;
    mod fleet;
    mod from_backoff;
    mod from_backon;
    mod from_go_and_java;
    mod from_polly;
    mod from_reqwest_retry;
    mod from_tenacity;
    mod from_tokio_retry;
    mod from_tower;
    mod javascript;
    mod javascript_calls;
    mod monitoring;
    mod readme;
    mod reference;
}
