use core::time::Duration;

use stagger_core::{Policy, profile, schedule::Backoff};

use super::super::change::{Change, delays, length, word};
use super::super::circumstances::Purpose;
use super::super::rule::{Found, Rule, Severity};
use super::super::subject::{Subject, brief, percent, round_up};

pub(in crate::lint) static NO_JITTER: Rule = Rule {
    code: "S001",
    name: "no-jitter",
    severity: Severity::Warning,
    title: "no jitter",
    why: "clients that fail together come back together, every time, and the waves never flatten",
    more: "It speaks where the delay before some retry, other than the first one and those at the cap, is the same for \
           every client: an interval of a single length. Exponential backoff without jitter knocks as often as a \
           constant second and takes many times as long, since its waves stay as narrow as they were. It is silent for \
           a single client (`clients` = 1), which has nobody to be in step with. See M. Brooker, \"Exponential Backoff \
           And Jitter\", AWS, 2015, and the table in the guide, \"Choosing a strategy\".",
    judge: no_jitter,
};

fn no_jitter(subject: &Subject<'_>) -> Option<Found> {
    if subject.alone() {
        return None;
    }
    let cap = subject.policy.cap();
    let jittered = subject.is_jittered();
    let in_step = |(least, most): &(Duration, Duration)| least == most && !most.is_zero();
    let fact = if jittered {
        let (at, (delay, _)) =
            subject.delays.iter().enumerate().skip(1).find(|(_, bounds)| in_step(bounds) && Some(bounds.1) != cap)?;
        format!("before retry {} every client waits exactly {}", at + 1, brief(*delay))
    } else {
        let delays: Vec<String> = subject.delays.iter().take(4).map(|(delay, _)| brief(*delay)).collect();
        subject.delays.iter().find(|bounds| in_step(bounds))?;
        let more = if subject.delays.len() > delays.len() { " ..." } else { "" };
        format!("every client waits exactly the same: {}{more}", delays.join(", "))
    };
    let policy = subject.policy;
    Some(
        Found::fact(fact)
            .mend([word("jitter", "full")])
            .mend([word("jitter", "full"), length("floor", Duration::ZERO)])
            .mend([word("jitter", "full"), length("cap", policy.base().saturating_mul(10))]),
    )
}

pub(in crate::lint) static LOST_AT_CAP: Rule = Rule {
    code: "S002",
    name: "jitter-lost-at-cap",
    severity: Severity::Warning,
    title: "jitter is lost at the cap",
    why: "the cap comes after the draw and cuts it off, so that clients are put in step just when the outage is long",
    more: "It speaks where at least a tenth of the clients wait exactly the cap before some retry, although the policy \
           has a jitter; the share is read from the distribution of the delay. It happens where a system draws first \
           and caps afterwards: socket.io, tenacity, Polly, resilience4j, stubborn-io, and decorrelated jitter as it \
           was published. The jitters of this library are drawn inside the cap and never lose anything there.",
    judge: lost_at_cap,
};

/// From which share on clients that wait exactly the cap are a herd.
const HERD: f64 = 0.1;
/// From which share on it is all of them, as far as a share is known.
const EVERYONE: f64 = 0.995;
/// How many retries at the cap are looked at: their shares only grow.
const AT_CAP: usize = 24;

