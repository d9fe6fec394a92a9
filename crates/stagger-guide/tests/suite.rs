//! What the pages of the guide say, held. Where the other crate is to be had, it is asked.

#[cfg(test)]
mod suite {
    mod choosing;
    mod conformance;
    mod contention;
    mod delays;
    mod fleet;
    mod from_backoff;
    mod from_backon;
    mod from_polly;
    mod from_tenacity;
    mod from_tokio_retry;
    mod monitoring;
    mod overload;
    mod websocket;
}
