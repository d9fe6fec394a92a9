//! Objects of a Kubernetes cluster, of it and of what extends it.

mod cron;
mod dapr;
mod gateway_api;
mod istio;
mod kubernetes;
mod linkerd;
mod object;

use crate::entry::Entry;

pub(crate) use object::Object;

/// Reads an object of whatever kind.
pub(crate) fn read(object: &Object<'_>, entries: &mut Vec<Entry>) {
    match object.group {
        "networking.istio.io" => istio::read(object, entries),
        "gateway.networking.k8s.io" | "gateway.networking.x-k8s.io" => gateway_api::read(object, entries),
        "gateway.envoyproxy.io" => gateway_api::read_envoy_gateway(object, entries),
        "linkerd.io" => linkerd::read_profile(object, entries),
        "dapr.io" => dapr::read(object, entries),
        _ => kubernetes::read(object, entries),
    }
    linkerd::read_annotations(object, entries);
}
