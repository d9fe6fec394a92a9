//! What this crate claims.

#[cfg(test)]
mod suite {
    mod admission;
    mod grpc;
    mod hint;
    mod judging;
    mod leftover;
    mod readiness;
    mod replay;
    #[cfg(feature = "reqwest-middleware")]
    mod reqwest;
    mod server;
    mod servers;
    #[cfg(feature = "service-config")]
    mod service_config;
    mod telling;
    mod timing;
    mod tower;
}
