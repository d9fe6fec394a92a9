use core::time::Duration;

use stagger_core::schedule::Backoff;

use super::super::change::{delays, length, word};
use super::super::circumstances::{Circumstances, Purpose};
use super::super::rule::{Found, Rule, Severity};
use super::super::subject::{Subject, brief, from_to};

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
    judge: base_out_of_range,
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

fn base_out_of_range(subject: &Subject<'_>) -> Option<Found> {
    let (policy, (from, to, what)) = (subject.policy, usual(subject.purpose()));
    let base = policy.base();
    let grows = matches!(policy.backoff(), Backoff::Exponential { .. } | Backoff::Linear { .. });
    if !subject.retries() || !grows || (from..=to).contains(&base) {
        return None;
    }
    let fact = format!("the base is {}; {} to {} are usual for {what}", brief(base), brief(from), brief(to));
    let found = Found::fact(fact).mend([length("base", base.clamp(from, to))]);
    let patient = subject.purpose().is_none() && base > to;
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
    judge: below_tick,
};

/// How many ticks an interval has to span for clients to be apart.
const TICKS: u32 = 2;

fn below_tick(subject: &Subject<'_>) -> Option<Found> {
    let tick = subject.circumstances.tick.unwrap_or(Circumstances::TICK);
    let too_fine = |(least, most): &(Duration, Duration)| {
        let finer = least < most && most.saturating_sub(*least) < tick.saturating_mul(TICKS);
        !most.is_zero() && (*most < tick || finer)
    };
    let (at, bounds) = subject.delays.iter().enumerate().find(|(_, bounds)| too_fine(bounds))?;
    let fact =
        format!("before retry {} the delay is {}; the timer's tick is {}", at + 1, from_to(*bounds), brief(tick));
    let found = Found::fact(fact);
    let enough = tick.saturating_mul(10);
    Some(match subject.policy.backoff() {
        Backoff::List(list) => {
            let longer = |delay: Duration| if delay.is_zero() { delay } else { delay.max(enough) };
            found.mend([delays(list.iter().map(longer))])
        }
        _ if subject.policy.base() >= enough => found
            .mend([word("jitter", "full")])
            .mend([length("floor", Duration::ZERO)])
            .mend([word("jitter", "full"), length("floor", Duration::ZERO)]),
        _ => {
            let (base, cap) = (length("base", enough), length("cap", enough.saturating_mul(10)));
            let (jitter, floor) = (word("jitter", "full"), length("floor", Duration::ZERO));
            found
                .mend([base.clone()])
                .mend([base.clone(), cap.clone()])
                .mend([base.clone(), jitter.clone()])
                .mend([base.clone(), jitter.clone(), floor.clone()])
                .mend_at_last([base, cap, jitter, floor])
        }
    })
}
