//! Libraries of clients, and frameworks.

pub(crate) mod aws;
pub(crate) mod azure;
pub(crate) mod dotnet;
pub(crate) mod grpc;
pub(crate) mod resilience4j;
pub(crate) mod spring_gateway;
pub(crate) mod spring_retry;
