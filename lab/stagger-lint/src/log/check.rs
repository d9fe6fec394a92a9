use core::f64::consts::TAU;
use core::fmt;
use core::time::Duration;
use std::collections::{BTreeMap, HashMap};

use stagger_core::Policy;
use stagger_core::text::Outside;

use super::read::{Log, LogEntry};
use crate::Finding;
use crate::analysis::{brief, from_to, percent};
use crate::rules::log::{BEYOND_BOUNDS, ENDLESS_RETRIES, EQUAL_DELAYS, POLICY_MISMATCH, SYNCHRONIZED};
use stagger_sim::{GoodnessOfFit, QuantileCurve};

/// Checks measured delays against the rules for logs. Returns the findings, ordered by code.
///
/// The rules that compare delays with a policy apply only if `policy`, the policy they should have been drawn from, is
/// given.
#[must_use]
pub fn check(log: &Log, policy: Option<&Policy>) -> Vec<Finding> {
    let groups = groups(log);
    let mut findings = Vec::new();
    findings.extend(equal_delays(&groups));
    if let Some(policy) = policy {
        findings.extend(beyond_bounds(log, policy));
    }
    findings.extend(synchronized(log));
    findings.extend(endless_retries(log, policy));
    if let Some(policy) = policy {
        findings.extend(policy_mismatch(&groups, policy));
    }
    findings
}

/// Returns what a log is too short for; `None` if there are enough delays to say whether they are equal.
#[must_use]
pub fn too_few(log: &Log) -> Option<TooFew> {
    let comparable = groups(log).values().map(Vec::len).max().unwrap_or_default();
    if comparable < FEWEST { Some(TooFew { delays: log.entries.len(), comparable }) } else { None }
}

/// Why nothing can be said about the jitter of a log.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct TooFew {
    /// Number of delays.
    pub delays: usize,
    /// The most delays before the same retry: only these can be equal for want of jitter.
    pub comparable: usize,
}

impl fmt::Display for TooFew {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("too few to judge: ")?;
        let Self { delays, comparable } = *self;
        match (delays, comparable) {
            (0, _) => f.write_str("no delays")?,
            (1, _) => f.write_str("1 delay")?,
            _ if comparable < delays => write!(f, "{delays} delays, at most {comparable} before the same retry")?,
            _ => write!(f, "{delays} delays")?,
        }
        write!(f, ", and {FEWEST} before the same retry are needed to say whether they are equal")
    }
}

/// The delays before each retry, sorted; under `None` the delays whose retry is unknown.
type Groups = BTreeMap<Option<u32>, Vec<Duration>>;

fn groups(log: &Log) -> Groups {
    let mut groups = Groups::new();
    for entry in &log.entries {
        groups.entry(entry.retry).or_default().push(entry.delay);
    }
    groups.values_mut().for_each(|delays| delays.sort_unstable());
    groups
}

fn before(retry: u32) -> String {
    format!("before retry {retry}")
}

/// Minimum number of delays to conclude anything about jitter, and of clients to conclude anything about phases.
const FEWEST: usize = 8;
/// The share of delays in clusters that indicates missing jitter.
const CLUSTERED: f64 = 0.5;

fn equal_delays(groups: &Groups) -> Option<Finding> {
    let mut facts = Vec::new();
    for (retry, delays) in groups {
        if delays.len() < FEWEST || delays.last() == Some(&Duration::ZERO) {
            continue;
        }
        let (share, most) = clustered(delays);
        if share < CLUSTERED {
            continue;
        }
        let which = match retry {
            Some(retry) => before(*retry),
            None => "all delays".to_owned(),
        };
        let (many, share, most) = (delays.len(), percent(share), brief(most));
        facts.push(format!("{which}: {share} of {many} are equal to others; most often {most}"));
    }
    let advice = "set jitter=full in the policy that produced the delays, and cap before the draw, not after it";
    Finding::with_advice(&EQUAL_DELAYS, facts, advice)
}

const TOLERANCE: Duration = Duration::from_millis(1);
/// Number of retries to consider if the retry is unknown.
const RETRIES: u32 = 64;

