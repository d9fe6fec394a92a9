//! Tests of the public API with real processes and servers.

#[cfg(test)]
mod suite {
    mod failures;
    mod fleet;
    mod proxy;
    mod sharing;
    mod worker;
}
