//! Libraries of clients.

pub(crate) mod dotnet;
pub(crate) mod grpc;
pub(crate) mod resilience4j;
