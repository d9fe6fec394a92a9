//! Tests of the public API with real processes and servers.

#[cfg(test)]
mod suite {
    #[cfg(all(feature = "cluster", feature = "rustls", feature = "sentinel"))]
    mod addresses;
    mod admission;
    mod breaker;
    mod controls;
    mod failures;
    mod fleet;
    #[cfg(feature = "metrics")]
    mod metrics;
    mod proxy;
    mod quiet;
    mod reasons;
    mod sharing;
    mod storms;
    mod window;
    mod worker;
}