fn beyond_bounds(log: &Log, policy: &Policy) -> Option<Finding> {
    let mut known: HashMap<Option<u32>, Option<(Duration, Duration)>> = HashMap::new();
    let mut bounds = |retry: Option<u32>| *known.entry(retry).or_insert_with(|| bounds_of(policy, retry));
    let mut outside: Vec<(&LogEntry, Option<(Duration, Duration)>)> = Vec::new();
    for entry in &log.entries {
        let bounds = bounds(entry.retry);
        match bounds {
            Some((least, most))
                if entry.delay >= least.saturating_sub(TOLERANCE) && entry.delay <= most.saturating_add(TOLERANCE) => {}
            _ => outside.push((entry, bounds)),
        }
    }
    let (first, bounds) = outside.first()?;
    let allowed = match bounds {
        Some(bounds) => from_to(*bounds),
        None => "no such retry".to_owned(),
    };
    let place = match first.retry {
        Some(retry) => format!(" {}", before(retry)),
        None => String::new(),
    };
    let facts = vec![
        format!("{} of {} delays", outside.len(), log.entries.len()),
        format!("line {}: {}{place}; the policy allows {allowed}", first.line, brief(first.delay)),
    ];
    let advice = "compare the running policy with this one, and check for hints of the server";
    Finding::with_advice(&BEYOND_BOUNDS, facts, advice)
}

fn bounds_of(policy: &Policy, retry: Option<u32>) -> Option<(Duration, Duration)> {
    match retry {
        Some(retry) => policy.bounds(retry),
        None => (1..=RETRIES)
            .map_while(|n| policy.bounds(n))
            .reduce(|(least, most), (lo, hi)| (least.min(lo), most.max(hi))),
    }
}

/// The mean resultant length from which on clients count as synchronized, and the significance level.
const IN_PHASE: f64 = 0.7;
const SIGNIFICANCE: f64 = 0.001;

fn synchronized(log: &Log) -> Option<Finding> {
    let mut last: HashMap<&str, (Duration, Duration)> = HashMap::new();
    for entry in &log.entries {
        let (Some(client), Some(time)) = (entry.client.as_deref(), entry.time) else { continue };
        let latest = last.entry(client).or_insert((time, entry.delay));
        if time >= latest.0 {
            *latest = (time, entry.delay);
        }
    }
    let (mut times, mut delays): (Vec<Duration>, Vec<Duration>) = last.into_values().unzip();
    times.sort_unstable();
    delays.sort_unstable();
    let period = *delays.get(delays.len() / 2)?;
    if period.is_zero() {
        return None;
    }
    let (clients, length) = (times.len() as f64, resultant(&times, period));
    if times.len() < FEWEST || length < IN_PHASE || (-clients * length * length).exp() > SIGNIFICANCE {
        return None;
    }
    let mut arrivals: Vec<Duration> = log.entries.iter().filter_map(|entry| entry.time).collect();
    arrivals.sort_unstable();
    let facts = vec![
        format!("{} clients, period {}: mean resultant length of the phases {length:.2}", times.len(), brief(period)),
        format!("the busiest 100 ms contain {} of {} arrivals", busiest(&arrivals), arrivals.len()),
    ];
    Finding::with_advice(&SYNCHRONIZED, facts, "set jitter=full, and a spread before the first retry")
}

/// Number of retries of one call that is too many if no policy sets a limit.
const ENDLESS: u32 = 50;

fn endless_retries(log: &Log, policy: Option<&Policy>) -> Option<Finding> {
    let longest = log.entries.iter().max_by_key(|entry| entry.retry)?;
    let retry = longest.retry?;
    let attempts = match policy {
        Some(policy) => policy.max_attempts(),
        None => None,
    };
    let limit = attempts.map(|attempts| attempts.get() - 1);
    if retry <= limit.unwrap_or(ENDLESS - 1) {
        return None;
    }
    let mut fact = format!("line {}: retry {retry}", longest.line);
    if let Some(client) = &longest.client {
        fact += &format!(" of {}", Outside(client));
    }
    if let Some(limit) = limit {
        fact += &format!("; the policy allows {limit}");
    }
    let advice = "set max-attempts or max-elapsed in the policy that produced them";
    Finding::with_advice(&ENDLESS_RETRIES, vec![fact], advice)
}

/// Minimum number of delays to test a distribution.
const FEWEST_DRAWS: usize = 20;
/// Probability of a false alarm, over all retries together.
const FALSE_ALARM: f64 = 0.001;

