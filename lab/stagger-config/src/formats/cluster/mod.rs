//! Objects of a Kubernetes cluster, of it and of what extends it.

mod dapr;
mod gateway_api;
mod istio;
mod kubernetes;
mod linkerd;
mod object;

pub(crate) use object::{Object, read};
