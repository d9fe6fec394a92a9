use super::ceiling;
use crate::analysis::{PolicyAnalysis, brief, percent, thousands};
use crate::estimate;
use crate::rule::{Diagnosis, Rule, Severity};

pub(crate) static SPREAD_TOO_SHORT: Rule = Rule {
    code: "S004",
    name: "spread-below-fleet",
    severity: Severity::Warning,
    title: "the first wave exceeds the server's capacity",
    rationale: "backoff does not act on the first wave: clients that lose their connections together arrive faster \
                than the server accepts them, and every rejected client retries",
    details: "Applies if clients and capacity are known and the spread (without one, the interval of the first \
              delay) is shorter than clients / capacity, the time the server needs to accept each client once. Does \
              not apply to calls whose callers wait (interactive, serverless, near, far), which cannot be spread \
              over seconds. The figures after \"estimate\" are those of `stagger simulate fluid` with a backlog of half a \
              second.",
    check: spread_too_short,
};

fn spread_too_short(analysis: &PolicyAnalysis<'_>) -> Option<Diagnosis> {
    let known = analysis.context;
    let (clients, capacity, window) = (known.clients?, known.capacity?, known.min_recovery_time()?);
    let width = analysis.first_wave()?;
    if known.is_waited_for() || analysis.has_single_client() || width >= window {
        return None;
    }
    let over = if width.is_zero() { "0s".to_owned() } else { brief(width) };
    let fact = format!(
        "{} clients at {capacity} need {}; this policy spreads the first wave over {over}",
        thousands(clients.get()),
        brief(window)
    );
    let found = Diagnosis { when_reported: Some(expected_attempts), ..Diagnosis::new(fact) };
    let changes = ceiling::spread_over(analysis, window);
    Some(Diagnosis { changes, ..found }.advise("or let the server assign reservations: Admission"))
}

fn expected_attempts(analysis: &PolicyAnalysis<'_>) -> Option<String> {
    let estimate = estimate(analysis.policy, analysis.context)?;
    let (attempts, gave_up) = (estimate.attempts_per_client?, estimate.gave_up_ratio?);
    let limit = analysis.attempts().filter(|_| gave_up >= LEAST_GAVE_UP);
    let gave_up =
        limit.map_or(String::new(), |limit| format!("; with a limit of {limit}, {} give up", percent(gave_up)));
    Some(format!("estimate: about {attempts:.1} attempts per client; the optimum is 1{gave_up}"))
}

/// A smaller share of clients that give up is not worth a word.
const LEAST_GAVE_UP: f64 = 0.005;

pub(crate) static LAYERS: Rule = Rule {
    code: "S017",
    name: "layers-multiply",
    severity: Severity::Warning,
    title: "several layers retry, and their attempts multiply",
    rationale: "one request of a caller reaches the innermost layer as often as the product of all attempt limits",
    details: "Applies to two or more layers (`--layers`), each assumed to use the attempts of this policy. Within \
              one process, calls of this library detect that an outer layer retries and do not retry; across \
              processes and in other libraries, choose the layer that retries yourself.",
    check: layers,
};

fn layers(analysis: &PolicyAnalysis<'_>) -> Option<Diagnosis> {
    let layers = analysis.context.layers?.get();
    if layers < 2 || !analysis.retries() {
        return None;
    }
    let many = analysis.attempts().map_or("any number of calls".to_owned(), |attempts| {
        match u64::from(attempts).checked_pow(layers) {
            Some(calls) => format!("{} calls", thousands(calls)),
            None => "more calls than can be counted".to_owned(),
        }
    });
    let each = analysis.attempts().map_or("unlimited".to_owned(), |attempts| format!("{attempts}"));
    let fact = format!("{layers} layers with {each} attempts turn one call into {many}");
    let advice = "retry in one layer only, the outermost that can; set max-attempts=1 in the others";
    Some(Diagnosis::new(fact).advise(advice))
}