fn lost_at_cap(subject: &Subject<'_>) -> Option<Found> {
    if subject.alone() || !subject.is_jittered() {
        return None;
    }
    let cap = subject.policy.cap()?;
    // Where there was no jitter before the cap either, it is not the cap that takes it away.
    let (at, reached) = subject.delays.iter().enumerate().find(|(_, (_, most))| *most == cap)?;
    let before = at.checked_sub(1).map_or(*reached, |before| subject.delays[before]);
    if before.0 == before.1 && reached.0 == reached.1 {
        return None;
    }
    let at_cap = (1..).zip(&subject.delays).filter(|(_, (_, most))| *most == cap).map(|(n, _)| n);
    let at_cap: Vec<u32> = at_cap.take(AT_CAP).collect();
    let share = |n: u32| subject.share_at_cap(n, HERD);
    // The shares only grow, so the last one tells whether there is anything to find.
    let last = *at_cap.last().filter(|last| share(**last) >= HERD)?;
    let first = at_cap.partition_point(|n| share(*n) < HERD);
    let everyone = first + at_cap[first..].partition_point(|n| share(*n) < EVERYONE);
    let told = |retries: &[u32]| {
        let told: Vec<String> = retries.iter().map(|n| format!("retry {n}: {}", percent(share(*n)))).collect();
        told.join(", ")
    };
    let (fact, of_clients) = match at_cap.get(everyone) {
        Some(n) => {
            let before = &at_cap[first..everyone.min(first + 3)];
            let of_clients = (!before.is_empty()).then(|| format!("before that, of the clients: {}", told(before)));
            (format!("from retry {n} on every client waits exactly {}", brief(cap)), of_clients)
        }
        None => {
            let first = at_cap.get(first).copied().unwrap_or(last);
            let ends = [first, last];
            let ends = if first == last { &ends[..1] } else { &ends[..] };
            let of_clients = format!("of the clients: {}", told(ends));
            (format!("from retry {first} on many clients wait exactly {}", brief(cap)), Some(of_clients))
        }
    };
    Some(
        Found::fact(fact)
            .and_perhaps(of_clients)
            .mend([word("jitter", "full")])
            .mend([word("jitter", "full"), length("cap", subject.policy.base().saturating_mul(10))]),
    )
}

pub(in crate::lint) static FIRST_IN_STEP: Rule = Rule {
    code: "S003",
    name: "first-delay-in-step",
    severity: Severity::Warning,
    title: "the first retry is in step",
    why: "what hits every client at once, a restart or a lost link, is answered by all of them in the same instant",
    more: "It speaks where the first delay is zero, or the same for every client, and no spread comes before it. \
           (Where no retry at all has jitter, and the first delay is not zero, S001 says so.) A first delay of zero \
           doubles the load of whatever fails. RFC 6455, section 7.2.3, asks WebSocket clients for a random first \
           delay of up to 5 s. For connections that are kept up, a spread is the remedy: it acts on the first action \
           of all clients, where a jitter only spreads them over one base.",
    judge: first_in_step,
};

/// The spread of connections that are kept up where the fleet is not known: that of our own profile.
const SPREAD: Duration = profile::WEB_SOCKET.policy().spread();

fn first_in_step(subject: &Subject<'_>) -> Option<Found> {
    let (least, most) = *subject.delays.first()?;
    let told_already = !subject.is_jittered() && !most.is_zero();
    if subject.alone() || least != most || !subject.policy.spread().is_zero() || told_already {
        return None;
    }
    let fact = if subject.longest().is_zero() {
        "there is no delay at all: every retry of every client follows at once".to_owned()
    } else if most.is_zero() {
        "the first retry of every client follows at once".to_owned()
    } else {
        format!("the first retry of every client comes exactly {} after a common failure", brief(most))
    };
    let window = subject.circumstances.window();
    let spread = Change::from([length("spread", window.map_or(SPREAD, round_up))]);
    let found = Found::fact(fact);
    if subject.purpose() == Some(Purpose::Reconnecting) || window.is_some() {
        return Some(later_first(found.mend(spread), subject.policy));
    }
    Some(later_first(found, subject.policy).mend(spread))
}

/// Changes that give the first delay an interval.
fn later_first(found: Found, policy: &Policy) -> Found {
    match policy.backoff() {
        // The same with the usual base and cap.
        Backoff::Zero => match policy.to_string().replacen("zero", "exponential", 1).parse::<Policy>() {
            Ok(policy) => found.mend(policy),
            Err(_) => found,
        },
        Backoff::List(list) => {
            let later = delays(list.iter().filter(|delay| !delay.is_zero()));
            found.mend([later.clone()]).mend([later, word("jitter", "equal")]).mend([word("jitter", "equal")])
        }
        _ => found
            .mend([word("jitter", "full")])
            .mend([length("floor", policy.base() / 2)])
            .mend([word("jitter", "full"), length("floor", Duration::ZERO)]),
    }
}
