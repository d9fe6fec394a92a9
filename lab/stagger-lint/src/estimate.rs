use core::time::Duration;

use stagger_core::Policy;

use crate::DeploymentContext;
use stagger_sim::fluid;
use stagger_sim::reconnect::ReconnectScenario;

/// The expected behavior of a fleet that loses all its connections at once.
#[derive(Clone, Copy, Debug, PartialEq)]
#[non_exhaustive]
pub struct Estimate {
    /// Lower bound on the time until all clients are back: clients / capacity.
    pub min_recovery_time: Duration,
    /// Mean number of attempts per client; `None` if the fluid model does not apply.
    pub attempts_per_client: Option<f64>,
    /// Share of the clients that give up; `None` if the fluid model does not apply.
    pub gave_up_ratio: Option<f64>,
}

/// Maximum recovery time for which the fluid model is fast enough for a lint.
const MAX_RECOVERY_TIME: Duration = Duration::from_secs(600);

/// Estimates the behavior of a fleet; returns `None` unless its size and the capacity are known.
///
/// The figures are those of [`fluid::run`] for a mass disconnect from a server with a backlog of half a second. They
/// are missing if the policy is [not simulable](fluid::NotSimulable) with it, or if clients / capacity is above ten
/// minutes.
#[must_use]
pub fn estimate(policy: &Policy, context: &DeploymentContext) -> Option<Estimate> {
    let (clients, capacity) = (context.clients?, context.capacity?);
    let min_recovery_time = context.min_recovery_time()?;
    let mut estimate = Estimate { min_recovery_time, attempts_per_client: None, gave_up_ratio: None };
    if min_recovery_time > MAX_RECOVERY_TIME {
        return Some(estimate);
    }
    let fleet = ReconnectScenario::of_fleet(clients.get(), capacity.get(), Duration::ZERO, u64::MAX);
    let Ok(scenario) = fleet.build() else { return Some(estimate) };
    if let Ok(figures) = fluid::run(&scenario, policy) {
        estimate.attempts_per_client = Some(figures.attempts_per_client);
        estimate.gave_up_ratio = Some(figures.gave_up);
    }
    Some(estimate)
}

#[cfg(test)]
mod tests {
    use core::num::NonZeroU64;

    use stagger_core::Seed;
    use stagger_core::text::Rate;

    use super::*;

    fn of_window(policy: &str, window: u64) -> Estimate {
        let fleet = DeploymentContext::default()
            .clients(NonZeroU64::new(window * 1_000).unwrap())
            .capacity(Rate::per_second(1_000.0).unwrap());
        estimate(&policy.parse().unwrap(), &fleet).unwrap()
    }

    #[test]
    fn the_estimate_matches_exact_simulations() {
        for (policy, window) in [
            ("exponential base=500ms cap=30s", 20),
            ("exponential base=500ms cap=30s max-attempts=inf", 20),
            ("exponential base=500ms cap=30s max-attempts=inf multiplier=1.5", 50),
            ("exponential base=500ms cap=30s max-attempts=inf jitter=equal", 20),
            ("exponential base=500ms cap=30s max-attempts=inf spread=5s", 20),
            ("constant base=1s max-attempts=6", 10),
        ] {
            let scenario = ReconnectScenario::builder(window * 1_000).rate(1_000.0).backlog(500).build().unwrap();
            let exact = scenario.run(&policy.parse().unwrap(), Seed::new(1));
            let got = of_window(policy, window);
            let (attempts, gave_up) = (exact.attempts_per_client(), exact.gave_up as f64 / exact.clients as f64);
            assert!((got.attempts_per_client.unwrap() / attempts - 1.0).abs() < 0.01, "{policy}: {got:?}, {attempts}");
            assert!((got.gave_up_ratio.unwrap() - gave_up).abs() < 0.005, "{policy}: {got:?}, {gave_up}");
        }
    }

    #[test]
    fn no_figures_are_given_where_the_fluid_model_does_not_apply() {
        for (policy, window) in [
            ("decorrelated base=500ms cap=30s", 20),
            ("exponential base=500ms cap=30s max-attempts=1000", 20),
            ("exponential base=500ms cap=30s max-elapsed=1s", 20),
            ("exponential base=500ms cap=30s", 601),
        ] {
            let got = of_window(policy, window);
            assert_eq!((got.attempts_per_client, got.gave_up_ratio), (None, None), "{policy}");
            assert_eq!(got.min_recovery_time, Duration::from_secs(window));
        }
    }

    #[test]
    fn no_estimate_is_given_without_size_and_capacity() {
        assert_eq!(estimate(&Policy::DEFAULT, &DeploymentContext::default()), None);
    }
}
