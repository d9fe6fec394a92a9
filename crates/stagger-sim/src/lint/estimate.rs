//! Estimates for a fleet from closed forms, given only where they hold.

use core::time::Duration;

use stagger_core::{Jitter, Policy, schedule::Backoff};

use super::DeploymentContext;

/// The expected behavior of a fleet that loses all its connections at once.
#[derive(Clone, Copy, Debug, PartialEq)]
#[non_exhaustive]
pub struct Estimate {
    /// Lower bound on the time until all clients are back: clients / capacity.
    pub min_recovery_time: Duration,
    /// Mean number of attempts per client; `None` if the closed form does not hold.
    pub attempts_per_client: Option<f64>,
    /// The method of the estimate.
    pub basis: Basis,
}

/// The method of an estimate. More exact methods may be added.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Basis {
    /// A closed-form approximation.
    ClosedForm,
}

/// Estimates the behavior of a fleet; returns `None` unless its size and the capacity are known.
///
/// For full jitter with base `b` and multiplier `m`, without a spread, and a server that is busy for
/// `T = clients / capacity`: `attempts ≈ (ln(2 (m − 1) T / b) − 1) / ln m`. It was within 5 % of exact simulations of
/// 10⁴ to 10⁶ clients, for `m` from 1.5 to 4 and `T` from 20 to 100 s, as long as the cap did not bind: it is given
/// only if the cap is at least 0.6 T, and T at least ten times the base.
#[must_use]
pub fn estimate(policy: &Policy, context: &DeploymentContext) -> Option<Estimate> {
    let window = context.min_recovery_time()?;
    Some(Estimate {
        min_recovery_time: window,
        attempts_per_client: attempts_per_client(policy, window),
        basis: Basis::ClosedForm,
    })
}

fn attempts_per_client(policy: &Policy, window: Duration) -> Option<f64> {
    let Backoff::Exponential { base, multiplier } = *policy.backoff() else { return None };
    let caps = policy.cap().is_some_and(|cap| cap.as_secs_f64() < 0.6 * window.as_secs_f64());
    let holds = policy.jitter() == Jitter::Full
        && policy.floor().is_zero()
        && policy.spread().is_zero()
        && (1.5..=4.0).contains(&multiplier)
        && !caps
        && window >= base.saturating_mul(10);
    let ratio = 2.0 * (multiplier - 1.0) * window.as_secs_f64() / base.as_secs_f64();
    holds.then(|| (ratio.ln() - 1.0) / multiplier.ln())
}

#[cfg(test)]
mod tests {
    use core::num::NonZeroU64;

    use super::*;
    use crate::lint::Rate;

    fn attempts(policy: &str, window: u64) -> Option<f64> {
        let fleet = DeploymentContext::default()
            .clients(NonZeroU64::new(window * 1_000).unwrap())
            .capacity(Rate::per_second(1_000.0).unwrap());
        estimate(&policy.parse().unwrap(), &fleet).unwrap().attempts_per_client
    }

    /// Compares with figures of independent, exact simulations of the model.
    #[test]
    fn the_closed_form_is_close_to_exact_simulations() {
        for (policy, window, exact) in [
            ("exponential base=500ms cap=30s", 20, 4.843),
            ("exponential base=500ms cap=30s", 50, 6.268),
            ("exponential base=500ms cap=120s", 100, 7.201),
            ("exponential base=500ms cap=30s multiplier=4", 20, 3.354),
            ("exponential base=500ms cap=30s multiplier=1.5", 20, 6.596),
            ("exponential base=500ms cap=30s multiplier=1.5", 50, 8.871),
        ] {
            let got = attempts(policy, window).unwrap();
            assert!((got / exact - 1.0).abs() < 0.04, "{policy}, {window} s: {got}, expected {exact}");
        }
    }

    #[test]
    fn no_estimate_is_given_where_the_closed_form_does_not_hold() {
        for (policy, window) in [
            ("exponential base=500ms cap=30s", 100),
            ("exponential base=500ms cap=30s jitter=equal", 20),
            ("exponential base=500ms cap=30s spread=20s", 20),
            ("exponential base=500ms cap=30s floor=100ms", 20),
            ("exponential base=5s cap=30s", 20),
            ("constant base=1s", 20),
        ] {
            assert_eq!(attempts(policy, window), None, "{policy}");
        }
    }

    #[test]
    fn no_estimate_is_given_without_size_and_capacity() {
        assert_eq!(estimate(&Policy::DEFAULT, &DeploymentContext::default()), None);
    }
}
