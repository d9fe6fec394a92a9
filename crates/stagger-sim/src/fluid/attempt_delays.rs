use core::time::Duration;

use stagger_core::Policy;

use super::NotSimulable;
use super::distribution::Distribution;
use super::step::steps;
use crate::reconnect::{FirstAttempt, ReconnectScenario, RetryAfter};

pub(super) struct AttemptDelays {
    pub(super) first: Distribution,
    /// The delay after each failed attempt; the last entry also applies to all later attempts. `None` if the client
    /// gives up.
    pub(super) after: Vec<Option<Distribution>>,
}

/// Above this limit of attempts, there would be too many cohorts.
const MAX_ATTEMPTS: u32 = 256;

/// Maximum one-way delay: the arrivals of a step are a sum over all steps in which they may have been sent.
const MAX_ONE_WAY: Duration = Duration::from_secs(10);

/// The delays of later retries are assumed to equal that of this one. With a multiplier of 1.1 it is 10¹⁰ times the
/// base.
const MAX_RETRIES: u32 = 256;

impl AttemptDelays {
    /// Creates the distributions; returns `None` if the policy makes no attempt.
    pub(super) fn new(scenario: &ReconnectScenario, policy: &Policy) -> Result<Option<Self>, NotSimulable> {
        let limit = policy.max_attempts().map(|limit| limit.get());
        let reasons = [
            (!policy.has_independent_delays(), NotSimulable::Delays),
            (scenario.retry_after != RetryAfter::None, NotSimulable::RetryAfter),
            (scenario.network.bounds().1 > MAX_ONE_WAY, NotSimulable::Network),
            (limit.is_some_and(|limit| limit > MAX_ATTEMPTS), NotSimulable::Attempts),
        ];
        if let Some((_, reason)) = reasons.into_iter().find(|(applies, _)| *applies) {
            return Err(reason);
        }
        let starts_with_spread = scenario.first_attempt == FirstAttempt::Immediate || !policy.spread().is_zero();
        let (first, next) = if starts_with_spread {
            (Some(Distribution::uniform(0.0, steps(policy.spread()))), 1)
        } else {
            (Distribution::for_retry(policy, 1), 2)
        };
        let Some(first) = first else { return Ok(None) };
        // A limit counts the loss that takes the first delay.
        let attempts = match limit {
            Some(limit) => limit + 1 - next,
            None => first_stationary_retry(policy).saturating_sub(next) + 2,
        };
        if attempts == 0 {
            return Ok(None);
        }
        let mut after: Vec<_> = (next..next + attempts).map(|n| Distribution::for_retry(policy, n)).collect();
        if let (Some(_), Some(last)) = (limit, after.last_mut()) {
            *last = None;
        }
        Ok(Some(Self { first, after }))
    }
}

/// Returns the first retry whose delay distribution equals that of all later ones.
fn first_stationary_retry(policy: &Policy) -> u32 {
    let differs = |n: u32| policy.bounds(n) != policy.bounds(n + 1);
    (1..MAX_RETRIES).rev().find(|&n| differs(n)).map_or(1, |n| n + 1)
}
