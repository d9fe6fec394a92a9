//! What a server's queue does to its callers, with or without retries.

use core::time::Duration;

use stagger_core::text::Compact;

use super::budget::rates;
use crate::analysis::{PolicyAnalysis, brief, percent, round_up};
use crate::context::Purpose;
use crate::rule::{Diagnosis, Rule, Severity};
use crate::stalls::ROUND_TRIP;

pub(crate) static OVERLOAD: Rule = Rule {
    code: "S021",
    name: "load-exceeds-capacity",
    severity: Severity::Warning,
    title: "the load exceeds the capacity even without retries",
    rationale: "the queue grows until every call times out; retries only add to it",
    details: "Applies if `--rps` exceeds `--capacity`. Neither a policy nor a budget nor a breaker can serve more \
              calls than the server completes, so S016 recommends none.",
    check: overload,
};

fn overload(analysis: &PolicyAnalysis<'_>) -> Option<Diagnosis> {
    let (load, capacity) = rates(analysis)?;
    if load <= capacity {
        return None;
    }
    let fact =
        format!("{load}/s arrive and {capacity}/s are served: at most {} of the calls", percent(capacity / load));
    let advice = "no retry policy, budget or breaker can help: add capacity, or shed load before it reaches the server";
    Some(Diagnosis::new(fact).advise(advice))
}

pub(crate) static TIMEOUT_IN_QUEUE: Rule = Rule {
    code: "S025",
    name: "timeout-in-queue",
    severity: Severity::Warning,
    title: "calls time out in the queue of a healthy server",
    rationale: "calls arrive at random, and now and then so many at once that some wait longer than their callers; \
                the work for them is lost, and their retries are further load, so the server is overloaded without \
                any outage",
    details: "Applies if load, capacity and attempt timeout are known, and more than 1 % of the attempts time out \
              though nothing fails: the waiting time of a server that works on one request after the other \
              (M/D/1), with a network of 10 ms. A server that works on many at the same time has shorter queues. \
              The suggested timeout is that of one in a thousand. Neither a budget nor a breaker shortens the queue.",
    check: timeout_in_queue,
};

/// The share of the attempts that may time out, and that with the suggested timeout.
const LATE: f64 = 0.01;
const SUGGESTED: f64 = 0.001;

fn timeout_in_queue(analysis: &PolicyAnalysis<'_>) -> Option<Diagnosis> {
    let (load, capacity) = rates(analysis)?;
    let timeout = analysis.context.attempt_timeout?;
    // S021 reports a load above the capacity.
    if load >= capacity || analysis.context.purpose == Some(Purpose::Reconnecting) {
        return None;
    }
    let (decay, at_zero) = waiting_time(load / capacity);
    // In service times: the time left for waiting, after the round trip and the attempt's own service.
    let left = (timeout.as_secs_f64() - ROUND_TRIP) * capacity - 1.0;
    let late = if left <= 0.0 { 1.0 } else { (at_zero * (-decay * left).exp()).min(1.0) };
    if late <= LATE {
        return None;
    }
    let enough = (1.0 + (at_zero / SUGGESTED).ln().max(0.0) / decay) / capacity + ROUND_TRIP;
    let enough = round_up(Duration::try_from_secs_f64(enough).ok()?.max(timeout));
    let fact = format!(
        "at {load}/s of {capacity}/s, {} of the attempts take longer than {} though nothing fails",
        percent(late),
        brief(timeout)
    );
    let command = format!(
        "simulated by: stagger simulate outage --rate {load}/s --capacity {capacity}/s --down 0s --timeout {} -p stop",
        Compact(timeout)
    );
    let advice = format!("a timeout of at least {}, or more capacity", Compact(enough));
    Some(Diagnosis { facts: vec![fact, command], ..Diagnosis::default() }.advise(advice))
}

/// Steps of the bisection: a double has no more digits.
const STEPS: u32 = 60;

/// Returns the decay `d` and the factor `c` of the waiting time in an M/D/1 queue, in service times: the probability
/// that it exceeds `t` is `c * exp(-d * t)` for all but the shortest. `d` solves `load * (exp(d) - 1) = d`.
///
/// Source: H. C. Tijms, "A First Course in Stochastic Models", 2003, section 9.6.
fn waiting_time(load: f64) -> (f64, f64) {
    // The root is below 2 ln(1 / load) + 1, and above 0.
    let (mut low, mut high) = (0.0, 2.0 * (1.0 / load).ln() + 1.0);
    for _ in 0..STEPS {
        let middle = 0.5 * (low + high);
        if load * middle.exp_m1() < middle { low = middle } else { high = middle }
    }
    (low, (1.0 - load) / (load * low.exp() - 1.0))
}

pub(crate) static STALE_QUEUE: Rule = Rule {
    code: "S026",
    name: "stale-queue",
    severity: Severity::Warning,
    title: "the server's queue outlives its callers",
    rationale: "once the queue is full, the server completes nothing but requests whose callers have given up; it is \
                busy and useless until the queue is worked off, without a single retry",
    details: "Applies if `--backlog`, `--capacity` and `--attempt-timeout` are given, and the queue holds more work \
              than the timeout. A stall that fills the queue leaves `backlog` stale requests; without retries, it \
              takes (backlog - capacity * timeout) / (capacity - load) until requests are answered in time again, and \
              retries prolong it, possibly for ever. A queue that is no longer than the timeout rejects what it could \
              not serve in time; rejected attempts cost the server nothing, and may be retried. A server that drops \
              requests whose deadline has passed does as well.",
    check: stale_queue,
};

fn stale_queue(analysis: &PolicyAnalysis<'_>) -> Option<Diagnosis> {
    let known = analysis.context;
    let (backlog, capacity) = (f64::from(known.backlog?.get()), known.capacity?.get());
    let timeout = known.attempt_timeout?;
    let in_time = capacity * timeout.as_secs_f64();
    if backlog <= in_time.max(1.0) || known.purpose == Some(Purpose::Reconnecting) {
        return None;
    }
    let seconds = |seconds: f64| brief(Duration::try_from_secs_f64(seconds).unwrap_or(Duration::MAX));
    let fact =
        format!("{backlog} requests are {} of work; callers wait {}", seconds(backlog / capacity), brief(timeout));
    let shorter = in_time.floor().max(1.0);
    let advice = format!(
        "a queue of at most {shorter} requests, which the server can answer within the timeout, or a server that drops \
         requests whose callers have given up"
    );
    let found = Diagnosis::new(fact).advise(advice);
    let Some((load, capacity)) = rates(analysis) else { return Some(found) };
    if load >= capacity {
        return Some(found);
    }
    let lasts = seconds((backlog - in_time) / (capacity - load));
    // Half as long again as it takes to fill the queue, because chance decides how many requests arrive.
    let down = Duration::try_from_secs_f64((1.5 * backlog / load).ceil()).unwrap_or(Duration::MAX);
    let command = format!(
        "simulated by: stagger simulate outage --rate {load}/s --capacity {capacity}/s --timeout {} --down {} --sweep \
         backlog={backlog},{shorter} -p stop",
        Compact(timeout),
        Compact(down)
    );
    Some(
        found
            .and(format!(
                "after a stall that fills it, the server answers no request in time for {lasts}, without a single retry"
            ))
            .and(command),
    )
}