fn policy_mismatch(groups: &Groups, policy: &Policy) -> Option<Finding> {
    let mut fits: Vec<(u32, usize, GoodnessOfFit)> = Vec::new();
    for (retry, delays) in groups {
        let Some(retry) = *retry else { continue };
        let Some(bounds) = policy.bounds(retry) else { continue };
        if delays.len() < FEWEST_DRAWS || bounds.0 >= bounds.1 {
            continue;
        }
        let Some(curve) = QuantileCurve::new(|shares| policy.quantiles(retry, shares)) else { continue };
        fits.push((retry, delays.len(), GoodnessOfFit::new(&curve, bounds, delays)));
    }
    // Each fit has two chances of a false alarm: the distance, and the ends.
    let threshold = FALSE_ALARM / (2 * fits.len()).max(1) as f64;
    let fact = |(retry, many, fit): &(u32, usize, GoodnessOfFit)| {
        let (distance, p) = (fit.distance, fit.p_value.min(fit.p_ends));
        format!(
            "before retry {retry}: {many} delays, distance {distance:.2} from the policy's distribution (p {p:.1e})"
        )
    };
    let facts = fits.iter().filter(|(_, _, fit)| fit.is_rejected(threshold)).map(fact).collect();
    let advice = "compare the running policy with this one: base, multiplier, jitter and cap";
    Finding::with_advice(&POLICY_MISMATCH, facts, advice)
}

/// Returns the share of delays that lie in clusters, and the start of the largest cluster. A cluster lies within 0.1 %
/// or 1 ms; it contains at least five delays, a tenth of all delays, and five times as many as an even distribution up
/// to the longest delay would.
fn clustered(sorted: &[Duration]) -> (f64, Duration) {
    let longest = sorted.last().map_or(0.0, Duration::as_secs_f64).max(f64::MIN_POSITIVE);
    let (mut at, mut inside, mut largest) = (0, 0, (0, Duration::ZERO));
    while let Some(first) = sorted.get(at) {
        let width = (*first / 1_000).max(Duration::from_millis(1));
        let many = sorted[at..].partition_point(|delay| *delay <= first.saturating_add(width));
        let evenly = (width.as_secs_f64() / longest).min(0.2) * sorted.len() as f64;
        if many >= 5 && many * 10 >= sorted.len() && many as f64 >= 5.0 * evenly {
            inside += many;
            largest = largest.max((many, *first));
            at += many;
        } else {
            at += 1;
        }
    }
    (inside as f64 / sorted.len().max(1) as f64, largest.1)
}

/// Returns the mean resultant length of the phases of `times`: from 0, uniform over the period, to 1, all equal.
fn resultant(times: &[Duration], period: Duration) -> f64 {
    let phase = |time: &Duration| (time.as_nanos() % period.as_nanos().max(1)) as f64 / period.as_nanos() as f64 * TAU;
    let (sines, cosines) = times.iter().map(phase).fold((0.0, 0.0), |(s, c), x| (s + x.sin(), c + x.cos()));
    f64::hypot(sines, cosines) / times.len().max(1) as f64
}

fn busiest(sorted: &[Duration]) -> usize {
    let within = |at: usize| {
        let end = sorted[at].saturating_add(Duration::from_millis(100));
        sorted[at..].partition_point(|time| *time < end)
    };
    (0..sorted.len()).map(within).max().unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn millis(lengths: impl IntoIterator<Item = u64>) -> Vec<Duration> {
        lengths.into_iter().map(Duration::from_millis).collect()
    }

    #[test]
    fn equal_delays_are_a_cluster_and_spread_delays_are_not() {
        assert_eq!(clustered(&millis([5_000; 8])), (1.0, Duration::from_secs(5)));
        assert!(clustered(&millis((0..100).map(|i| i * 50))).0 <= 0.0);
        let (share, most) = clustered(&millis((0..20).map(|i| i * 50).chain([3_000; 20])));
        assert_eq!((share, most), (0.5, Duration::from_secs(3)));
        assert!(clustered(&[]).0 <= 0.0);
        // Groups of five that a coarse clock produces are not clusters either.
        assert!(clustered(&millis((0..1_000).map(|i| i / 5 * 50))).0 <= 0.0);
        // Short delays are close together without being equal.
        let short = [0, 1_000, 1_500, 2_000, 2_500, 3_000, 4_000, 4_500].map(Duration::from_micros);
        assert!(clustered(&short).0 <= 0.0);
        assert!(clustered(&[Duration::from_millis(5); 8]).0 >= 1.0);
    }

    #[test]
    fn equal_phases_have_a_resultant_length_of_one() {
        let period = Duration::from_secs(5);
        assert!(resultant(&millis((0..50).map(|i| i * 5_000 + 1_234)), period) > 0.999);
        assert!(resultant(&millis((0..50).map(|i| i * 5_100)), period) < 0.001);
    }

    #[test]
    fn the_busiest_100_ms_are_found() {
        assert_eq!(busiest(&millis([0, 50, 99, 100, 500, 501])), 3);
        assert_eq!(busiest(&[]), 0);
    }
}
