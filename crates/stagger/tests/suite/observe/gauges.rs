//! [`Gauges`]: the state and counters of guards, collected on request.

use core::num::NonZeroUsize;
use core::task::{Context, Poll, Waker};
use std::sync::Arc;

use stagger::admission::{Admission, Secret};
use stagger::breaker::CircuitBreaker;
use stagger::budget::{ControlMode, ControlSetting, Controlled, Tokens};
use stagger::control::RetryControls;
use stagger::guard::{Answer, Ask, End, Keyed, Permit, QuietPeriod};
use stagger::observe::Gauges;
use stagger::testing::VirtualClock;
use stagger::time::Clock as _;
use stagger::{FailureKind, Guard, Instant, Outcome, Policy, PollRetry, Ratio, Retrier, Seed, ServerHint, policy};

use super::support::{Logs, Metrics};
use crate::suite::support::ms;

fn key(name: &str, label: &str) -> (String, String) {
    (format!("stagger_{name}"), label.to_owned())
}

fn record_failure(breaker: &CircuitBreaker, clock: &VirtualClock) {
    record(breaker, &Outcome::TRANSIENT, clock);
}

fn record(breaker: &CircuitBreaker, outcome: &Outcome, clock: &VirtualClock) {
    let Answer::Go(permit) = ask(breaker, clock) else { panic!("it rejects") };
    breaker.settle(permit, End::Made(outcome), &clock.now());
}

fn ask(guard: &dyn Guard, clock: &VirtualClock) -> Answer {
    guard.ask(Ask::FIRST, Permit::NONE, &clock.now())
}

#[test]
fn the_retries_left_follow_the_guard_and_are_nan_while_unknown() {
    let (metrics, controls) = (Metrics::new(), RetryControls::new());
    let tokens = Arc::new(Tokens::builder().capacity(3).cost(1).build().unwrap());
    let budget = Arc::new(Controlled::new(tokens, controls.control("api")));
    let gauges = Gauges::new().guard("api", Arc::clone(&budget) as Arc<dyn Guard>);
    let seen = || {
        metrics.during(|| gauges.record());
        let values = metrics.values("api");
        ["guard_left", "guards_exhausted", "guards_holding"].map(|name| values[&key(name, "budget")])
    };
    assert_eq!(seen(), [3.0, 0.0, 0.0]);
    let _ = budget.reserve(FailureKind::Transient, &Instant::ZERO);
    assert_eq!(seen(), [2.0, 0.0, 0.0]);
    controls.set("api", ControlMode::Observed);
    assert!(seen()[0].is_nan());
    controls.set("api", ControlMode::Enforced);
    for _ in 0..2 {
        let _ = budget.reserve(FailureKind::Transient, &Instant::ZERO);
    }
    assert_eq!(seen(), [0.0, 1.0, 0.0]);
}

#[test]
fn a_control_shows_that_it_grants_no_retry() {
    let (metrics, controls) = (Metrics::new(), RetryControls::new());
    let gauges = Gauges::new().guard("api", controls.control("api"));
    let seen = || {
        metrics.during(|| gauges.record());
        let values = metrics.values("api");
        ["guard_left", "guards_exhausted"].map(|name| values[&key(name, "control")])
    };
    assert!(seen()[0].is_nan());
    controls.set("api", ControlMode::NoRetries);
    assert_eq!(seen(), [0.0, 1.0]);
}

#[test]
fn a_breaker_reports_one_state_and_its_own_counters() {
    let (metrics, clock) = (Metrics::new(), VirtualClock::new());
    let breaker = Arc::new(CircuitBreaker::builder(Seed::new(1)).consecutive(1).build().unwrap());
    record_failure(&breaker, &clock);
    for _ in 0..3 {
        assert!(matches!(ask(&*breaker, &clock), Answer::No { .. }));
    }
    // The first collection includes earlier counts, and collecting twice does not count twice.
    let gauges = Gauges::with_clock(clock.clone()).breaker("api", Arc::clone(&breaker));
    let gauges = gauges.guard("api", Arc::clone(&breaker) as Arc<dyn Guard>);
    metrics.during(|| (gauges.record(), gauges.record()));
    let values = metrics.values("api");
    for (state, is) in
        [("closed", 0.0), ("open", 1.0), ("half_open", 0.0), ("forced_open", 0.0), ("forced_closed", 0.0)]
    {
        assert_eq!(values[&key("breaker_state", state)], is, "{state}");
    }
    assert_eq!(values[&key("breaker_transitions_total", "")], 1.0);
    assert_eq!(values[&key("breaker_rejections_total", "")], 3.0);
    assert_eq!(values[&key("guards_holding", "breaker")], 1.0);
    clock.advance(ms(60_000));
    let _ = ask(&*breaker, &clock);
    metrics.during(|| gauges.record());
    let values = metrics.values("api");
    assert_eq!((values[&key("breaker_state", "open")], values[&key("breaker_state", "half_open")]), (0.0, 1.0));
}

