//! What all objects of a Kubernetes cluster have in common.

use super::{dapr, gateway_api, istio, kubernetes, linkerd};
use crate::entry::Entry;
use crate::tree::Node;

/// An object with an API version and a kind.
pub(crate) struct Object<'a> {
    /// Group of the API, without the version; empty for the core group.
    pub(crate) group: &'a str,
    pub(crate) kind: &'a str,
    pub(crate) name: &'a str,
    pub(crate) node: &'a Node,
}

impl<'a> Object<'a> {
    /// Returns the objects of a document: itself, or those of a list.
    pub(crate) fn all_of(document: &'a Node) -> Vec<Self> {
        let Some(object) = Self::of(document) else { return Vec::new() };
        match document.get("items") {
            Some(items) if object.kind.ends_with("List") => items.items().iter().filter_map(Self::of).collect(),
            _ => vec![object],
        }
    }

    fn of(node: &'a Node) -> Option<Self> {
        let version = node.get("apiVersion")?.text()?;
        let kind = node.get("kind")?.text()?;
        let metadata = |name| node.text_at(&["metadata", name]);
        let name = metadata("name").or(metadata("generateName")).unwrap_or_default();
        // The core group has a version alone.
        let (group, _) = version.split_once('/').unwrap_or_default();
        Some(Self { group, kind, name, node })
    }

    /// Returns `Kind/name`.
    pub(crate) fn path(&self) -> String {
        format!("{}/{}", self.kind, self.name)
    }
}

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
