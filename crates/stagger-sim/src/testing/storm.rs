use core::fmt;
use core::time::Duration;

use stagger_core::text::Compact;
use stagger_core::{Policy, Seed};

use super::plot::Plot;
use super::report::{Report, check_claim, time};
use crate::reconnect::{ReconnectFigures, ReconnectScenario};

/// A mass disconnect that has happened, under a virtual clock, and what may be claimed of it.
///
/// Printed, it is all figures and a picture of the arrivals; a claim that does not hold panics with the same.
#[derive(Clone, Debug)]
pub struct StormTest {
    scenario: ReconnectScenario,
    policy: Policy,
    figures: ReconnectFigures,
}

impl StormTest {
    /// The scenario with this policy, and always the same seed.
    #[must_use]
    pub fn run(scenario: &ReconnectScenario, policy: &Policy) -> Self {
        Self::run_with_seed(scenario, policy, Seed::new(1))
    }

    /// The scenario with this policy and a seed of your own.
    #[must_use]
    pub fn run_with_seed(scenario: &ReconnectScenario, policy: &Policy, seed: Seed) -> Self {
        Self { scenario: *scenario, policy: *policy, figures: scenario.run(policy, seed) }
    }

    /// What came of it, for claims of your own.
    #[must_use]
    pub const fn figures(&self) -> &ReconnectFigures {
        &self.figures
    }
}

/// Each claim gives the storm back, for the next one.
#[allow(clippy::must_use_candidate, reason = "a claim is made by the call")]
impl StormTest {
    /// At most so many attempts arrive in any tenth of a second ([`ReconnectFigures::peak`]).
    ///
    /// # Panics
    /// If it does not hold.
    #[track_caller]
    pub fn peak_at_most(&self, limit: u64) -> &Self {
        let peak = self.figures.peak();
        check_claim(
            peak <= limit,
            format_args!("{peak} attempts arrive in a tenth of a second: claimed are {limit}"),
            self,
        );
        self
    }

    /// At most so many attempts arrive in any second ([`ReconnectFigures::peak_second`]): compare it with what the server takes.
    ///
    /// # Panics
    /// If it does not hold.
    #[track_caller]
    pub fn peak_second_at_most(&self, limit: u64) -> &Self {
        let peak = self.figures.peak_second();
        check_claim(peak <= limit, format_args!("{peak} attempts arrive in a second: claimed are {limit}"), self);
        self
    }

    /// A client makes at most so many attempts, on average ([`ReconnectFigures::attempts_per_client`]); 1 is the least there can be.
    ///
    /// # Panics
    /// If it does not hold.
    #[track_caller]
    pub fn attempts_per_client_at_most(&self, limit: f64) -> &Self {
        let attempts = self.figures.attempts_per_client();
        check_claim(attempts <= limit, format_args!("{attempts:.3} attempts per client: claimed are {limit}"), self);
        self
    }

    /// 99 % of all clients are back within this time from their own loss ([`ReconnectFigures::recovered_p99`]).
    ///
    /// # Panics
    /// If it does not hold.
    #[track_caller]
    pub fn recovered_p99_within(&self, limit: Duration) -> &Self {
        let recovery = self.figures.recovered_p99;
        let what =
            format_args!("99 % of the clients are back after {}: claimed are {}", time(recovery), Compact(limit));
        check_claim(recovery.is_some_and(|recovery| recovery <= limit), what, self);
        self
    }

    /// Every client comes back: none gives up, and none goes on beyond the horizon.
    ///
    /// # Panics
    /// If it does not hold.
    #[track_caller]
    pub fn all_clients_recover(&self) -> &Self {
        let ReconnectFigures { clients, connected, .. } = self.figures;
        check_claim(
            connected == clients,
            format_args!("{} of {clients} clients never come back", clients - connected),
            self,
        );
        self
    }
}

impl fmt::Display for StormTest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let figures = &self.figures;
        let best = Duration::try_from_secs_f64(figures.clients as f64 / figures.rate).unwrap_or(Duration::MAX);
        let down = Duration::from_micros(self.scenario.up_at);
        let down = if down.is_zero() { String::new() } else { format!(", and is down for {}", Compact(down)) };
        let scenario = format!("{} clients at once; the server takes {} a second{down}", figures.clients, figures.rate);
        let rows = [
            ("scenario", scenario),
            ("peak", format!("{} in 100ms, {} in 1s", figures.peak(), figures.peak_second())),
            ("attempts per client", format!("{:.3}; 1 is the least", figures.attempts_per_client())),
            (
                "recovered",
                format!(
                    "half {}, 99 % {}, all {}; {} is the least",
                    time(figures.recovered_p50),
                    time(figures.recovered_p99),
                    time(figures.t100),
                    time(Some(best))
                ),
            ),
            ("never came back", (figures.clients - figures.connected).to_string()),
        ];
        let plot = Plot { what: "arrivals", series: &figures.arrivals, capacity: figures.rate };
        Report { policy: &self.policy, rows: &rows, plot }.fmt(f)
    }
}