#[test]
fn every_control_reports_its_rejections_by_cause() {
    let (metrics, controls) = (Metrics::new(), RetryControls::new());
    let gauges = Gauges::new().controls(&controls);
    let control = controls.control("api");
    let tokens = Tokens::builder().capacity(1).cost(1).reward(0).build().unwrap();
    let api = Controlled::new(Arc::new(tokens), Arc::clone(&control));
    // As a retrier asks them: the guard under the control first.
    let granted = || {
        let is_granted = |guard: &dyn Guard| guard.reserve(FailureKind::Transient, &Instant::ZERO).is_some();
        is_granted(&api) && is_granted(&*control)
    };
    let acquire = |times| (0..times).filter(|_| granted()).count();
    let _ = acquire(3);
    controls.set("api", ControlMode::Observed);
    let _ = acquire(3);
    controls.set("api", ControlMode::NoRetries);
    let _ = (0..4).filter(|_| control.reserve(FailureKind::Transient, &Instant::ZERO).is_some()).count();
    controls.set("api", ControlSetting::new(ControlMode::Off, Ratio::percent(50)));
    let _ = acquire(10);
    let _ = controls.control("later");
    metrics.during(|| (gauges.record(), gauges.record()));
    let values = metrics.values("api");
    for (cause, rejections) in [("guards", 2.0), ("observed", 3.0), ("no_retries", 4.0), ("share", 5.0)] {
        assert_eq!(values[&key("control_rejections_total", cause)], rejections, "{cause}");
    }
    for (mode, is) in [("enforced", 0.0), ("observed", 0.0), ("off", 1.0), ("no-retries", 0.0)] {
        assert_eq!(values[&key("control_mode", mode)], is, "{mode}");
    }
    assert_eq!(values[&key("control_share", "")], 0.5);
    metrics.during(|| gauges.record());
    assert_eq!(metrics.values("later")[&key("control_mode", "enforced")], 1.0);
}

#[test]
fn an_admission_is_collected_with_the_given_clock() {
    let (metrics, clock) = (Metrics::new(), VirtualClock::new());
    let admission = Arc::new(Admission::per_second(10).burst(2).build(Secret::new([1; 16])).unwrap());
    let gauges = Gauges::with_clock(clock.clone()).admission("door", Arc::clone(&admission));
    let seen = || {
        metrics.during(|| gauges.record());
        let values = metrics.values("door");
        ["reserved", "wait_seconds", "available"].map(|name| values[&key(&format!("admission_{name}"), "")])
    };
    clock.advance(ms(1_000));
    assert_eq!(seen(), [0.0, 0.0, 2.0]);
    (0..5).for_each(|_| {
        admission.try_admit(clock.now());
    });
    let [reserved, wait, available] = seen();
    assert_eq!((reserved, available), (3.0, 0.0));
    clock.advance(ms(100));
    let [later, less, _] = seen();
    assert_eq!((later, ((wait - less) * 1e3).round()), (2.0, 100.0));
}

