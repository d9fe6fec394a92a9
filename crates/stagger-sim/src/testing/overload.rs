use core::fmt;
use core::time::Duration;

use stagger_core::text::Compact;
use stagger_core::{Policy, Seed};

use super::plot::Plot;
use super::report::{Report, check_claim, time};
use crate::outage::{OutageFigures, OutageScenario, ProcessGuards};

/// An outage under traffic that has happened, under a virtual clock, and what may be claimed of it.
///
/// Printed, it is all figures and a picture of the attempts; a claim that does not hold panics with the same.
///
/// ```
/// use stagger_core::budget::Tokens;
/// use stagger_core::policy;
/// use stagger_sim::outage::{ProcessGuards, OutageScenario};
/// use stagger_sim::testing::OverloadTest;
///
/// let scenario = OutageScenario::builder(700.0).capacity(1_000.0).build()?;
/// let policy = policy!(exponential(ms(100), secs(2)).max_attempts(4));
/// // Without the budget it would never come back.
/// OverloadTest::run(&scenario, &policy, |_| ProcessGuards::none().budget(Tokens::new()))
///     .is_not_metastable()
///     .amplification_at_most(1.1);
/// # Ok::<(), stagger_sim::ScenarioError>(())
/// ```
#[derive(Clone, Debug)]
pub struct OverloadTest {
    scenario: OutageScenario,
    policy: Policy,
    figures: OutageFigures,
}

impl OverloadTest {
    /// The scenario with this policy and these guards in each process, and always the same seed.
    #[must_use]
    pub fn run(scenario: &OutageScenario, policy: &Policy, guards: impl Fn(Seed) -> ProcessGuards) -> Self {
        Self::run_with_seed(scenario, policy, guards, Seed::new(1))
    }

    /// The scenario with this policy, these guards in each process, and a seed of your own.
    #[must_use]
    pub fn run_with_seed(
        scenario: &OutageScenario,
        policy: &Policy,
        guards: impl Fn(Seed) -> ProcessGuards,
        seed: Seed,
    ) -> Self {
        Self { scenario: *scenario, policy: *policy, figures: scenario.run(policy, guards, seed) }
    }

    /// What came of it, for claims of your own.
    #[must_use]
    pub const fn figures(&self) -> &OutageFigures {
        &self.figures
    }
}

/// Each claim gives the overload back, for the next one.
#[allow(clippy::must_use_candidate, reason = "a claim is made by the call")]
impl OverloadTest {
    /// When the outage is over, it is over: requests succeed again before the horizon
    /// ([`OutageFigures::is_metastable`]).
    ///
    /// # Panics
    /// If it does not hold.
    #[track_caller]
    pub fn is_not_metastable(&self) -> &Self {
        let what = "it is metastable: the outage is over, and nothing works";
        check_claim(!self.figures.is_metastable(), what, self);
        self
    }

    /// It is over within this time after the outage ([`OutageFigures::recovery`]).
    ///
    /// # Panics
    /// If it does not hold.
    #[track_caller]
    pub fn recovers_within(&self, limit: Duration) -> &Self {
        let recovery = self.figures.recovery();
        let what = format_args!("it is over after {}: claimed are {}", time(recovery), Compact(limit));
        check_claim(recovery.is_some_and(|recovery| recovery <= limit), what, self);
        self
    }

    /// A request costs at most so many attempts, on average, from the beginning of the outage on
    /// ([`OutageFigures::amplification`]); 1 is the least there can be.
    ///
    /// # Panics
    /// If it does not hold.
    #[track_caller]
    pub fn amplification_at_most(&self, limit: f64) -> &Self {
        let attempts = self.figures.amplification();
        check_claim(attempts <= limit, format_args!("{attempts:.3} attempts per request: claimed are {limit}"), self);
        self
    }

    /// At least this share of the requests succeeds, from the beginning of the outage on ([`OutageFigures::success`]), in 0..=1.
    ///
    /// # Panics
    /// If it does not hold.
    #[track_caller]
    pub fn success_at_least(&self, share: f64) -> &Self {
        let success = self.figures.success_ratio();
        check_claim(success >= share, format_args!("{success:.3} of the requests succeed: claimed are {share}"), self);
        self
    }

    /// At most so many attempts are made in any second, from the beginning of the outage on ([`OutageFigures::peak_second`]).
    ///
    /// # Panics
    /// If it does not hold.
    #[track_caller]
    pub fn peak_second_at_most(&self, limit: u64) -> &Self {
        let peak = self.figures.peak_second();
        check_claim(peak <= limit, format_args!("{peak} attempts are made in a second: claimed are {limit}"), self);
        self
    }
}

impl fmt::Display for OverloadTest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let figures = &self.figures;
        let scenario = format!(
            "{} requests a second from {} processes; the server takes {} a second, and does not from {} to {}",
            figures.rate,
            self.scenario.processes(),
            self.scenario.capacity,
            Compact(figures.outage_start),
            Compact(figures.outage_end)
        );
        let rows = [
            ("scenario", scenario),
            ("attempts per request", format!("{:.3}; 1 is the least", figures.amplification())),
            ("succeeded", format!("{:.1} % of the requests", 100.0 * figures.success_ratio())),
            ("over after", time(figures.recovery())),
            ("peak", format!("{} in 1s", figures.peak_second())),
            ("at the end", format!("{:.1} % as many succeed as come on average", 100.0 * figures.final_goodput())),
        ];
        let plot = Plot { what: "attempts", series: &figures.attempts, capacity: self.scenario.capacity };
        Report { policy: &self.policy, rows: &rows, plot }.fmt(f)
    }
}
