//! Changes that several rules suggest.

use core::time::Duration;

use stagger_core::Policy;
use stagger_core::schedule::Backoff;
use stagger_core::text::Compact;

use crate::analysis::{PolicyAnalysis, round_up};
use crate::change::{Change, delays, duration, value};

/// A jitter narrower than this part of the delay leaves the first wave as high as without jitter.
pub(super) const NARROW: u32 = 20;

/// Returns the change to full jitter. It halves the mean delay, so the longest delays of a fleet are doubled: otherwise
/// twice as many attempts would arrive.
pub(super) fn full(analysis: &PolicyAnalysis<'_>) -> Change {
    let (policy, full) = (analysis.policy, value("jitter", "full"));
    let twice = |key, delay: Duration| duration(key, delay.saturating_mul(2));
    match (policy.backoff(), policy.cap()) {
        _ if analysis.window().is_none() => Change::from([full]),
        (Backoff::List(list), _) => Change::from([full, delays(list.iter().map(|delay| delay.saturating_mul(2)))]),
        (Backoff::Exponential { .. } | Backoff::Linear { .. }, Some(cap)) => {
            Change::from([full, base_for_full(policy), twice("cap", cap)])
        }
        (Backoff::Exponential { .. } | Backoff::Linear { .. } | Backoff::Constant { .. }, _) => {
            Change::from([full, base_for_full(policy)])
        }
        _ => Change::from([full]),
    }
}

/// Returns the base with which the mean of the first delay is the same with full jitter.
pub(super) fn base_for_full(policy: &Policy) -> (&'static str, String) {
    let mean = policy.mean(1).unwrap_or_default().max(policy.base() / 2);
    duration("base", round_up(mean.saturating_mul(2)))
}

/// Returns the changes that set a spread; those after the first also adjust the first retries, which may follow too soon
/// after it.
pub(super) fn spread_over(analysis: &PolicyAnalysis<'_>, spread: Duration) -> Vec<Change> {
    let setting = duration("spread", round_up(spread));
    let with_retries = of_size(analysis, spread).into_iter().filter_map(|change| change.and(setting.clone()));
    core::iter::once(Change::from([setting.clone()])).chain(with_retries).collect()
}

/// Returns the changes after which a fleet comes back at about the rate of the capacity: over a spread, with delays of
/// its size.
pub(super) fn at_capacity(analysis: &PolicyAnalysis<'_>, window: Duration) -> Vec<Change> {
    let longest = duration("cap", round_up(window.saturating_mul(2)));
    let (base, full) = (duration("base", round_up(window)), value("jitter", "full"));
    let sized = match analysis.policy.backoff() {
        Backoff::Exponential { .. } | Backoff::Linear { .. } => vec![Change::from([base, longest, full])],
        _ => of_size(analysis, window),
    };
    let spread = duration("spread", round_up(window));
    let spread = |change: &Change| change.clone().and(spread.clone());
    sized.iter().filter_map(spread).chain(sized.iter().cloned()).collect()
}

/// Returns the changes that make the first delays of the size of the spread, the best first.
pub(super) fn of_size(analysis: &PolicyAnalysis<'_>, spread: Duration) -> Vec<Change> {
    let policy = analysis.policy;
    let size = round_up(spread);
    let longer_cap = round_up(spread.saturating_mul(2));
    let keeps_cap = policy.cap().is_none_or(|cap| cap >= longer_cap);
    let cap = policy.cap().unwrap_or_default().max(longer_cap);
    let (base, cap, full) = (duration("base", size), duration("cap", cap), value("jitter", "full"));
    match policy.backoff() {
        Backoff::List(list) => {
            let mut longer: Vec<Duration> = list.iter().map(|delay| delay.max(size)).collect();
            longer.dedup();
            let longer = delays(longer.into_iter());
            vec![Change::from([longer.clone()]), Change::from([longer, full])]
        }
        Backoff::Uniform { .. } => {
            vec![Change::from([value("range", format_args!("0s..{}", Compact(size.saturating_mul(2))))])]
        }
        Backoff::Exponential { .. } | Backoff::Linear { .. } => {
            // A cap as short as the base would stop the growth.
            let kept = keeps_cap.then(|| Change::from([base.clone()]));
            kept.into_iter()
                .chain([Change::from([base.clone(), cap.clone()]), Change::from([base, cap, full])])
                .collect()
        }
        Backoff::Constant { .. } => vec![
            Change::from([base.clone()]),
            Change::from([base, full.clone()]),
            Change::from([duration("base", size.saturating_mul(2)), full]),
        ],
        _ => Vec::new(),
    }
}
