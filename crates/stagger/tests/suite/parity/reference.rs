//! The reference: the core state machine, driven by the loop that its documentation describes.

use core::time::Duration;

use stagger::guard::Permits;
use stagger::machine::{Decision, RetryMachine, RetryState};
use stagger::observe::Action;
use stagger::{Guard, Guards, Instant, StopReason};

use super::Case;
use super::script::{Completion, DecisionRecord, Trace};

/// Returns the trace of a call on a timer that wakes up at multiples of `resolution`, or at any time if it is zero.
pub(crate) fn reference_trace(case: &Case<'_>, resolution: Duration) -> Trace {
    reference_trace_on_ticks(case, resolution, resolution)
}

/// Returns the trace of a call that decides for a timer of this resolution and wakes up at multiples of `tick`.
pub(crate) fn reference_trace_on_ticks(case: &Case<'_>, resolution: Duration, tick: Duration) -> Trace {
    let (budget, breaker) = case.guards();
    let list: Vec<&dyn Guard> = match (&budget, &breaker) {
        (Some(budget), Some(breaker)) => vec![&**breaker, &**budget],
        _ => Vec::new(),
    };
    let guards = Guards::of(&list);
    let start = Instant::ZERO;
    let mut now = start;
    let mut state = RetryState::started(start);
    let mut retry = RetryMachine::new(case.policy, &mut state, case.seed);
    let mut trace = Trace::default();
    let mut has_failed = false;

    let spread = retry.spread(|| now);
    now = wake_time(now, retry.on_ticks(spread, stagger::DelaySource::Spread, resolution), tick);
    let mut permit = Permits::NONE;
    loop {
        let begun = retry.begin(permit, || now, &guards);
        let (decided, attempt) = match begun {
            Err(stop) => (DecisionRecord::new(Action::Stop(stop), &retry, now, &guards), None),
            Ok(attempt_permit) => {
                let attempt = case.script.attempt(trace.calls);
                trace.calls += 1;
                now = now.saturating_add(attempt.duration);
                let decision = retry.decide(attempt.outcome(), attempt_permit, || now, &guards);
                let (action, wait) = match &decision {
                    // The operation returned an error that the rule classifies as a success.
                    Decision::Done if attempt.plain_result().is_err() => (Action::Stop(StopReason::Permanent), None),
                    Decision::Done => (Action::Done, None),
                    Decision::Retry { after, source, .. } => {
                        let (after, source) = (*after, *source);
                        (Action::Retry { after, source }, Some(retry.on_ticks(after, source, resolution)))
                    }
                    Decision::Stop(stop) => (Action::Stop(*stop), None),
                    other => panic!("an unknown decision: {other:?}"),
                };
                let decided = DecisionRecord::new(action, &retry, now, &guards);
                if let (Decision::Retry { permit: retry_permit, .. }, Some(wait)) = (decision, wait) {
                    permit = retry_permit;
                    now = wake_time(now, wait, tick);
                    trace.decisions.push(decided);
                    has_failed = true;
                    continue;
                }
                (decided, Some(attempt))
            }
        };
        trace.decisions.push(decided);
        let (attempts, elapsed) = (retry.attempt(), now.saturating_since(start));
        trace.completion = Some(match (decided.action, attempt.map(super::script::ScriptedAttempt::plain_result)) {
            (Action::Stop(stop), None) if !has_failed => Completion::Rejected { stop, attempts, elapsed },
            (Action::Stop(stop), _) => Completion::Failed { stop, attempts, elapsed },
            (_, Some(Ok(value))) => Completion::Value(value),
            other => panic!("impossible completion: {other:?}"),
        });
        return trace;
    }
}

impl DecisionRecord {
    fn new(action: Action, retry: &RetryMachine<'_>, now: Instant, guards: &Guards<'_>) -> Self {
        let elapsed = retry.elapsed(now).unwrap();
        Self { attempt: retry.attempt(), action, elapsed, budget_left: guards.available() }
    }
}

/// Returns when a timer wakes up from a wait that starts at `now`.
fn wake_time(now: Instant, wait: Duration, tick: Duration) -> Instant {
    let until = now.saturating_add(wait).as_nanos();
    let tick = u64::try_from(tick.as_nanos()).unwrap().max(1);
    if wait.is_zero() { now } else { Instant::from_nanos(until.next_multiple_of(tick)) }
}
