//! The rules about the length of delays: the base, the resolution of timers, and the cap.

use core::time::Duration;

use stagger_core::schedule::Backoff;

use super::changes::{base_for_full, full};
use crate::analysis::{PolicyAnalysis, brief, from_to, round_up};
use crate::change::{delays, duration, value};
use crate::context::{DeploymentContext, Purpose};
use crate::rule::{Diagnosis, Rule, Severity};

pub(crate) static BASE_OUT_OF_RANGE: Rule = Rule {
    code: "S008",
    name: "base-out-of-range",
    severity: Severity::Note,
    title: "the base delay is unusual for this purpose",
    rationale: "the first retry should find a changed situation: much sooner it only adds load, much later it only \
                adds latency",
    details: "Applies to exponential and linear backoff whose base lies outside the usual range for its purpose: 10 \
              to 100 ms for a nearby API, 100 ms to 1 s for a database or a remote service, 1 s or more for a \
              background job, and 10 ms to 1 s for interactive calls, serverless functions and unspecified purposes. \
              A long-lived connection may start with up to 5 s (RFC 6455, section 7.2.3) or twice its spread, since a \
              first failure after a spread has a cause that other clients have, too; every policy with a base of its \
              spread's length, or of twice clients / capacity. A good base is a few times \
              the duration of a successful call.",
    check: base_out_of_range,
};

/// Returns the usual range of the base for a purpose, and a description of the purpose.
fn usual(purpose: Option<Purpose>) -> (Duration, Duration, &'static str) {
    let (from, to, what) = match purpose {
        Some(Purpose::Near) => (10, 100, "a nearby API"),
        Some(Purpose::Far) => (100, 1_000, "a database or a remote service"),
        Some(Purpose::Background) => (1_000, 60_000, "a background job"),
        Some(Purpose::Reconnecting) => (100, 5_000, "a long-lived connection"),
        Some(Purpose::Interactive) => (10, 1_000, "an interactive call"),
        Some(Purpose::Serverless) => (10, 1_000, "a serverless function"),
        None => (10, 1_000, "most calls"),
    };
    (Duration::from_millis(from), Duration::from_millis(to), what)
}

fn base_out_of_range(analysis: &PolicyAnalysis<'_>) -> Option<Diagnosis> {
    let policy = analysis.policy;
    let (from, mut to, what) = usual(analysis.context.purpose);
    to = to.max(match analysis.context.purpose {
        Some(Purpose::Reconnecting) => policy.spread().saturating_mul(2),
        _ => policy.spread(),
    });
    if let Some(window) = analysis.window() {
        // The first delay of a fleet may be its first wave.
        to = to.max(window.saturating_mul(2));
    }
    let base = policy.base();
    let grows = matches!(policy.backoff(), Backoff::Exponential { .. } | Backoff::Linear { .. });
    if !analysis.retries() || !grows || (from..=to).contains(&base) {
        return None;
    }
    let fact = format!("the base is {}; usual for {what}: {} to {}", brief(base), brief(from), brief(to));
    let found = Diagnosis::new(fact).suggest([duration("base", base.clamp(from, to))]);
    let patient = analysis.context.purpose.is_none() && base > to;
    Some(if patient { found.advise("or pass --for background if no caller waits for the result") } else { found })
}

pub(crate) static BELOW_TICK: Rule = Rule {
    code: "S009",
    name: "below-timer-tick",
    severity: Severity::Warning,
    title: "delays are finer than the timer resolution",
    rationale: "a timer fires on its ticks, so delays drawn between two ticks become equal and clients retry in step",
    details: "Applies if a delay is shorter than a timer tick, or is drawn from an interval shorter than two ticks. \
              The tick is 1 ms (the resolution of tokio's timer) unless `--tick` says otherwise; 15.6 ms is usual on \
              Windows. The drivers of this library round to one of the two neighboring ticks at random, which \
              preserves the mean but cannot separate delays that lie between the same two ticks.",
    check: below_tick,
};

/// Minimum width of an interval, in ticks, for the delays of clients to differ.
const TICKS: u32 = 2;

