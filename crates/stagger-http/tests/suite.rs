//! Tests of the public API.

#[cfg(test)]
mod suite {
    mod admission;
    mod bulkhead;
    mod caller_context;
    mod deadline;
    mod drain;
    mod entry_points;
    mod grpc;
    mod hint;
    mod origins;
    mod parity;
    mod quiet;
    mod readiness;
    #[cfg(feature = "reqwest-middleware")]
    mod redirects;
    #[cfg(feature = "hyper")]
    mod repeated;
    mod replay;
    mod request_headers;
    #[cfg(feature = "reqwest-middleware")]
    mod reqwest;
    mod resume;
    mod retry_safety;
    mod servers;
    #[cfg(feature = "service-config")]
    mod service_config;
    #[cfg(feature = "sse")]
    mod sse;
    mod timing;
    mod tower;
    #[cfg(feature = "tracing")]
    mod traced;
    mod wrappings;
}
