use core::time::Duration;

use stagger_core::Policy;
use stagger_core::schedule::Backoff;
use stagger_core::text::Compact;

use super::fleet::SPREAD_TOO_SHORT;
use super::knocking::KNOCKING;
use crate::analysis::{PolicyAnalysis, brief, round_up, thousands};
use crate::change::{Change, delays, duration, value};
use crate::context::{DeploymentContext, Purpose};
use crate::rule::{Diagnosis, Rule, Severity};

pub(crate) static CEILING_BELOW_SPREAD: Rule = Rule {
    code: "S024",
    name: "ceiling-below-spread",
    severity: Severity::Warning,
    title: "the retries of the first wave follow too soon",
    rationale: "after a spread, a failure is evidence that every client fails; retries within the spread add up to a \
                multiple of the first wave that the spread was made for",
    details: "Applies to long-lived connections and to fleets of known size if, while the server is still down, \
              attempts arrive at more than three times the rate of the first wave (or of the capacity, if it is \
              known and higher): clients come back evenly over the spread (without one, over the interval of the \
              first delay), and each retries until the last of them has come. With full jitter, a base of the \
              spread's length gives 2.3 times the rate, half of it 2.9, a quarter 3.8, and a twentieth 5.9 (cap a \
              minute or more); so the base should be of the size of the spread, and at least half of it. Does not \
              apply to calls whose callers wait, nor to a first wave that is too short, which S004 reports.",
    check: ceiling_below_spread,
};

/// The multiple of the first wave, or of the capacity, above which the rule applies.
const TIMES: f64 = 3.0;

fn ceiling_below_spread(analysis: &PolicyAnalysis<'_>) -> Option<Diagnosis> {
    let (known, policy) = (analysis.context, analysis.policy);
    let window = known.min_recovery_time();
    let kept_up = known.purpose == Some(Purpose::Reconnecting) && !policy.spread().is_zero();
    let of_a_fleet = window.is_some() && !known.is_waited_for();
    let width = analysis.first_wave()?;
    let too_short = width.is_zero() || window.is_some_and(|window| width < window);
    if !(kept_up || of_a_fleet) || analysis.has_single_client() || !analysis.retries() || too_short {
        return None;
    }
    let retries = analysis.retries_within(width);
    // Compared with the capacity, a spread longer than needed makes up for it.
    let share = window.map_or(1.0, |window| window.as_secs_f64() / width.as_secs_f64());
    let times = (1.0 + retries) * share;
    if times <= TIMES {
        return None;
    }
    let first = format!("clients come back over {}, and each retries {retries:.1} times in this time", brief(width));
    let fact = match known.capacity.zip(known.clients) {
        Some((capacity, _)) => format!(
            "{first}: while the server is down, up to {} attempts per second arrive, {times:.1} times its capacity",
            thousands((capacity.get() * times) as u64)
        ),
        None => format!("{first}: while the server is down, up to {times:.1} times the rate of the first wave arrives"),
    };
    Some(Diagnosis { changes: of_size(analysis, width), ..Diagnosis::new(fact) })
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

/// Returns whether a fleet of known size with this policy comes back at about the rate of the capacity.
pub(super) fn fits(policy: &Policy, context: &DeploymentContext) -> bool {
    let analysis = PolicyAnalysis::new(policy, context);
    let rules = [&SPREAD_TOO_SHORT, &KNOCKING, &CEILING_BELOW_SPREAD];
    rules.iter().all(|rule| (rule.check)(&analysis).is_none())
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