fn below_tick(analysis: &PolicyAnalysis<'_>) -> Option<Diagnosis> {
    let tick = analysis.context.tick.unwrap_or(DeploymentContext::TICK);
    let too_fine = |(least, most): &(Duration, Duration)| {
        let finer = least < most && most.saturating_sub(*least) < tick.saturating_mul(TICKS);
        !most.is_zero() && (*most < tick || finer)
    };
    let (at, bounds) = analysis.delays.iter().enumerate().find(|(_, bounds)| too_fine(bounds))?;
    let fact = format!("the delay before retry {} is {}; the timer tick is {}", at + 1, from_to(*bounds), brief(tick));
    let found = Diagnosis::new(fact);
    let enough = tick.saturating_mul(10);
    Some(match analysis.policy.backoff() {
        Backoff::List(list) => {
            let longer = |delay: Duration| if delay.is_zero() { delay } else { delay.max(enough) };
            found.suggest([delays(list.iter().map(longer))])
        }
        _ if analysis.policy.base() >= enough => found
            .suggest(full(analysis))
            .suggest([value("jitter", "full")])
            .suggest([value("floor", "0s")])
            .suggest([value("jitter", "full"), value("floor", "0s")]),
        _ => {
            let base = duration("base", enough);
            let cap = duration("cap", enough.saturating_mul(10));
            let jitter = value("jitter", "full");
            let floor = value("floor", "0s");
            found
                .suggest([base.clone()])
                .suggest([base.clone(), cap.clone()])
                .suggest([base.clone(), jitter.clone()])
                .suggest([base.clone(), jitter.clone(), floor.clone()])
                .suggest_last_resort([base, cap, jitter, floor])
        }
    })
}

/// The longest cap recommended for most uses: the upper end of the guide's range of 10 to 60 s.
const LONGEST: Duration = Duration::from_secs(60);
/// The cap suggested for a policy without one: the cap of the default policy.
const USUAL: Duration = match stagger_core::Policy::DEFAULT.cap() {
    Some(cap) => cap,
    None => LONGEST,
};
/// The longest cap recommended for background work: with ten attempts, most jobs outlast an outage of half an hour.
const LONGEST_OF_JOBS: Duration = Duration::from_secs(300);
/// Minimum ratio of cap to base.
const BASES: u32 = 10;
/// A base from which on the first delay is long enough: the spread of the profile for connections.
const PATIENT: Duration = stagger_core::profile::WEB_SOCKET.policy().spread();

pub(crate) static NO_CAP: Rule = Rule {
    code: "S005",
    name: "no-cap",
    severity: Severity::Warning,
    title: "no cap",
    rationale: "delays that double without a cap soon exceed every outage: the service is back, but its clients are \
                not",
    details: "Applies to exponential and linear backoff that grows and has no cap, even with few attempts, because \
              the limit of attempts may be raised later. Caps of 10 to 60 s suit most uses, 1 to 5 s interactive \
              calls.",
    check: no_cap,
};

fn no_cap(analysis: &PolicyAnalysis<'_>) -> Option<Diagnosis> {
    let policy = analysis.policy;
    if !analysis.retries() || !analysis.grows() || policy.cap().is_some() {
        return None;
    }
    let upto = |n: u32| Some(format!("retry {n} waits up to {}", brief(policy.bounds(n)?.1)));
    let later: Vec<String> = [10, 20].into_iter().filter_map(upto).collect();
    let last = analysis.attempts().map(|attempts| attempts - 1).filter(|last| *last < 10);
    let fact = match last.and_then(upto) {
        Some(last) => format!("{last} and is the last; with more attempts, {}", later.join(", ")),
        None => later.join(", "),
    };
    let mut cap = USUAL.max(policy.base().saturating_mul(BASES).min(LONGEST)).max(policy.base());
    if let Some(window) = analysis.window() {
        // A fleet arrives at the rate of the capacity if the mean delay is clients / capacity.
        cap = cap.max(round_up(window.saturating_mul(2)));
    }
    let (cap, jitter) = (duration("cap", cap), value("jitter", "full"));
    let mut found = Diagnosis::new(fact).suggest([cap.clone()]);
    // A jitter drawn before the cap would be lost at the cap.
    if analysis.window().is_some() {
        found = found.suggest([base_for_full(policy), cap.clone(), jitter.clone()]);
    }
    Some(found.suggest([cap, jitter]))
}

