use super::super::analysis::{PolicyAnalysis, brief, round_up, thousands};
use super::super::change::duration;
use super::super::context::{Budgeted, Purpose};
use super::super::estimate;
use super::super::rule::{Diagnosis, Rule, Severity};

pub(in crate::lint) static SPREAD_TOO_SHORT: Rule = Rule {
    code: "S004",
    name: "spread-below-fleet",
    severity: Severity::Warning,
    title: "the first wave is too narrow for the fleet",
    why: "no backoff acts on the first wave: clients that lose their connection together arrive faster than the server \
           takes them, and all who are refused come again",
    more: "It speaks where the clients and the capacity are known, and the spread, or without one the interval of the \
           first delay, is shorter than clients / capacity: the time in which the server can take each of them once. \
           It is silent for calls that somebody waits for (interactive, serverless, near, far), which cannot be spread \
           over seconds. The figures after \"estimate\" are closed forms: recovery takes clients / capacity at least, \
           and full jitter knocks about (ln(2 (m - 1) T / base) - 1) / ln m times for each client, with T = clients / \
           capacity.",
    check: spread_too_short,
};

fn spread_too_short(analysis: &PolicyAnalysis<'_>) -> Option<Diagnosis> {
    let known = analysis.context;
    let (clients, capacity, window) = (known.clients?, known.capacity?, known.min_recovery_time()?);
    let waited_for =
        matches!(analysis.purpose(), Some(Purpose::Interactive | Purpose::Serverless | Purpose::Near | Purpose::Far));
    let (least, most) = *analysis.delays.first()?;
    let spread = analysis.policy.spread();
    let width = if spread.is_zero() { most.saturating_sub(least) } else { spread };
    if waited_for || analysis.has_single_client() || width >= window {
        return None;
    }
    let over = if width.is_zero() { "no time at all".to_owned() } else { brief(width) };
    let fact = format!(
        "{} clients at {capacity} take {}; this policy spreads the first wave over {over}",
        thousands(clients.get()),
        brief(window)
    );
    let attempts = estimate(analysis.policy, known).and_then(|estimate| {
        let attempts = estimate.attempts_per_client?;
        let limit = analysis.attempts().filter(|limit| f64::from(*limit) < attempts);
        let given_up = limit.map_or(String::new(), |limit| format!("; with {limit} many give up"));
        Some(format!("estimate: about {attempts:.1} attempts for each client, 1 at best{given_up}"))
    });
    let change = [duration("spread", round_up(window))];
    Some(
        Diagnosis::new(fact)
            .and_if_some(attempts)
            .suggest(change)
            .advise("or have the server give out appointments: Admission"),
    )
}

pub(in crate::lint) static NO_BUDGET: Rule = Rule {
    code: "S016",
    name: "no-budget",
    severity: Severity::Warning,
    title: "no budget bounds the retries of all calls together",
    why: "backoff spaces the retries of one call and takes no load away: when the server is in trouble, every call \
           fails and every call retries",
    more: "It speaks for more than 1,000 clients or 100 requests a second without a budget (`--budget` says that there \
           is one). It is silent for connections that are kept up, where a spread and appointments do the same work. \
           Where load times attempts is more than the capacity, a short stall can keep itself going for good: the \
           server is busy with retries, which fail because it is busy. Of thousands of clients with few calls each, \
           what every one may do at the start adds up, so make theirs small. See N. Bronson et al., \"Metastable \
           Failures in Distributed Systems\", HotOS 2021, and the guide, \"Guards\", for which budget.",
    check: no_budget,
};

/// From how many clients or requests a second on.
const CLIENTS: u64 = 1_000;
const REQUESTS: f64 = 100.0;

fn no_budget(analysis: &PolicyAnalysis<'_>) -> Option<Diagnosis> {
    let known = analysis.context;
    let many = known.clients.filter(|clients| clients.get() > CLIENTS);
    let busy = known.requests.filter(|requests| requests.get() > REQUESTS);
    let guarded = known.budget == Some(Budgeted::Yes) || analysis.purpose() == Some(Purpose::Reconnecting);
    if !analysis.retries() || guarded || (many.is_none() && busy.is_none()) {
        return None;
    }
    let load = match (many, busy) {
        (Some(clients), None) => format!("{} clients", thousands(clients.get())),
        (_, Some(requests)) => format!("{requests}"),
        (None, None) => return None,
    };
    let times = analysis.attempts().map_or("without limit".to_owned(), |attempts| format!("up to {attempts} times"));
    let sustained =
        known.requests.zip(known.capacity).zip(analysis.attempts()).and_then(|((requests, capacity), n)| {
            let load = requests.get() * f64::from(n);
            (load > capacity.get()).then(|| {
                format!(
                    "estimate: {load:.0}/s when everything fails, and the server takes {capacity}: it may never recover"
                )
            })
        });
    let budget = if busy.is_some() { "Window::default()" } else { "Tokens::new()" };
    Some(
        Diagnosis::new(format!("{load}, each call sent {times} when the server is down"))
            .and_if_some(sustained)
            .advise(format!("give all calls one budget: .budget({budget}) on their Retrier; then say --budget")),
    )
}

pub(in crate::lint) static LAYERS: Rule = Rule {
    code: "S017",
    name: "layers-multiply",
    severity: Severity::Warning,
    title: "several layers retry, and their attempts multiply",
    why: "what one caller asks for once reaches the last layer as often as all their attempts multiplied",
    more: "It speaks for two layers and more (`--layers`), each taken to have the attempts of this policy. Inside one \
           process the calls of this library find out by themselves that an outer layer retries, and stand down; \
           across processes, and in other libraries, somebody has to choose the layer.",
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
    let each = analysis.attempts().map_or("without limit".to_owned(), |attempts| format!("{attempts}"));
    Some(
        Diagnosis::new(format!("{layers} layers with {each} attempts make {many} of one"))
            .advise("retry in one layer, the outermost that can; max-attempts=1 in the others"),
    )
}
