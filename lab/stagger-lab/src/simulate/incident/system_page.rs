use stagger_sim::Progress;

use super::catalog::{INCIDENTS, Incident, Model};
use super::comparison::system_file;
use super::reference::{Reference, Variant};
use crate::simulate::system;
use stagger_terminal::output::error::CliError;

/// An incident that is a system of services.
#[derive(Clone, Copy, Debug)]
pub(crate) struct SystemIncident(&'static Incident);

/// Returns the incidents that are systems of services.
pub(crate) fn system_incidents() -> impl Iterator<Item = SystemIncident> {
    INCIDENTS.iter().filter(|incident| incident.model == Model::System).map(SystemIncident)
}

impl SystemIncident {
    /// Returns the name, such as `aws-2025-10`.
    pub(crate) fn name(self) -> &'static str {
        self.0.name()
    }

    /// Returns the title.
    pub(crate) const fn title(self) -> &'static str {
        self.0.title
    }

    /// Returns what happened, in two or three sentences.
    pub(crate) const fn happened(self) -> &'static str {
        self.0.happened
    }

    /// Returns the names of its two variants: without and with the cure.
    pub(crate) fn variants() -> [&'static str; 2] {
        Variant::ALL.map(Variant::name)
    }

    /// Simulates a variant, and returns the report of `stagger simulate -o`; `None` if it was cancelled, or there is no such
    /// variant.
    pub(crate) fn page(self, variant: &str, progress: &Progress) -> Result<Option<String>, CliError> {
        let Some(variant) = Variant::ALL.into_iter().find(|known| known.name() == variant) else { return Ok(None) };
        let name = Reference::One(self.0, variant).to_string();
        let command = format!("stagger simulate {name}");
        system::page(name, system_file(self.0, variant)?.system(), &command, progress)
    }
}
