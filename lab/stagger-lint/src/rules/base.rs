use core::time::Duration;

use stagger_core::schedule::Backoff;

use super::jitter;
use crate::analysis::{PolicyAnalysis, brief, from_to};
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
    let (policy, (from, to, what)) = (analysis.policy, usual(analysis.context.purpose));
    let spread = match analysis.context.purpose {
        Some(Purpose::Reconnecting) => policy.spread().saturating_mul(2),
        _ => policy.spread(),
    };
    // The first delay of a fleet may be its first wave.
    let to = to.max(spread).max(analysis.window().map_or(Duration::ZERO, |window| window.saturating_mul(2)));
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
            .suggest(jitter::full(analysis))
            .suggest([value("jitter", "full")])
            .suggest([value("floor", "0s")])
            .suggest([value("jitter", "full"), value("floor", "0s")]),
        _ => {
            let (base, cap) = (|| duration("base", enough), || duration("cap", enough.saturating_mul(10)));
            let (jitter, floor) = (|| value("jitter", "full"), || value("floor", "0s"));
            found
                .suggest([base()])
                .suggest([base(), cap()])
                .suggest([base(), jitter()])
                .suggest([base(), jitter(), floor()])
                .suggest_last_resort([base(), cap(), jitter(), floor()])
        }
    })
}
