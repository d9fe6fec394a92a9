//! Assertions about mass disconnects.

use core::fmt;
use core::time::Duration;

use stagger_core::text::Compact;
use stagger_core::{Policy, Seed};

use super::report::{Plot, Report, check_claim, time};
use crate::reconnect::{ReconnectFigures, ReconnectScenario};

/// A simulated mass disconnect, with assertions about its figures.
///
/// Displays all figures, the seed, what would mend them, and a plot of the arrivals; an assertion that fails panics
/// with the same text.
#[derive(Clone, Debug)]
pub struct StormTest {
    scenario: ReconnectScenario,
    policy: Policy,
    seed: Seed,
    figures: ReconnectFigures,
}

impl StormTest {
    /// Runs the scenario with this policy and a fixed seed.
    #[must_use]
    pub fn run(scenario: &ReconnectScenario, policy: &Policy) -> Self {
        Self::run_with_seed(scenario, policy, Seed::new(1))
    }

    /// Runs the scenario with this policy and this seed.
    #[must_use]
    pub fn run_with_seed(scenario: &ReconnectScenario, policy: &Policy, seed: Seed) -> Self {
        Self { scenario: *scenario, policy: *policy, seed, figures: scenario.run(policy, seed) }
    }

    /// Returns the figures, for your own assertions.
    #[must_use]
    pub const fn figures(&self) -> &ReconnectFigures {
        &self.figures
    }
}

impl StormTest {
    /// Returns what would mend the figures; `None` if every client is back and no second exceeds the capacity.
    fn remedy(&self) -> Option<String> {
        let ReconnectFigures { clients, connected, gave_up, rate, .. } = self.figures;
        let mut remedies = Vec::new();
        let all_once = Duration::from_secs(Duration::try_from_secs_f64((clients as f64 / rate).ceil()).ok()?.as_secs());
        if self.figures.peak_second() as f64 > rate && self.policy.spread() < all_once {
            let spread = Compact(all_once);
            remedies.push(format!("with a spread of {spread} the first wave is within the capacity on average"));
        }
        if gave_up > 0 {
            remedies.push(format!("{gave_up} clients gave up: more attempts, or unlimited_attempts()"));
        }
        let pending = clients.saturating_sub(connected).saturating_sub(gave_up);
        if pending > 0 {
            remedies.push(format!("{pending} clients were still trying at the end: a longer horizon"));
        }
        if remedies.is_empty() { None } else { Some(remedies.join("; ")) }
    }
}

/// Assertions return `self`, to be chained.
///
/// # Panics
/// Each panics at the line of its call if it fails.
#[allow(clippy::must_use_candidate, reason = "the call makes the assertion")]
impl StormTest {
    /// Asserts that at most `limit` attempts arrive within any 100 ms ([`ReconnectFigures::peak`]).
    #[track_caller]
    pub fn peak_at_most(&self, limit: u64) -> &Self {
        let peak = self.figures.peak();
        check_claim(self, peak <= limit, format_args!("{peak} attempts arrive within 100 ms; the limit is {limit}"))
    }

    /// Asserts that at most `limit` attempts arrive within any second ([`ReconnectFigures::peak_second`]); compare it
    /// with the capacity of the server.
    #[track_caller]
    pub fn peak_second_at_most(&self, limit: u64) -> &Self {
        let peak = self.figures.peak_second();
        check_claim(self, peak <= limit, format_args!("{peak} attempts arrive within one second; the limit is {limit}"))
    }

    /// Asserts that clients make at most `limit` attempts on average ([`ReconnectFigures::attempts_per_client`]); the
    /// minimum is 1.
    #[track_caller]
    pub fn attempts_per_client_at_most(&self, limit: f64) -> &Self {
        let attempts = self.figures.attempts_per_client();
        check_claim(self, attempts <= limit, format_args!("{attempts:.3} attempts per client; the limit is {limit}"))
    }

    /// Asserts that 99 % of all clients reconnect within `limit` of losing their connections
    /// ([`ReconnectFigures::recovered_p99`]).
    #[track_caller]
    pub fn recovered_p99_within(&self, limit: Duration) -> &Self {
        let recovery = self.figures.recovered_p99;
        let what = format!("99 % of the clients recover within {}; the limit is {}", time(recovery), Compact(limit));
        check_claim(self, recovery.is_some_and(|recovery| recovery <= limit), what)
    }

    /// Asserts that all clients are connected at the end: none gives up, and none continues after the horizon.
    #[track_caller]
    pub fn all_clients_recover(&self) -> &Self {
        let ReconnectFigures { clients, connected, .. } = self.figures;
        let what = format!("{} of {clients} clients do not recover", clients - connected);
        check_claim(self, connected == clients, what)
    }
}

impl fmt::Display for StormTest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let figures = &self.figures;
        let best = Duration::try_from_secs_f64(figures.clients as f64 / figures.rate).unwrap_or(Duration::MAX);
        let [p50, p99, all, best] = [figures.recovered_p50, figures.recovered_p99, figures.t100, Some(best)].map(time);
        let down = Duration::from_micros(self.scenario.up_at);
        let down = if down.is_zero() { String::new() } else { format!("; server down for {}", Compact(down)) };
        let scenario = format!("{} clients at once; capacity {} per second{down}", figures.clients, figures.rate);
        let rows = [
            ("scenario", scenario),
            ("peak", format!("{} in 100ms, {} in 1s", figures.peak(), figures.peak_second())),
            ("attempts per client", format!("{:.3}; the minimum is 1", figures.attempts_per_client())),
            ("recovered", format!("half {p50}, 99 % {p99}, all {all}; the minimum is {best}")),
            ("not recovered", (figures.clients - figures.connected).to_string()),
        ];
        let plot = Plot { what: "arrivals", series: &figures.arrivals, capacity: figures.rate };
        Report { policy: &self.policy, seed: self.seed, rows: &rows, remedy: self.remedy(), plot }.fmt(f)
    }
}
