//! Changes that several rules suggest.

use core::time::Duration;

use stagger_core::Policy;
use stagger_core::schedule::Backoff;
use stagger_core::text::Compact;

use crate::analysis::{PolicyAnalysis, round_up};
use crate::change::{Change, Setting, delays, duration, value};

/// A jitter narrower than this part of the delay leaves the first wave as high as without jitter.
const NARROW: u32 = 20;

/// Returns whether clients that draw from this interval retry at the same time.
pub(super) fn is_narrow((least, most): (Duration, Duration)) -> bool {
    least == most || most.saturating_sub(least) < most / NARROW
}

/// Returns the change to full jitter. It halves the mean delay, so the longest delays of a fleet are doubled: otherwise
/// twice as many attempts would arrive.
pub(super) fn full(analysis: &PolicyAnalysis<'_>) -> Change {
    let (policy, full) = (analysis.policy, value("jitter", "full"));
    if analysis.window().is_none() {
        return Change::from([full]);
    }
    match (policy.backoff(), policy.cap()) {
        (Backoff::List(list), _) => Change::from([full, delays(list.iter().map(|delay| delay.saturating_mul(2)))]),
        (Backoff::Exponential { .. } | Backoff::Linear { .. }, Some(cap)) => {
            Change::from([full, base_for_full(policy), duration("cap", cap.saturating_mul(2))])
        }
        (Backoff::Exponential { .. } | Backoff::Linear { .. } | Backoff::Constant { .. }, _) => {
            Change::from([full, base_for_full(policy)])
        }
        _ => Change::from([full]),
    }
}

/// Returns the base with which the mean of the first delay is the same with full jitter.
pub(super) fn base_for_full(policy: &Policy) -> Setting {
    let mean = policy.mean(1).unwrap_or_default().max(policy.base() / 2);
    duration("base", round_up(mean.saturating_mul(2)))
}

/// Returns the changes that set a spread; those after the first also adjust the first retries, which may follow too
/// soon after it.
pub(super) fn spread_over(analysis: &PolicyAnalysis<'_>, spread: Duration) -> Vec<Change> {
    let mut alternatives = vec![vec![]];
    alternatives.extend(delays_of_size(analysis, spread));
    with_spread(spread, &alternatives).into_iter().map(Change::Settings).collect()
}

/// Returns the settings with which a fleet comes back at about the rate of the capacity: over a spread, with delays of
/// its size.
pub(super) fn at_capacity(analysis: &PolicyAnalysis<'_>, window: Duration) -> Vec<Vec<Setting>> {
    let longest = duration("cap", round_up(window.saturating_mul(2)));
    let (base, full) = (duration("base", round_up(window)), value("jitter", "full"));
    let without_spread = match analysis.policy.backoff() {
        Backoff::Exponential { .. } | Backoff::Linear { .. } => vec![vec![base, longest, full]],
        _ => delays_of_size(analysis, window),
    };
    [with_spread(window, &without_spread), without_spread].concat()
}

fn with_spread(spread: Duration, alternatives: &[Vec<Setting>]) -> Vec<Vec<Setting>> {
    let spread = duration("spread", round_up(spread));
    alternatives.iter().map(|settings| [vec![spread.clone()], settings.clone()].concat()).collect()
}

/// Returns the settings that make the first delays of the size of the spread, the best first.
pub(super) fn delays_of_size(analysis: &PolicyAnalysis<'_>, spread: Duration) -> Vec<Vec<Setting>> {
    let policy = analysis.policy;
    let size = round_up(spread);
    let (base, full) = (duration("base", size), value("jitter", "full"));
    match policy.backoff() {
        Backoff::List(list) => {
            let mut longer: Vec<Duration> = list.iter().map(|delay| delay.max(size)).collect();
            longer.dedup();
            let longer = delays(longer.into_iter());
            vec![vec![longer.clone()], vec![longer, full]]
        }
        Backoff::Uniform { .. } => {
            vec![vec![value("range", format_args!("0s..{}", Compact(size.saturating_mul(2))))]]
        }
        Backoff::Exponential { .. } | Backoff::Linear { .. } => {
            let longer_cap = round_up(spread.saturating_mul(2));
            let cap = duration("cap", policy.cap().unwrap_or_default().max(longer_cap));
            let with_cap = vec![vec![base.clone(), cap.clone()], vec![base.clone(), cap, full]];
            match policy.cap() {
                // A cap as short as the base would stop the growth.
                Some(cap) if cap < longer_cap => with_cap,
                _ => [vec![vec![base]], with_cap].concat(),
            }
        }
        Backoff::Constant { .. } => {
            vec![vec![base.clone()], vec![base, full.clone()], vec![duration("base", size.saturating_mul(2)), full]]
        }
        _ => Vec::new(),
    }
}
