use super::catalog::{Incident, Model};
use super::reference::{Reference, Variant};
use stagger_terminal::plot::wrap;

/// The width of the comment, in characters.
const COLUMNS: usize = 100;

/// Returns a file of an incident as `--print` writes it: with a comment that says what it is, and how to run it.
pub(super) fn printed(incident: &Incident, variant: Variant) -> String {
    let mut out = String::new();
    let mut comment = |text: &str| {
        for line in wrap(text, COLUMNS - 2, "  ") {
            out.push_str(&format!("# {line}\n"));
        }
    };
    comment(&format!(
        "{}, {}: the {} of @incident/{}.",
        incident.title,
        incident.date,
        variant.name(),
        incident.name()
    ));
    for source in incident.sources {
        comment(&format!("Source: {source}"));
    }
    comment(&format!("Published: {}.", incident.published));
    comment(&format!("Assumed: {}.", incident.assumed));
    comment(&format!("Not in the model: {}.", incident.left_out));
    if variant == Variant::Cure {
        comment(&format!("Cure: {}.", incident.cure));
    }
    comment(&format!("Run it: {}", command(incident)));
    out.push('\n');
    out + incident.text(variant)
}

/// Returns the command that runs a file.
const fn command(incident: &Incident) -> &'static str {
    match incident.model {
        Model::System => "stagger simulate system FILE",
        Model::Reconnect => "stagger simulate --file FILE",
    }
}

impl Reference {
    /// Returns the file that `--print` writes; `None` if the reference names no single incident.
    pub(super) fn printed(&self) -> Option<String> {
        match self {
            Self::All => None,
            Self::Both(incident) => Some(printed(incident, Variant::Failure)),
            Self::One(incident, variant) => Some(printed(incident, *variant)),
        }
    }
}
