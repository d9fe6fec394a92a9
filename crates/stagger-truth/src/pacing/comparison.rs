//! The controllers, and the table of what each does in every scenario.

use stagger::guard::Pacer;

use super::report::Figures;
use super::rivals::{Aimd, Cubic, FirstForm, Gradient, Rival, Throttler, Vegas};
use super::run::{Control, Log, run};
use super::scenarios::Scenario;

/// A controller by its name in the table.
#[derive(Clone, Copy, Debug)]
pub struct Contestant {
    /// Its name.
    pub name: &'static str,
    control: fn() -> Control,
}

fn rival(rival: impl Rival + 'static) -> Control {
    Control::Rival(Box::new(rival))
}

/// Returns a shipped pacer with its default settings.
#[must_use]
pub fn shipped() -> Control {
    Control::Shipped(Box::new(Pacer::new()))
}

/// The shipped pacer, nothing, and the models.
pub const CONTESTANTS: &[Contestant] = &[
    Contestant { name: "pacer", control: shipped },
    Contestant { name: "its first form", control: || rival(FirstForm::default()) },
    Contestant { name: "nothing", control: || Control::None },
    Contestant { name: "AWS adaptive", control: || rival(Cubic::default()) },
    Contestant { name: "AIMD 300, 0.5", control: || rival(Aimd::lance()) },
    Contestant { name: "AIMD 50, 0.9", control: || rival(Aimd::gentle()) },
    Contestant { name: "Gradient2", control: || rival(Gradient::new(200.0)) },
    Contestant { name: "failsafe-go limiter", control: || rival(Vegas::default()) },
    Contestant { name: "failsafe-go throttler", control: || rival(Throttler::default()) },
];

impl Contestant {
    /// Runs a scenario with this seed.
    #[must_use]
    pub fn run(&self, scenario: &Scenario, seed: u64) -> Log {
        run(scenario, self.control, seed)
    }

    /// Returns the mean figures of so many runs, with the seeds from 0.
    #[must_use]
    pub fn figures(&self, scenario: &Scenario, seeds: u64) -> Figures {
        let all: Vec<_> = (0..seeds).map(|seed| Figures::of(scenario, &self.run(scenario, seed))).collect();
        Figures::mean(&all)
    }
}

/// Writes the table of these scenarios, in Markdown: goodput and the share refused in percent, the seconds to recover, and
/// the fairness among processes.
#[must_use]
pub fn table(scenarios: &[Scenario], seeds: u64) -> String {
    let head = CONTESTANTS.iter().map(|contestant| format!(" {} |", contestant.name)).collect::<String>();
    let mut text = format!("| scenario |{head}\n|---|{}", "---|".repeat(CONTESTANTS.len()));
    for scenario in scenarios {
        let cells = CONTESTANTS.iter().map(|contestant| cell(&contestant.figures(scenario, seeds))).collect::<String>();
        text += &format!("\n| {} |{cells}", scenario.name);
    }
    text + "\n"
}

fn cell(figures: &Figures) -> String {
    let recovery = match figures.recovery {
        Some(seconds) if seconds.is_finite() => format!(", {seconds:.0} s"),
        Some(_) => ", never".to_owned(),
        None => String::new(),
    };
    let fairness = figures.fairness.map_or(String::new(), |fairness| format!(", {fairness:.2}"));
    format!(" {:.0} / {:.1}{recovery}{fairness} |", figures.goodput * 100.0, figures.refused * 100.0)
}
