use core::time::Duration;

use stagger_core::text::Compact;
use stagger_core::{Policy, schedule::Backoff};

use super::jitter::{NARROW, base_for_full};
use crate::analysis::{PolicyAnalysis, round_up, scaled, thousands};
use crate::change::{Change, delays, duration, value};
use crate::rule::{Diagnosis, Rule, Severity};

pub(crate) static KNOCKING: Rule = Rule {
    code: "S022",
    name: "knocking-exceeds-capacity",
    severity: Severity::Warning,
    title: "the retries of a long outage exceed the server's capacity",
    rationale: "a server that comes back is met by every client that is still retrying, and fails again under them",
    details: "Applies if clients and capacity are known, the delays have stopped growing (at the cap, at the end of \
              a list, or from the start), and clients / mean delay is more than twice the capacity: this many \
              attempts per second arrive as long as the server is down, and at the moment it returns. A spread does \
              not change it, because it acts on the loss of a connection, not on the retries. The suggestion raises \
              the mean delay to clients / capacity. Does not apply to calls whose callers wait, nor to limits of \
              attempts or time that end the retries before the server could accept each client once.",
    check: knocking,
};

/// The multiple of the capacity above which the rule applies.
const TIMES: f64 = 2.0;

/// Number of retries in which linear backoff reaches the suggested cap.
const STEPS: u32 = 4;

fn knocking(analysis: &PolicyAnalysis<'_>) -> Option<Diagnosis> {
    let (known, policy) = (analysis.context, analysis.policy);
    let (clients, capacity, window) = (known.clients?, known.capacity?, known.min_recovery_time()?);
    if known.is_waited_for() || analysis.has_single_client() || !lasts(analysis, window) {
        return None;
    }
    let mean = policy.mean(analysis.known_retries())?;
    let rate = clients.get() as f64 / mean.as_secs_f64();
    let times = rate / capacity.get();
    if times <= TIMES {
        return None;
    }
    let many = thousands(clients.get());
    let fact = if mean.is_zero() {
        format!("while the server is down, {many} clients retry without a pause")
    } else {
        let rate = thousands(rate as u64);
        format!(
            "while the server is down, {many} clients make about {rate} attempts per second: {times:.1} times its capacity"
        )
    };
    let longer = |delay: Duration| round_up(scaled(delay, window.as_secs_f64() / mean.as_secs_f64()));
    let found = Diagnosis::new(fact);
    // Without jitter, longer delays would only move the waves further apart.
    let found = if is_in_step(analysis) { found.suggest_some(jittered(policy, window)) } else { found };
    Some(match policy.backoff() {
        Backoff::Zero => {
            let text = policy.to_string().replacen("zero", "exponential", 1);
            let cap = round_up(window.saturating_mul(2));
            match text.parse::<Policy>().map(|policy| policy.to_builder().cap(cap).build()) {
                Ok(Ok(policy)) => found.suggest(policy),
                _ => found,
            }
        }
        Backoff::List(list) => {
            let last = list.iter().last()?;
            let others = || list.iter().take(list.len() - 1);
            found.suggest([delays(list.iter().chain([longer(last)]))]).suggest([delays(others().chain([longer(last)]))])
        }
        Backoff::Uniform { max, .. } => {
            found.suggest([value("range", format_args!("0s..{}", Compact(longer(*max).saturating_mul(2))))])
        }
        Backoff::Exponential { .. } | Backoff::Linear { .. } if analysis.grows() => {
            let cap = longer(policy.cap().unwrap_or(analysis.longest()));
            // A step of seconds takes many retries to reach a longer cap.
            let found = match policy.backoff() {
                Backoff::Linear { .. } => found.suggest([duration("step", cap / STEPS), duration("cap", cap)]),
                _ => found,
            };
            found.suggest([duration("cap", cap)]).suggest([duration("base", cap / 10), duration("cap", cap)]).suggest([
                value("jitter", "full"),
                base_for_full(policy),
                duration("cap", round_up(window.saturating_mul(2))),
            ])
        }
        _ => found.suggest([duration("base", longer(policy.base()))]),
    })
}

/// Returns whether clients that fail together retry together: all delays are as good as equal.
fn is_in_step(analysis: &PolicyAnalysis<'_>) -> bool {
    analysis.delays.iter().all(|(least, most)| most.saturating_sub(*least) < *most / NARROW || least == most)
}

/// Returns the change to full jitter with a mean delay of clients / capacity.
fn jittered(policy: &Policy, window: Duration) -> Option<Change> {
    let (full, longest) = (value("jitter", "full"), round_up(window.saturating_mul(2)));
    Some(match policy.backoff() {
        Backoff::List(list) => Change::from([full, delays(list.iter().chain([longest]))]),
        Backoff::Exponential { .. } => Change::from([full, base_for_full(policy), duration("cap", longest)]),
        Backoff::Linear { .. } => Change::from([full, duration("step", longest / STEPS), duration("cap", longest)]),
        Backoff::Constant { .. } => Change::from([full, duration("base", longest)]),
        _ => return None,
    })
}

/// Returns whether the delays reach their final length, and the retries go on until the server could have accepted each
/// client once.
fn lasts(analysis: &PolicyAnalysis<'_>, window: Duration) -> bool {
    let Some((_, last)) = analysis.delays.last() else { return false };
    let is_final = !analysis.grows() || analysis.policy.cap() == Some(*last);
    let ends_at = analysis
        .attempts()
        .map(|attempts| if attempts - 1 > analysis.known_retries() { Duration::MAX } else { waits(analysis) });
    let ends_at = ends_at.into_iter().chain(analysis.policy.max_elapsed()).min();
    is_final && ends_at.is_none_or(|end| end >= window)
}

fn waits(analysis: &PolicyAnalysis<'_>) -> Duration {
    analysis.policy.elapsed_mean(analysis.known_retries()).unwrap_or(Duration::MAX)
}