#[test]
fn a_change_emits_one_event_and_collecting_emits_none() {
    let (logs, clock, controls) = (Logs::default(), VirtualClock::new(), RetryControls::new());
    let breaker = Arc::new(CircuitBreaker::builder(Seed::new(1)).consecutive(1).build().unwrap());
    let _ = controls.control("api");
    let gauges = Gauges::with_clock(clock.clone()).breaker("api", Arc::clone(&breaker)).controls(&controls);
    let events = || {
        logs.during(|| (0..3).for_each(|_| gauges.record()));
        logs.take()
    };
    assert!(events().is_empty());
    record_failure(&breaker, &clock);
    let fields = |state, was, cause, n| {
        format!(r#"target_name="api" state="{state}" was="{was}" cause="{cause}" transitions={n}"#)
    };
    assert_eq!(events(), [format!("WARN|breaker changed|{}", fields("open", "closed", "consecutive", 1))]);
    clock.advance(ms(60_000));
    record(&breaker, &Outcome::Success, &clock);
    assert_eq!(events(), [format!("INFO|breaker changed|{}", fields("closed", "open", "probes", 2))]);
    controls.apply("api=observed 25%").unwrap();
    assert_eq!(events(), [r#"WARN|operator control changed|target_name="api" setting="observed 25%" was="enforced""#]);
    controls.set("*", ControlMode::Enforced);
    assert_eq!(events(), [r#"INFO|operator control changed|target_name="api" setting="enforced" was="observed 25%""#]);
    assert!(events().is_empty());
}

/// The values of the metrics of guards by key: keys with a budget, budgets without a retry left, fewest retries left,
/// keys with a breaker, breakers that let no call start.
fn keyed(metrics: &Metrics, gauges: &Gauges<VirtualClock>, target: &str) -> [Option<f64>; 5] {
    metrics.during(|| gauges.record());
    let values = metrics.values(target);
    [
        ("keyed_guards", "budget"),
        ("guards_exhausted", "budget"),
        ("guard_left", "budget"),
        ("keyed_guards", "breaker"),
        ("guards_holding", "breaker"),
    ]
    .map(|(name, guard)| values.get(&key(name, guard)).copied())
}

fn two_retries() -> Tokens {
    Tokens::builder().capacity(2).cost(1).build().unwrap()
}

fn one_failure() -> CircuitBreaker {
    CircuitBreaker::builder(Seed::new(1)).consecutive(1).build().unwrap()
}

#[test]
fn guards_by_key_are_told_without_their_keys() {
    let (metrics, clock) = (Metrics::new(), VirtualClock::new());
    let budgets: Arc<Keyed<String, Tokens>> = Arc::new(Keyed::guards(two_retries));
    let breakers: Arc<Keyed<String, CircuitBreaker>> = Arc::new(Keyed::guards(one_failure));
    let gauges =
        Gauges::with_clock(clock.clone()).keyed("hosts", Arc::clone(&budgets)).keyed("hosts", Arc::clone(&breakers));
    let seen = || keyed(&metrics, &gauges, "hosts").map(Option::unwrap);
    // Only those are there that keys without a place would share.
    assert_eq!(seen(), [0.0, 0.0, 2.0, 0.0, 0.0]);
    let budget = budgets.of("down", clock.now());
    let _ = budgets.of("up", clock.now());
    for (left, exhausted) in [(1.0, 0.0), (0.0, 1.0)] {
        let _ = budget.reserve(FailureKind::Transient, &clock.now());
        assert_eq!(seen(), [2.0, exhausted, left, 0.0, 0.0]);
    }
    let _ = breakers.of("up", clock.now());
    record_failure(&breakers.of("down", clock.now()), &clock);
    assert_eq!(seen(), [2.0, 1.0, 0.0, 2.0, 1.0]);
    // The open time is over, and the next call would be a probe.
    clock.advance(ms(60_000));
    assert_eq!(seen(), [2.0, 1.0, 0.0, 2.0, 0.0]);
    metrics.during(|| gauges.record());
    for (name, seen) in metrics.all() {
        assert!(seen.labels.keys().all(|label| ["target", "guard"].contains(&&**label)), "{name}: {:?}", seen.labels);
    }
}

#[test]
fn the_guard_that_keys_without_a_place_share_is_told() {
    let (metrics, clock) = (Metrics::new(), VirtualClock::new());
    let one = NonZeroUsize::MIN;
    let breakers: Arc<Keyed<u32, CircuitBreaker>> = Arc::new(Keyed::guards(one_failure).max_keys(one));
    let gauges = Gauges::with_clock(clock.clone()).keyed("hosts", Arc::clone(&breakers));
    let in_use = breakers.of(&1, clock.now());
    record_failure(&breakers.of(&2, clock.now()), &clock);
    assert_eq!(keyed(&metrics, &gauges, "hosts"), [None, None, None, Some(1.0), Some(1.0)]);
    drop(in_use);
}

/// Makes a call to this target, which fails until it is given up.
fn fail_to(retrier: &Retrier, host: &str, clock: &VirtualClock) {
    let mut call = PollRetry::new(retrier, clock.clone()).target(host);
    let mut cx = Context::from_waker(Waker::noop());
    while matches!(call.poll_begin(&mut cx), Poll::Ready(Ok(_))) {
        if call.failed::<()>(Outcome::TRANSIENT, None).is_some() {
            return;
        }
    }
}

#[test]
fn late_targets_have_guards_from_their_failure_until_they_are_at_rest() {
    let (metrics, clock) = (Metrics::new(), VirtualClock::new());
    let retrier = Retrier::new(policy!(zero().max_attempts(2))).named("api").budget(two_retries());
    let gauges = Gauges::with_clock(clock.clone()).targets(&retrier);
    let seen = || keyed(&metrics, &gauges, "api");
    let begun = || {
        let mut call = PollRetry::new(&retrier, clock.clone()).late_target(|| "a");
        assert!(call.poll_begin(&mut Context::from_waker(Waker::noop())).is_ready());
        call
    };
    let at_rest = [Some(0.0), Some(0.0), Some(2.0), None, None];
    begun().succeeded_at(|| "a");
    assert_eq!(seen(), at_rest);
    let mut call = begun();
    assert_eq!(call.failed_at::<(), _>(|| "a", Outcome::TRANSIENT, None), None);
    assert_eq!(seen(), [Some(1.0), Some(0.0), Some(1.0), None, None]);
    assert!(call.poll_begin(&mut Context::from_waker(Waker::noop())).is_ready());
    call.succeeded_at(|| "a");
    assert_eq!(seen(), at_rest);
}

/// The targets are hosts that the calls name, as the origins of an HTTP client.
#[test]
fn the_guards_of_a_retrier_s_targets_are_told_under_its_name() {
    let (metrics, clock) = (Metrics::new(), VirtualClock::new());
    let budgets = Retrier::new(policy!(zero().max_attempts(2))).named("api").budget(two_retries());
    let gauges = Gauges::with_clock(clock.clone()).targets(&budgets);
    assert_eq!(keyed(&metrics, &gauges, "api"), [Some(0.0), Some(0.0), Some(2.0), None, None]);
    fail_to(&budgets, "down", &clock);
    assert_eq!(keyed(&metrics, &gauges, "api"), [Some(1.0), Some(0.0), Some(1.0), None, None]);
    let both = budgets.breaker(one_failure());
    let gauges = Gauges::with_clock(clock.clone()).targets(&both);
    // A listener that is added later does not separate the guards.
    fail_to(&both.on_event(|_| {}), "down", &clock);
    assert_eq!(keyed(&metrics, &gauges, "api"), [Some(1.0), Some(0.0), Some(2.0), Some(1.0), Some(1.0)]);
    // Those that all targets share are for `guard`.
    let shared = Retrier::new(Policy::DEFAULT).named("shared").shared_guard(Arc::new(two_retries()));
    let gauges = Gauges::with_clock(clock).targets(&shared);
    assert_eq!(keyed(&metrics, &gauges, "shared"), [None; 5]);
}

#[test]
fn a_quiet_period_shows_its_pauses_and_the_calls_that_it_held() {
    for (max_waiting, held) in [(5, [1.0, 1.0, 0.0]), (0, [0.0, 0.0, 1.0])] {
        let (metrics, clock) = (Metrics::new(), VirtualClock::new());
        let quiet = Arc::new(QuietPeriod::builder().max_waiting(max_waiting).build().unwrap());
        let gauges = Gauges::with_clock(clock.clone()).quiet_period("api", Arc::clone(&quiet));
        let hint = Outcome::throttled(Some(ServerHint::AtLeast(ms(10_000))));
        quiet.settle(Permit::NONE, End::Made(&hint), &clock.now());
        let _ = ask(&*quiet, &clock);
        metrics.during(|| gauges.record());
        let values = metrics.values("api");
        let seen = [
            ("quiet_waiting", ""),
            ("quiet_calls_total", "waited"),
            ("quiet_calls_total", "rejected"),
            ("quiet_pauses_total", ""),
            ("guards_holding", "quiet"),
        ]
        .map(|(name, label)| values[&key(name, label)]);
        assert_eq!(seen, [held[0], held[1], held[2], 1.0, 1.0], "{max_waiting}");
    }
}
