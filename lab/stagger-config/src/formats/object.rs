//! What all objects of a Kubernetes cluster have in common.

use super::{dapr, envoy, gateway_api, istio, kubernetes, linkerd};
use crate::entry::{Entry, EntryKind, RemarkKind};
use crate::fields::{Field, join};
use crate::format::Format;
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

    /// Returns the group as a person names it.
    fn group(&self) -> &'a str {
        if self.group.is_empty() { "Kubernetes" } else { self.group }
    }

    /// Returns `Kind/name`.
    pub(crate) fn path(&self) -> String {
        format!("{}/{}", self.kind, self.name)
    }
}

/// Reads an object of whatever kind.
pub(crate) fn read(object: &Object<'_>, entries: &mut Vec<Entry>) {
    let before = entries.len();
    match object.group {
        // What is written for Envoy as Envoy has it.
        "networking.istio.io" if object.kind == "EnvoyFilter" => entries.extend(envoy::read(object.node)),
        "networking.istio.io" => istio::read(object, entries),
        "gateway.networking.k8s.io" | "gateway.networking.x-k8s.io" => gateway_api::read(object, entries),
        "gateway.envoyproxy.io" => gateway_api::read_envoy_gateway(object, entries),
        "linkerd.io" if object.kind == "ServiceProfile" => linkerd::read_profile(object, entries),
        "dapr.io" if object.kind == "Resiliency" => dapr::read(object, entries),
        "getambassador.io" => entries.extend(envoy::read(object.node)),
        _ => kubernetes::read(object, entries),
    }
    linkerd::read_annotations(object, entries);
    if entries.len() == before {
        entries.extend(unread(object));
    }
}

/// Names that are listed, at most.
const MOST_NAMES: usize = 10;

/// Kinds whose fields describe other objects, or are data of applications.
const OTHERS: [&str; 3] = ["CustomResourceDefinition", "ConfigMap", "Secret"];

/// Names what an object says about retries that no reader knows.
fn unread(object: &Object<'_>) -> Option<Entry> {
    if OTHERS.contains(&object.kind) {
        return None;
    }
    let mut found = Vec::new();
    for part in ["spec", "template"] {
        if let Some(node) = object.node.get(part) {
            collect(node, &format!("{}.{part}", object.path()), &mut found);
        }
    }
    if let Some(annotations) = object.node.at(&["metadata", "annotations"]) {
        collect(annotations, &format!("{} annotations", object.path()), &mut found);
    }
    let first = found.first()?;
    let mut entry = Entry::new(Format::Kubernetes, EntryKind::Unread, object.path(), first.span());
    let text = format!("is about retries, and is not read: no reader knows {} of {}", object.kind, object.group());
    entry.remarks.extend(found.iter().map(|field| field.remark(RemarkKind::NotRead, &*text)));
    Some(entry)
}

/// Collects the fields whose names are about retries. The parser limits the depth.
fn collect<'a>(node: &'a Node, path: &str, found: &mut Vec<Field<'a>>) {
    const WORDS: [&str; 4] = ["retry", "retries", "next-upstream", "backoff"];
    for member in node.members() {
        if found.len() == MOST_NAMES {
            return;
        }
        let field = Field { path: join(path, &member.key), key_span: member.key_span, node: &member.node };
        let key = member.key.to_ascii_lowercase();
        if WORDS.iter().any(|word| key.contains(word)) {
            found.push(field);
        } else {
            collect(&member.node, &field.path, found);
        }
    }
    for (at, item) in node.items().iter().enumerate() {
        collect(item, &format!("{path}[{at}]"), found);
    }
}
