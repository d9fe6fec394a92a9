use core::time::Duration;

use stagger_core::Policy;

use super::NotSimulable;
use super::law::Law;
use super::step::steps;
use crate::reconnect::{FirstAttempt, ReconnectScenario, RetryAfter};

/// What clients have before them, by the attempt that they wait for.
pub(super) struct Outlook {
    /// The wait before the first attempt.
    pub(super) first: Law,
    /// The delay after each attempt has failed, and from the last one on; `None` where the client gives up.
    pub(super) after: Vec<Option<Law>>,
}

/// Above this limit of attempts there would be too many cohorts.
const MOST_ATTEMPTS: u32 = 256;

/// What arrives in a step is a sum over all steps in which it can have been sent.
const LONGEST_WAY: Duration = Duration::from_secs(10);

/// Delays of retries after this one are taken to be like it. With a multiplier of 1.1 that is 10¹⁰ times the base.
const MOST_RETRIES: u32 = 256;

impl Outlook {
    /// `None` if there is no attempt at all.
    pub(super) fn new(scenario: &ReconnectScenario, policy: &Policy) -> Result<Option<Self>, NotSimulable> {
        let limit = policy.max_attempts().map(|limit| limit.get());
        for (is_unfit, why) in [
            (!policy.has_independent_delays(), NotSimulable::Delays),
            (scenario.retry_after() != RetryAfter::None, NotSimulable::RetryAfter),
            (scenario.one_way().1 > LONGEST_WAY, NotSimulable::Network),
            (limit.is_some_and(|limit| limit > MOST_ATTEMPTS), NotSimulable::Attempts),
        ] {
            if is_unfit {
                return Err(why);
            }
        }
        let by_spread = scenario.first_attempt == FirstAttempt::Immediate || !policy.spread().is_zero();
        let (first, next) = if by_spread {
            (Some(Law::uniform(0.0, steps(policy.spread()))), 1)
        } else {
            (Law::of_retry(policy, 1), 2)
        };
        let Some(first) = first else { return Ok(None) };
        let attempts = limit.unwrap_or_else(|| settled(policy).saturating_sub(next) + 2);
        let mut after: Vec<_> = (next..next + attempts).map(|n| Law::of_retry(policy, n)).collect();
        if let (Some(_), Some(last)) = (limit, after.last_mut()) {
            *last = None;
        }
        Ok(Some(Self { first, after }))
    }
}

/// The first retry that all later ones are like.
fn settled(policy: &Policy) -> u32 {
    let differs = |n: u32| policy.bounds(n) != policy.bounds(n + 1);
    (1..MOST_RETRIES).rev().find(|&n| differs(n)).map_or(1, |n| n + 1)
}
