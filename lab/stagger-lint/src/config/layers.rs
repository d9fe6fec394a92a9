use core::time::Duration;

use stagger_config::{Entry, EntryKind, Format, Limit};
use stagger_core::text::Compact;

use super::circumstances::overall;
use super::draft::{Draft, does};
use super::file::ConfigFile;
use crate::FileFinding;
use crate::rules::config::{LAYERS_INVERT, LAYERS_OF_FILES};

/// What makes calls, from the users inward: a proxy at the edge, then the application with its workflow or library,
/// then the mesh that its calls go through.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Layer {
    Edge,
    Workflow,
    Library,
    Mesh,
}

impl Layer {
    const fn of(format: Format) -> Option<Self> {
        Some(match format {
            Format::Envoy | Format::EnvoyGateway | Format::GatewayApi | Format::Nginx | Format::Haproxy => Self::Edge,
            Format::StepFunctions => Self::Workflow,
            Format::Grpc | Format::Resilience4j | Format::DotNet | Format::ServiceBus => Self::Library,
            Format::Istio | Format::Linkerd | Format::Dapr => Self::Mesh,
            _ => return None,
        })
    }

    const fn name(self) -> &'static str {
        match self {
            Self::Edge => "edge",
            Self::Workflow => "workflow",
            Self::Library => "library",
            Self::Mesh => "mesh",
        }
    }
}

/// The retried call of a layer with the most attempts.
struct Call<'a> {
    layer: Layer,
    file: usize,
    entry: &'a Entry,
    attempts: f64,
}

/// Checks files as layers of one path, from the users inward: proxies at the edge, workflows, libraries, meshes. Files
/// do not say what calls what, so of each layer the call with the most attempts counts. Returns the findings with the
/// position of their file.
#[must_use]
pub fn check_layers(files: &[ConfigFile]) -> Vec<(usize, FileFinding)> {
    let layers = [Layer::Edge, Layer::Workflow, Layer::Library, Layer::Mesh];
    let calls: Vec<_> = layers.into_iter().filter_map(|layer| strongest(files, layer)).collect();
    let [_, .., inner] = &calls[..] else { return Vec::new() };
    let product: f64 = calls.iter().map(|call| call.attempts).product();
    let each = calls.iter().map(|call| {
        let (name, line) = (&files[call.file].name(), call.entry.span.start.line);
        format!("{}: {} ({}, {name}:{line})", call.layer.name(), does(call.entry), call.entry.path)
    });
    let names: Vec<_> = calls.iter().map(|call| call.layer.name()).collect();
    let assumed = format!("taken for layers of one path, from the users inward: {}", names.join(", "));
    let times = if product.is_finite() { format!("{product} times") } else { "without limit".to_owned() };
    let found = Draft::new(&LAYERS_OF_FILES, &inner.entry.path, inner.entry.span)
        .fact(assumed)
        .facts(each)
        .fact(format!("a server that fails receives each call {times}"))
        .advise(
            "retry in one of these layers, best in the outermost that knows what may be repeated; or limit the others \
             by a budget",
        )
        .finding();
    let mut findings = Vec::new();
    if let Some(found) = found {
        findings.push((inner.file, found));
    }
    for pair in calls.windows(2) {
        if let Some(found) = inverted(&pair[0], &pair[1]) {
            findings.push((pair[1].file, found));
        }
    }
    findings
}

fn strongest(files: &[ConfigFile], layer: Layer) -> Option<Call<'_>> {
    let mut strongest: Option<Call<'_>> = None;
    for (file, config) in files.iter().enumerate() {
        for entry in &config.entries {
            let is_call = matches!(entry.kind, EntryKind::Call | EntryKind::Step);
            if !is_call || Layer::of(entry.format) != Some(layer) {
                continue;
            }
            let attempts = match entry.settings.attempts.map(|attempts| attempts.value) {
                Some(Limit::At(attempts)) => f64::from(attempts),
                Some(Limit::None) => f64::INFINITY,
                Some(Limit::Unknown) | None => continue,
            };
            // The first of equal ones counts.
            let most = strongest.as_ref().map_or(1.0, |call| call.attempts);
            if attempts > most {
                strongest = Some(Call { layer, file, entry, attempts });
            }
        }
    }
    strongest
}

fn inverted(outer: &Call<'_>, inner: &Call<'_>) -> Option<FileFinding> {
    let waits = outer.entry.settings.attempt_timeout?.value.at()?;
    let takes = longest(inner.entry)?;
    if waits >= takes {
        return None;
    }
    let draft = Draft::new(&LAYERS_INVERT, &inner.entry.path, inner.entry.span);
    let draft =
        draft.fact(format!("{}: an attempt of {} waits {}", outer.layer.name(), outer.entry.path, Compact(waits)));
    let draft = draft.fact(format!("{}: {}: {} in all", inner.layer.name(), does(inner.entry), Compact(takes)));
    draft
        .advise(
            "shorten the attempts of the inner layer, or make fewer, so that all of them end while the outer one waits",
        )
        .finding()
}

/// Returns the longest time that all attempts of a call take.
fn longest(entry: &Entry) -> Option<Duration> {
    let settings = &entry.settings;
    let all = match (settings.attempts?.value, settings.attempt_timeout.map(|limit| limit.value)) {
        (Limit::At(attempts), Some(Limit::At(each))) => Some(each.saturating_mul(attempts)),
        _ => None,
    };
    [overall(entry), all].into_iter().flatten().min()
}
