//! The readers: one file a system.

mod detect;
mod http;

// Objects of a Kubernetes cluster, of it and of what extends it.
mod dapr;
mod gateway_api;
mod istio;
mod kubernetes;
mod linkerd;
mod object;

// What starts processes, jobs and steps again.
mod compose;
mod github;
mod gitlab;
mod step_functions;
mod systemd;

// Libraries of clients, and frameworks.
mod aws;
mod azure;
mod dotnet;
mod grpc;
mod resilience4j;
mod spring_gateway;
mod spring_retry;

// Proxies.
mod envoy;
mod haproxy;
mod nginx;

pub(crate) use detect::read;
pub(crate) use istio::UNLIMITED as ISTIO_UNLIMITED;
