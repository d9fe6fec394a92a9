use stagger_core::Seed;
use stagger_sim::system::SystemFile;

use super::catalog::{Incident, Model};
use super::outcome::Outcome;
use super::reference::{Reference, Variant};
use crate::simulate::settings::Request;
use crate::simulate::strategy::Plan;
use crate::simulate::{runs, system};
use stagger_report::storm::Interrupt;
use stagger_terminal::output::error::CliError;
use stagger_terminal::output::terminal::Term;
use stagger_terminal::policy_args::PolicyArgs;

/// An incident, simulated without and with its cure.
#[derive(Debug)]
pub(super) struct Comparison {
    pub(super) incident: &'static Incident,
    pub(super) failure: Outcome,
    pub(super) cure: Outcome,
}

/// What the runs of all incidents have in common.
#[derive(Clone, Copy, Debug)]
pub(super) struct Runner<'a> {
    pub(super) seeds: &'a [Seed],
    pub(super) interrupt: &'a Interrupt,
    pub(super) term: &'a Term,
}

impl Runner<'_> {
    /// Runs both files of an incident; returns `None` if it was interrupted.
    pub(super) fn compare(&self, incident: &'static Incident) -> Result<Option<Comparison>, CliError> {
        let run = |variant| match incident.model {
            Model::System => self.system(incident, variant),
            Model::Reconnect => self.reconnect(incident, variant),
        };
        let (failure, cure) = (run(Variant::Failure)?, run(Variant::Cure)?);
        Ok(failure.zip(cure).map(|(failure, cure)| Comparison { incident, failure, cure }))
    }

    fn system(&self, incident: &'static Incident, variant: Variant) -> Result<Option<Outcome>, CliError> {
        let file = system_file(incident, variant)?;
        let name = Reference::One(incident, variant).to_string();
        let document = system::document(name, file.system(), self.seeds, self.interrupt, self.term);
        Ok((document.runs.len() == self.seeds.len()).then(|| Outcome::of_system(&document)))
    }

    fn reconnect(&self, incident: &'static Incident, variant: Variant) -> Result<Option<Outcome>, CliError> {
        let plan = Plan::new(&scenario_request(incident, variant)?, &PolicyArgs::default())?;
        let (storm, count) = runs::simulate(&plan, self.seeds, self.interrupt, self.term)?;
        Ok((count.finished == count.planned).then(|| Outcome::of_reconnect(&storm)))
    }
}

/// Parses the file of a system.
pub(super) fn system_file(incident: &Incident, variant: Variant) -> Result<SystemFile, CliError> {
    SystemFile::parse(incident.text(variant)).map_err(CliError::usage)
}

/// Parses the scenario file of a reconnect.
pub(super) fn scenario_request(incident: &'static Incident, variant: Variant) -> Result<Request, CliError> {
    Request::of_text(incident.text(variant), &Reference::One(incident, variant).to_string())
}
