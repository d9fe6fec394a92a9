//! What a fleet will do, from closed forms: at once, and only where they hold.

use core::time::Duration;

use stagger_core::{Jitter, Policy, schedule::Backoff};

use super::Circumstances;

/// What a fleet that loses all of its connections at once will do.
#[derive(Clone, Copy, Debug, PartialEq)]
#[non_exhaustive]
pub struct Estimate {
    /// Nothing can bring all clients back sooner: their number by the capacity.
    pub recovery_at_least: Duration,
    /// How often each client knocks, on average; `None` where the closed form does not hold.
    pub attempts_per_client: Option<f64>,
    /// Where the figures are from.
    pub basis: Basis,
}

/// Where an estimate is from. More exact ones answer in the same form.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Basis {
    /// A formula.
    ClosedForm,
}

/// The estimate for a fleet whose size and capacity are known; `None` without them.
///
/// For full jitter that doubles from `b` (or grows by another `m`), without a spread, before a server that is busy for
/// `T = clients / capacity`: `attempts ≈ (ln(2 (m − 1) T / b) − 1) / ln m`. It was within 5 % of exact simulations of
/// 10⁴ to 10⁶ clients, for `m` from 1.5 to 4 and `T` from 20 to 100 s, as long as the cap did not bind: it is given
/// only where the cap is at least 0.6 T, and T at least ten times the base.
#[must_use]
pub fn estimate(policy: &Policy, circumstances: &Circumstances) -> Option<Estimate> {
    let window = circumstances.window()?;
    Some(Estimate {
        recovery_at_least: window,
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
        let fleet = Circumstances::default()
            .clients(NonZeroU64::new(window * 1_000).unwrap())
            .capacity(Rate::per_second(1_000.0).unwrap());
        estimate(&policy.parse().unwrap(), &fleet).unwrap().attempts_per_client
    }

    /// The exact figures are those of independent simulations of the model.
    #[test]
    fn the_closed_form_is_near_exact_simulations() {
        for (policy, window, exact) in [
            ("exponential base=500ms cap=30s", 20, 4.843),
            ("exponential base=500ms cap=30s", 50, 6.268),
            ("exponential base=500ms cap=120s", 100, 7.201),
            ("exponential base=500ms cap=30s multiplier=4", 20, 3.354),
            ("exponential base=500ms cap=30s multiplier=1.5", 20, 6.596),
            ("exponential base=500ms cap=30s multiplier=1.5", 50, 8.871),
        ] {
            let got = attempts(policy, window).unwrap();
            assert!((got / exact - 1.0).abs() < 0.04, "{policy}, {window} s: {got}, not {exact}");
        }
    }

    #[test]
    fn it_is_silent_where_it_does_not_hold() {
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
    fn without_size_and_capacity_there_is_none() {
        assert_eq!(estimate(&Policy::DEFAULT, &Circumstances::default()), None);
    }
}
