//! The reference: the core, driven by the loop that its documentation describes.

use core::time::Duration;

use stagger::{
    Guards, Instant, StopReason, guard::Permits, machine::Decision, machine::RetryMachine, machine::RetryState,
    observe::Action,
};

use super::Case;
use super::trace::{Decided, End, Trace};

/// What a call does on a timer that wakes up at multiples of `resolution`; zero: at any time.
pub(crate) fn by_hand(case: &Case<'_>, resolution: Duration) -> Trace {
    let (budget, breaker) = case.guards();
    let mut guards = Guards::none();
    if let (Some(budget), Some(breaker)) = (&budget, &breaker) {
        guards = guards.budget(&**budget).breaker(&**breaker);
    }
    let start = Instant::ZERO;
    let mut now = start;
    let mut state = RetryState::started(start);
    let mut retry = RetryMachine::new(case.policy, &mut state, case.seed);
    let mut trace = Trace::default();
    let mut has_failed = false;

    let spread = retry.spread(|| now);
    now = woken(now, retry.on_ticks(spread, stagger::DelaySource::Spread, resolution), resolution);
    let mut permit = Permits::NONE;
    loop {
        let begun = retry.begin(permit, || now, &guards);
        let (decided, gave) = match begun {
            Err(stop) => (Decided::of(Action::Stop(stop), &retry, now, &guards), None),
            Ok(permit_of_attempt) => {
                let play = case.script.play(trace.calls);
                trace.calls += 1;
                now = now.saturating_add(play.takes);
                let decision = retry.decide(play.outcome(), permit_of_attempt, || now, &guards);
                let (action, waits) = match &decision {
                    // There is an error, whatever the rule says.
                    Decision::Done if play.plain().is_err() => (Action::Stop(StopReason::Permanent), None),
                    Decision::Done => (Action::Done, None),
                    Decision::Retry { after, source, .. } => {
                        let (after, source) = (*after, *source);
                        (Action::Retry { after, source }, Some(retry.on_ticks(after, source, resolution)))
                    }
                    Decision::Stop(stop) => (Action::Stop(*stop), None),
                    other => panic!("an unknown decision: {other:?}"),
                };
                let decided = Decided::of(action, &retry, now, &guards);
                if let (Decision::Retry { permit: lent, .. }, Some(ask)) = (decision, waits) {
                    permit = lent;
                    now = woken(now, ask, resolution);
                    trace.decisions.push(decided);
                    has_failed = true;
                    continue;
                }
                (decided, Some(play))
            }
        };
        trace.decisions.push(decided);
        let (attempts, elapsed) = (retry.attempt(), now.saturating_since(start));
        trace.end = Some(match (decided.action, gave.map(super::script::Play::plain)) {
            (Action::Stop(stop), None) if !has_failed => End::Refused { stop, attempts, elapsed },
            (Action::Stop(stop), _) => End::Failed { stop, attempts, elapsed },
            (_, Some(Ok(value))) => End::Value(value),
            other => panic!("ended by {other:?}"),
        });
        return trace;
    }
}

impl Decided {
    fn of(action: Action, retry: &RetryMachine<'_>, now: Instant, guards: &Guards<'_>) -> Self {
        let elapsed = retry.elapsed(now).unwrap();
        Self {
            attempt: retry.attempt(),
            action,
            elapsed,
            budget_left: guards.budget.and_then(stagger::Budget::available),
        }
    }
}

/// When a timer wakes up that was asked for this at `now`.
fn woken(now: Instant, ask: Duration, resolution: Duration) -> Instant {
    let until = now.saturating_add(ask).as_nanos();
    let tick = u64::try_from(resolution.as_nanos()).unwrap().max(1);
    if ask.is_zero() { now } else { Instant::from_nanos(until.next_multiple_of(tick)) }
}
