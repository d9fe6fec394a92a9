use core::time::Duration;

use stagger_core::Backoff;

use super::super::analysis::{PolicyAnalysis, brief, from_to};
use super::super::change::{delays, duration, value};
use super::super::context::{DeploymentContext, Purpose};
use super::super::rule::{Diagnosis, Rule, Severity};

pub(in crate::lint) static BASE_OUT_OF_RANGE: Rule = Rule {
    code: "S008",
    name: "base-out-of-range",
    severity: Severity::Note,
    title: "the base does not suit its use",
    why: "the first retry should find something changed: much sooner it only adds load, much later it only adds \
           waiting",
    more: "It speaks for exponential and linear backoff whose base lies outside the usual range of its purpose: 10 to \
           100 ms for an API that is near, 100 ms to 1 s for a database or a far service, 1 s and more for a job that \
           nobody waits for, 10 ms to 1 s while a person or a function waits and where the purpose is not said. A \
           connection that is kept up may begin with up to 5 s (RFC 6455, section 7.2.3). A base is a few times what \
           the call takes when all is well.",
    check: base_out_of_range,
};

/// The bases that are usual for a purpose, and what it is in words.
fn usual(purpose: Option<Purpose>) -> (Duration, Duration, &'static str) {
    let (from, to, what) = match purpose {
        Some(Purpose::Near) => (10, 100, "an API that is near"),
        Some(Purpose::Far) => (100, 1_000, "a database or a far service"),
        Some(Purpose::Background) => (1_000, 60_000, "a job that nobody waits for"),
        Some(Purpose::Reconnecting) => (100, 5_000, "a connection that is kept up"),
        Some(Purpose::Interactive) => (10, 1_000, "a call that a person waits for"),
        Some(Purpose::Serverless) => (10, 1_000, "a function that is billed by its time"),
        None => (10, 1_000, "most calls"),
    };
    (Duration::from_millis(from), Duration::from_millis(to), what)
}

fn base_out_of_range(analysis: &PolicyAnalysis<'_>) -> Option<Diagnosis> {
    let (policy, (from, to, what)) = (analysis.policy, usual(analysis.purpose()));
    let base = policy.base();
    let grows = matches!(policy.backoff(), Backoff::Exponential { .. } | Backoff::Linear { .. });
    if !analysis.retries() || !grows || (from..=to).contains(&base) {
        return None;
    }
    let fact = format!("the base is {}; {} to {} are usual for {what}", brief(base), brief(from), brief(to));
    let found = Diagnosis::new(fact).suggest([duration("base", base.clamp(from, to))]);
    let patient = analysis.purpose().is_none() && base > to;
    Some(if patient { found.advise("or say what it is for, if nobody waits: --for background") } else { found })
}

pub(in crate::lint) static BELOW_TICK: Rule = Rule {
    code: "S009",
    name: "below-timer-tick",
    severity: Severity::Warning,
    title: "delays are finer than the timer",
    why: "a timer wakes on its ticks, so what is drawn between two of them is ironed flat and clients are in step",
    more: "It speaks where a delay is shorter than a tick of the timer, or is drawn from an interval of less than two \
           ticks. The tick is 1 ms unless said (`tick`): tokio's; 15.6 ms is usual on Windows. A driver of this \
           library takes one of the two neighbouring ticks by chance, which keeps the mean; it cannot keep apart what \
           lies between two ticks.",
    check: below_tick,
};

/// How many ticks an interval has to span for clients to be apart.
const TICKS: u32 = 2;

fn below_tick(analysis: &PolicyAnalysis<'_>) -> Option<Diagnosis> {
    let tick = analysis.context.tick.unwrap_or(DeploymentContext::TICK);
    let too_fine = |(least, most): &(Duration, Duration)| {
        let finer = least < most && most.saturating_sub(*least) < tick.saturating_mul(TICKS);
        !most.is_zero() && (*most < tick || finer)
    };
    let (at, bounds) = analysis.delays.iter().enumerate().find(|(_, bounds)| too_fine(bounds))?;
    let fact =
        format!("before retry {} the delay is {}; the timer's tick is {}", at + 1, from_to(*bounds), brief(tick));
    let found = Diagnosis::new(fact);
    let enough = tick.saturating_mul(10);
    Some(match analysis.policy.backoff() {
        Backoff::List(list) => {
            let longer = |delay: Duration| if delay.is_zero() { delay } else { delay.max(enough) };
            found.suggest([delays(list.iter().map(longer))])
        }
        _ if analysis.policy.base() >= enough => found
            .suggest([value("jitter", "full")])
            .suggest([duration("floor", Duration::ZERO)])
            .suggest([value("jitter", "full"), duration("floor", Duration::ZERO)]),
        _ => {
            let (base, cap) = (duration("base", enough), duration("cap", enough.saturating_mul(10)));
            let (jitter, floor) = (value("jitter", "full"), duration("floor", Duration::ZERO));
            found
                .suggest([base.clone()])
                .suggest([base.clone(), cap.clone()])
                .suggest([base.clone(), jitter.clone()])
                .suggest([base.clone(), jitter.clone(), floor.clone()])
                .suggest_last_resort([base, cap, jitter, floor])
        }
    })
}
