//! Tests of the public API.

#[cfg(test)]
mod suite {
    mod admission;
    mod caller_context;
    mod compile;
    mod drain;
    mod grpc;
    mod hint;
    mod readiness;
    mod replay;
    mod request_headers;
    #[cfg(feature = "reqwest-middleware")]
    mod reqwest;
    mod retry_safety;
    mod servers;
    #[cfg(feature = "service-config")]
    mod service_config;
    mod timing;
    mod tower;
}
