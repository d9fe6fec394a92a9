//! The race of `stagger serve`: two policies in one reconnect scenario.

use std::collections::BTreeMap;

use stagger_core::{Policy, Seed};
use stagger_report::parse::short_name;
use stagger_sim::Progress;
use stagger_sim::reconnect::{ReconnectFigures, ReconnectScenario};
use stagger_sim::storm::StormReport;
use stagger_terminal::output::error::CliError;

use super::args::ScenarioKind;
use super::runs::simulate_with_progress;
use super::scenario::AnyScenario;
use super::settings::{Request, Settings};
use super::strategy::Plan;

/// A mass disconnect that is simulated with several policies and one seed, as `stagger simulate reconnect --compare` does.
#[derive(Debug)]
pub(crate) struct Race {
    plan: Plan,
    scenario: ReconnectScenario,
    seed: u64,
    /// The policies and the settings, as they were written.
    compare: Vec<String>,
    settings: Vec<(String, String)>,
}

impl Race {
    /// Creates a race of these policies, each as it was written and parsed. `settings` are those of the flags of
    /// `stagger simulate`, with the names of the flags.
    pub(crate) fn new(
        policies: &[(String, Policy)],
        settings: &[(String, String)],
        seed: u64,
    ) -> Result<Self, CliError> {
        let mut given = Settings::default();
        for (name, text) in settings {
            given.set(name, text, name);
        }
        let request = Request {
            kind: ScenarioKind::Reconnect,
            settings: given,
            compare: Vec::new(),
            own_guards: BTreeMap::new(),
            sweep: Vec::new(),
            seed,
            seeds: 1,
            assert: Vec::new(),
        };
        let named: Vec<_> = policies.iter().map(|(text, policy)| (short_name(text.trim()), *policy)).collect();
        let plan = Plan::of_policies(&request, &named)?;
        let [AnyScenario::Reconnect(scenario, _)] = plan.scenarios[..] else {
            return Err(CliError::usage("guards cannot race; remove them"));
        };
        let compare = policies.iter().map(|(text, _)| text.trim().to_owned()).collect();
        Ok(Self { scenario, plan, seed, compare, settings: settings.to_vec() })
    }

    /// Returns the scenario.
    pub(crate) const fn scenario(&self) -> &ReconnectScenario {
        &self.scenario
    }

    /// Runs all policies. Returns `None` if the progress was cancelled before all were done.
    pub(crate) fn run(&self, progress: &Progress) -> Result<Option<StormReport>, CliError> {
        let (storm, runs) = simulate_with_progress(&self.plan, &[Seed::new(self.seed)], progress)?;
        if runs.finished == runs.planned { Ok(Some(storm)) } else { Ok(None) }
    }

    /// Runs one of the policies again, and records what the first `clients` clients do. Returns `None` if the progress
    /// was cancelled.
    pub(crate) fn sampled(&self, nth: usize, clients: u32, progress: &Progress) -> Option<ReconnectFigures> {
        let strategy = self.plan.strategies.get(nth)?;
        self.scenario.with_sample(clients).run_with_progress(&strategy.policy, Seed::new(self.seed), progress)
    }

    /// Returns the command line that computes the same figures.
    pub(crate) fn command(&self) -> String {
        let mut words = ["stagger", "simulate", "reconnect"].map(str::to_owned).to_vec();
        for policy in &self.compare {
            words.extend(["--compare".to_owned(), policy.clone()]);
        }
        for (name, text) in &self.settings {
            words.extend([format!("--{name}"), text.clone()]);
        }
        words.extend(["--seed".to_owned(), self.seed.to_string()]);
        // Fails only for NUL bytes, which no policy and no setting contains.
        shlex::try_join(words.iter().map(String::as_str)).unwrap_or_default()
    }
}
