//! Assertions about outages.

use core::fmt;
use core::time::Duration;

use stagger_core::text::Compact;
use stagger_core::{Policy, Seed};

use super::report::{Plot, Report, check_claim, time};
use crate::outage::{OutageFigures, OutageScenario, ProcessGuards, Verdict};

/// A simulated outage under continuous traffic, with assertions about its figures.
///
/// Displays all figures, the seed, what would mend them, and a plot of the attempts; an assertion that fails panics
/// with the same text.
///
/// ```
/// use stagger_core::budget::Tokens;
/// use stagger_core::policy;
/// use stagger_sim::outage::{ProcessGuards, OutageScenario};
/// use stagger_sim::testing::OverloadTest;
///
/// let scenario = OutageScenario::builder(700.0).capacity(1_000.0).build()?;
/// let policy = policy!(exponential(ms(100), secs(2)).max_attempts(4));
/// // Without the budget, the server would not recover.
/// OverloadTest::run(&scenario, &policy, |_| ProcessGuards::none().budget(Tokens::new()))
///     .is_not_metastable()
///     .amplification_at_most(1.1);
/// # Ok::<(), stagger_sim::ScenarioError>(())
/// ```
#[derive(Clone, Debug)]
pub struct OverloadTest {
    scenario: OutageScenario,
    policy: Policy,
    seed: Seed,
    figures: OutageFigures,
}

impl OverloadTest {
    /// Runs the scenario with this policy, these guards in each process, and a fixed seed.
    #[must_use]
    pub fn run(scenario: &OutageScenario, policy: &Policy, guards: impl Fn(Seed) -> ProcessGuards) -> Self {
        Self::run_with_seed(scenario, policy, guards, Seed::new(1))
    }

    /// Runs the scenario with this policy, these guards in each process, and this seed.
    #[must_use]
    pub fn run_with_seed(
        scenario: &OutageScenario,
        policy: &Policy,
        guards: impl Fn(Seed) -> ProcessGuards,
        seed: Seed,
    ) -> Self {
        Self { scenario: *scenario, policy: *policy, seed, figures: scenario.run(policy, guards, seed) }
    }

    /// Returns the figures, for your own assertions.
    #[must_use]
    pub const fn figures(&self) -> &OutageFigures {
        &self.figures
    }
}

impl OverloadTest {
    /// Returns what would bring the system up; `None` if it is up at the horizon.
    fn remedy(&self) -> Option<String> {
        let (figures, capacity) = (&self.figures, self.scenario.capacity);
        if figures.verdict().is_up() {
            return None;
        }
        let load = figures.final_load() * figures.rate;
        Some(if figures.rate > capacity {
            "the requests alone exceed the capacity: no retry policy can serve them".to_owned()
        } else if figures.horizon < figures.min_horizon() {
            format!("a horizon of at least {}, to see whether it recovers", Compact(figures.min_horizon()))
        } else if load > capacity {
            format!(
                "{load:.0} attempts per second at the end, of which the server can handle {capacity}: \
                 fewer attempts, or a budget (ProcessGuards::budget)"
            )
        } else {
            "a longer horizon, to see whether the queue drains".to_owned()
        })
    }
}

/// Assertions return `self`, to be chained.
///
/// # Panics
/// Each panics at the line of its call if it fails.
#[allow(clippy::must_use_candidate, reason = "the call makes the assertion")]
impl OverloadTest {
    /// Asserts that the system is up at the horizon ([`OutageFigures::is_metastable`]).
    #[track_caller]
    pub fn is_not_metastable(&self) -> &Self {
        let verdict = self.figures.verdict();
        let what = if verdict.is_down() { "is down at the horizon: it " } else { "" };
        check_claim(self, verdict.is_up(), format_args!("the system {what}{verdict}"))
    }

    /// Asserts that the system is never down from the start of the outage ([`Verdict::NeverFell`]).
    #[track_caller]
    pub fn never_falls(&self) -> &Self {
        let verdict = self.figures.verdict();
        let what = if self.figures.fell_at().is_some() { "fell: it " } else { "" };
        check_claim(self, verdict == Verdict::NeverFell, format_args!("the system {what}{verdict}"))
    }

    /// Asserts that the system is down at most once from the start of the outage ([`Verdict::Relapsed`]).
    #[track_caller]
    pub fn does_not_relapse(&self) -> &Self {
        let verdict = self.figures.verdict();
        let may_relapse = matches!(verdict, Verdict::Relapsed { .. } | Verdict::NotDecided);
        check_claim(self, !may_relapse, format_args!("the system {verdict}"))
    }

    /// Asserts that the system is up for the rest of the simulation within `limit` after the outage
    /// ([`OutageFigures::recovery`]).
    #[track_caller]
    pub fn recovers_within(&self, limit: Duration) -> &Self {
        let recovery = self.figures.recovery();
        let what = format!("recovery takes {}; the limit is {}", time(recovery), Compact(limit));
        check_claim(self, recovery.is_some_and(|recovery| recovery <= limit), what)
    }

    /// Asserts that a request makes at most `limit` attempts on average, from the start of the outage
    /// ([`OutageFigures::amplification`]); it is 1 without retries.
    #[track_caller]
    pub fn amplification_at_most(&self, limit: f64) -> &Self {
        let attempts = self.figures.amplification();
        check_claim(self, attempts <= limit, format_args!("{attempts:.3} attempts per request; the limit is {limit}"))
    }

    /// Asserts that at least this share of the requests succeeds, in 0..=1, from the start of the outage
    /// ([`OutageFigures::success_ratio`]).
    #[track_caller]
    pub fn success_at_least(&self, share: f64) -> &Self {
        let success = self.figures.success_ratio();
        let what = format!("{success:.3} of the requests succeed; the minimum is {share}");
        check_claim(self, success >= share, what)
    }

    /// Asserts that at most `limit` attempts are made in any second, from the start of the outage
    /// ([`OutageFigures::peak_second`]).
    #[track_caller]
    pub fn peak_second_at_most(&self, limit: u64) -> &Self {
        let peak = self.figures.peak_second();
        check_claim(self, peak <= limit, format_args!("{peak} attempts are made in one second; the limit is {limit}"))
    }
}

impl fmt::Display for OverloadTest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let figures = &self.figures;
        let scenario = format!(
            "{} requests per second from {} processes; capacity {} per second; outage from {} to {}",
            figures.rate,
            self.scenario.processes(),
            self.scenario.capacity,
            Compact(figures.outage_start),
            Compact(figures.outage_end)
        );
        let rows = [
            ("scenario", scenario),
            ("attempts per request", format!("{:.3}; 1 without retries", figures.amplification())),
            ("succeeded", format!("{:.1} % of the requests", 100.0 * figures.success_ratio())),
            ("verdict", figures.verdict().to_string()),
            ("recovered after", time(figures.recovery())),
            ("peak", format!("{} in 1s", figures.peak_second())),
            ("goodput at the end", format!("{:.1} % of the mean request rate", 100.0 * figures.final_goodput())),
        ];
        let plot = Plot { what: "attempts", series: &figures.attempts, capacity: self.scenario.capacity };
        Report { policy: &self.policy, seed: self.seed, rows: &rows, remedy: self.remedy(), plot }.fmt(f)
    }
}
