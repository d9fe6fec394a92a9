//! Assertions about systems of services.

use core::fmt;
use core::time::Duration;

use stagger_core::Seed;
use stagger_core::text::Compact;

use super::report::{check_claim, time};
use crate::system::{System, SystemError, SystemFigures, Trigger};

/// A simulated system of services, with assertions about its figures.
///
/// Displays the figures of every service and edge; an assertion that fails panics with the same text.
///
/// ```
/// use core::time::Duration;
/// use stagger_core::policy;
/// use stagger_sim::system::{Edge, Service, System, Trigger};
/// use stagger_sim::testing::SystemTest;
///
/// let system = System::builder(100.0)
///     .service(Service::new("server").service_time(Duration::from_millis(5)).backlog(600))
///     .edge(Edge::from_users("server").policy(policy!(zero().max_attempts(2))))
///     .build()?;
/// SystemTest::recovers_from(&system, Trigger::stall().lasting(Duration::from_secs(1)))?
///     .within(Duration::from_secs(5))
///     .amplification_at_most(1.1);
/// # Ok::<(), stagger_sim::system::SystemError>(())
/// ```
#[derive(Clone, Debug)]
pub struct SystemTest {
    system: System,
    seed: Seed,
    figures: SystemFigures,
}

impl SystemTest {
    /// Runs the system with its own triggers and a fixed seed, [until it is decided](System::run_until_decided).
    #[must_use]
    pub fn run(system: &System) -> Self {
        Self::run_with_seed(system, Seed::new(1))
    }

    /// Runs the system with its own triggers and this seed.
    #[must_use]
    pub fn run_with_seed(system: &System, seed: Seed) -> Self {
        Self { system: system.clone(), seed, figures: system.run_until_decided(seed) }
    }

    /// Runs the system with this trigger in place of its own, and asserts that it comes back.
    ///
    /// # Errors
    /// [`SystemError`] if the trigger does not fit the system.
    ///
    /// # Panics
    /// Panics at the line of the call if the system is down at the horizon.
    #[track_caller]
    pub fn recovers_from(system: &System, trigger: Trigger) -> Result<Self, SystemError> {
        let test = Self::run(&system.to_builder().without_triggers().trigger(trigger).build()?);
        let verdict = test.figures.verdict();
        let what = if verdict.is_down() { "is down at the horizon: it " } else { "" };
        check_claim(&test, verdict.is_up(), format_args!("the system {what}{verdict}"));
        Ok(test)
    }

    /// Returns the figures, for your own assertions.
    #[must_use]
    pub const fn figures(&self) -> &SystemFigures {
        &self.figures
    }
}

/// Assertions return `self`, to be chained.
///
/// # Panics
/// Each panics at the line of its call if it fails.
#[allow(clippy::must_use_candidate, reason = "the call makes the assertion")]
impl SystemTest {
    /// Asserts that the system is up for the rest of the simulation within `limit` after the last trigger
    /// ([`SystemFigures::recovery`]).
    #[track_caller]
    pub fn within(&self, limit: Duration) -> &Self {
        let recovery = if self.figures.verdict().is_up() { self.figures.recovery() } else { None };
        let what = format!("recovery takes {}; the limit is {}", time(recovery), Compact(limit));
        check_claim(self, recovery.is_some_and(|recovery| recovery <= limit), what)
    }

    /// Asserts that no edge has more than `limit` attempts per request of the users, from the start of the first
    /// trigger ([`SystemFigures::amplification`]).
    #[track_caller]
    pub fn amplification_at_most(&self, limit: f64) -> &Self {
        let attempts = self.figures.amplification();
        check_claim(self, attempts <= limit, format_args!("{attempts:.3} attempts per request; the limit is {limit}"))
    }

    /// Asserts that at least this share of the requests is served, in 0..=1, from the start of the first trigger
    /// ([`SystemFigures::success_ratio`]).
    #[track_caller]
    pub fn success_at_least(&self, share: f64) -> &Self {
        let success = self.figures.success_ratio();
        check_claim(
            self,
            success >= share,
            format_args!("{success:.3} of the requests are served; the minimum is {share}"),
        )
    }
}

impl fmt::Display for SystemTest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let figures = &self.figures;
        writeln!(f, "  requests per second  {}", self.system.rate())?;
        writeln!(f, "  seed                 {}", self.seed.get())?;
        writeln!(f, "  verdict              {}", figures.verdict())?;
        writeln!(f, "  recovered after      {}", time(figures.recovery()))?;
        writeln!(f, "  served               {:.1} % of the requests", 100.0 * figures.success_ratio())?;
        for (service, of) in self.system.services().iter().zip(&figures.services) {
            let (name, wasted) = (service.name(), 100.0 * of.wasted_ratio());
            writeln!(f, "  service {name}: at most {} attempts at once, {wasted:.1} % of its work wasted", of.peak)?;
        }
        for (nth, edge) in self.system.edges().iter().enumerate() {
            writeln!(f, "  edge to {}: {:.3} attempts per request", edge.to(), figures.attempts_per_request(nth))?;
        }
        Ok(())
    }
}