pub(crate) static CAP_NEAR_BASE: Rule = Rule {
    code: "S006",
    name: "cap-near-base",
    severity: Severity::Note,
    title: "the cap is close to the base",
    rationale: "delays stop growing after a few retries, so a long outage receives as many attempts per second as a \
                short one",
    details: "Applies to exponential and linear backoff whose cap is less than ten times the base, if enough retries \
              are allowed to reach it. In a long outage of length T, a client makes about T / mean delay attempts: T / \
              cap without jitter, 2 T / cap with full jitter. Does not apply to a base of 10 s or more, whose delays \
              are long from the first retry on, nor to a base of half the spread to the whole spread (S024) whose cap \
              is at least twice the base, nor to a cap of twice clients / capacity, if they are known.",
    check: cap_near_base,
};

fn cap_near_base(analysis: &PolicyAnalysis<'_>) -> Option<Diagnosis> {
    let (policy, cap) = (analysis.policy, analysis.policy.cap()?);
    let (base, spread) = (policy.base(), policy.spread());
    let (at, _) = analysis.delays.iter().enumerate().find(|(_, (_, most))| *most >= cap)?;
    // A base of the spread's length is as long as it should be.
    let is_of_size = base <= spread && base >= spread / 2 && cap >= base * 2;
    let mut wanted = base.saturating_mul(BASES);
    if !analysis.grows() || cap >= wanted || is_of_size || base >= PATIENT {
        return None;
    }
    let window = analysis.window();
    if let Some(window) = window {
        // At twice clients / capacity, a fleet with full jitter arrives at the rate of the capacity.
        wanted = wanted.min(round_up(window.saturating_mul(2)));
        if cap >= wanted {
            return None;
        }
    }
    let times = cap.as_secs_f64() / base.as_secs_f64();
    let fact = format!("the cap of {} is {times:.1} times the base and applies from retry {} on", brief(cap), at + 1);
    let found = Diagnosis::new(fact);
    if wanted > LONGEST && window.is_none() {
        return Some(found.suggest([duration("base", cap / BASES)]));
    }
    Some(found.suggest([duration("cap", wanted)]).suggest([duration("cap", wanted), value("jitter", "full")]))
}

pub(crate) static CAP_TOO_LONG: Rule = Rule {
    code: "S007",
    name: "cap-too-long",
    severity: Severity::Note,
    title: "delays exceed one minute",
    rationale: "a client that draws such a delay just before the service recovers stays disconnected for that long",
    details: "Applies if a delay can exceed 60 s, or five minutes for background work: through a cap above 60 s that \
              retries reach, or through a delay list. If twice clients / capacity is more, that is the limit: a \
              shorter cap would bring the clients back faster than the server accepts them. The last clients are back \
              about one cap after the service. Google Cloud's documentation of truncated exponential backoff names 32 \
              s and 64 s as typical.",
    check: cap_too_long,
};

fn cap_too_long(analysis: &PolicyAnalysis<'_>) -> Option<Diagnosis> {
    let policy = analysis.policy;
    let known = analysis.context;
    let mut longest = if known.purpose == Some(Purpose::Background) { LONGEST_OF_JOBS } else { LONGEST };
    let window = if known.is_waited_for() { None } else { known.min_recovery_time() };
    if let Some(window) = window {
        // At a cap of twice clients / capacity, clients with full jitter arrive at the rate of the capacity.
        longest = longest.max(round_up(window.saturating_mul(2)));
    }
    if analysis.longest() <= longest {
        return None;
    }
    let (at, (_, most)) = analysis.delays.iter().enumerate().find(|(_, (_, most))| *most > longest)?;
    let found = Diagnosis::new(format!("retry {} waits up to {}", at + 1, brief(*most)));
    if let Backoff::List(list) = policy.backoff() {
        return Some(found.suggest([delays(list.iter().map(|delay| delay.min(longest)))]));
    }
    if !analysis.grows() || policy.cap()? <= longest {
        return None;
    }
    let found = found.suggest([duration("cap", longest)]);
    if window.is_some() {
        // A shorter base would shorten the first wave of a fleet.
        return Some(found);
    }
    Some(found.suggest([duration("base", longest / BASES), duration("cap", longest)]))
}
