//! A guard of the user's own that lets attempts wait: a bulkhead, at every entry point.

use core::cell::Cell;
use core::future::{Future, poll_fn};
use core::sync::atomic::{AtomicUsize, Ordering};
use core::time::Duration;
use std::sync::{Arc, Mutex};
use std::thread;

use futures_lite::future::block_on;
use stagger::budget::ControlMode;
use stagger::control::RetryControls;
use stagger::hedge::{Hedge, hedge};
use stagger::observe::Action;
use stagger::testing::{Recorder, VirtualClock};
use stagger::time::{Clock as _, Tokio};
use stagger::{Cause, Instant, Outcome, Policy, PollRetry, Rejected, Retrier, StopReason, policy};
use tokio::task::JoinSet;
use tokio::time::sleep;

use crate::suite::entry_points::{RETRYING, Run};
use crate::suite::support::{Bulkhead, Fail, ms};

const ONCE: Policy = policy!(constant(ms(10)).jitter(Jitter::None).max_attempts(1));
const TWICE: Policy = policy!(constant(ms(10)).jitter(Jitter::None).max_attempts(2));
const PATIENT: Duration = ms(60_000);
const FULL: StopReason = StopReason::Guard("bulkhead");

/// A bulkhead that frees no place in the first 50 ms.
fn closed(patience: Duration) -> Arc<Bulkhead> {
    let bulkhead = Arc::new(Bulkhead::new(1, patience));
    bulkhead.close_until(Instant::ZERO.saturating_add(ms(50)));
    bulkhead
}

/// Runs an entry point with a bulkhead, and returns its events without their delays, and when it ended.
fn events(retrier: Retrier, bulkhead: &Arc<Bulkhead>, run: Run) -> (Vec<&'static str>, Duration) {
    let (recorder, clock) = (Recorder::new(), VirtualClock::new());
    let retrier = retrier.shared_guard(bulkhead.clone()).classify(Fail::outcome).on_event(recorder.listener());
    run(&retrier, &clock, Fail::TRANSIENT);
    assert_eq!(bulkhead.count(), (0, 0));
    let word = |action: Action| match action {
        Action::Held { .. } => "held",
        Action::Resumed => "resumed",
        Action::Retry { .. } => "retry",
        Action::Stop(stop) => stop.name(),
        _ => "done",
    };
    (recorder.events().iter().map(|event| word(event.action)).collect(), clock.elapsed())
}

/// The bulkhead of the examples.
#[path = "../../../../../dev/examples/bulkhead.rs"]
mod recipe;

#[test]
fn the_bulkhead_of_the_examples_works_at_every_entry_point() {
    const POLICY: Policy = policy!(constant(ms(10)).jitter(Jitter::None).max_attempts(2).max_elapsed(ms(80)));
    for (name, run) in RETRYING {
        for (most, last, ended) in [(1, StopReason::Attempts, ms(10)), (0, FULL, ms(50))] {
            let (recorder, clock) = (Recorder::new(), VirtualClock::new());
            let bulkhead = Arc::new(recipe::Bulkhead::new(most, ms(50)));
            let retrier = Retrier::new(POLICY).shared_guard(bulkhead.clone()).classify(Fail::outcome);
            run(&retrier.on_event(recorder.listener()), &clock, Fail::TRANSIENT);
            let stop = recorder.events().last().map(|event| event.action);
            assert_eq!((stop, bulkhead.in_flight()), (Some(Action::Stop(last)), 0), "{name}, {most}");
            // A queue keeps an item that is rejected, as long as the policy allows.
            let longest = if name == "RetryQueue" { ms(90) } else { ended + ms(15) };
            assert!((ended..=longest).contains(&clock.elapsed()), "{name}, {most}: {:?}", clock.elapsed());
        }
    }
}

#[test]
fn attempts_of_every_entry_point_wait_for_a_place() {
    for (name, run) in RETRYING {
        let (events, ended) = events(Retrier::new(TWICE), &closed(PATIENT), run);
        assert_eq!(events, ["held", "resumed", "retry", "attempts"], "{name}");
        assert!((ms(60)..ms(70)).contains(&ended), "{name}: {ended:?}");
    }
}

#[test]
fn an_attempt_that_has_waited_for_too_long_is_rejected() {
    for (name, run) in RETRYING {
        let (events, ended) = events(Retrier::new(TWICE), &closed(ms(20)), run);
        // A queue keeps its items, and asks again.
        let (want, end) = match name {
            "RetryQueue" => (&["held", "resumed", "retry", "attempts"][..], ms(60)),
            _ => (&["held", "bulkhead"][..], ms(20)),
        };
        assert_eq!(events, want, "{name}");
        assert!((end..end + ms(20)).contains(&ended), "{name}: {ended:?}");
    }
    let retrier = Retrier::new(ONCE).shared_guard(closed(ms(20)));
    let error = retrier.blocking_call(|_| Ok::<_, Fail>(())).timer(VirtualClock::new()).run().unwrap_err();
    let Cause::Rejected(Rejected::ByGuard { guard: "bulkhead", retry_in }) = error.cause() else { panic!("{error:?}") };
    assert_eq!((error.stop_reason(), error.attempts(), *retry_in), (FULL, 0, ms(1)));
}

#[test]
fn the_limits_of_a_call_bound_its_wait() {
    let bulkhead = closed(PATIENT);
    let (clock, retrier) = (VirtualClock::new(), Retrier::new(ONCE).shared_guard(bulkhead.clone()));
    let call = retrier.blocking_call(|_| Ok::<_, Fail>(())).timer(&clock).within(ms(20));
    assert_eq!(call.run().unwrap_err().stop_reason(), FULL);
    let error = block_on(retrier.run_on(&clock, async || Ok::<_, Fail>(())).within(ms(20))).unwrap_err();
    assert_eq!((error.stop_reason(), bulkhead.count()), (FULL, (0, 0)));
    assert!(clock.elapsed() < ms(50));
}

/// An operator can let everybody through, and see whom the bulkhead would have let wait.
#[test]
fn nobody_waits_for_a_guard_that_is_only_observed() {
    for (name, run) in RETRYING {
        let controls = RetryControls::new();
        let api = || Retrier::new(TWICE).controls(&controls);
        for (mode, counted) in [(ControlMode::Observed, 2), (ControlMode::Off, 2)] {
            controls.set("", mode);
            let (events, ended) = events(api(), &closed(PATIENT), run);
            assert_eq!(events, ["retry", "attempts"], "{name}, {mode:?}");
            assert!((ms(10)..ms(12)).contains(&ended), "{name}, {mode:?}: {ended:?}");
            assert_eq!(controls.control("").snapshot().would_have_rejected, counted, "{name}, {mode:?}");
        }
        controls.set("", ControlMode::Enforced);
        let (events, ended) = events(api(), &closed(PATIENT), run);
        assert_eq!(events, ["held", "resumed", "retry", "attempts"], "{name}");
        assert!(ended >= ms(60), "{name}: {ended:?}");
    }
}

/// The most attempts that were in flight together, and the order in which they began.
#[derive(Default)]
struct Server {
    in_flight: AtomicUsize,
    most: AtomicUsize,
    began: Mutex<Vec<usize>>,
}

impl Server {
    fn begin(&self, call: usize) {
        let now = self.in_flight.fetch_add(1, Ordering::SeqCst) + 1;
        self.most.fetch_max(now, Ordering::SeqCst);
        self.began.lock().unwrap().push(call);
    }

    fn end(&self) {
        self.in_flight.fetch_sub(1, Ordering::SeqCst);
    }

    /// Answers after 10 ms.
    async fn answer(&self, call: usize) -> Result<(), Fail> {
        self.begin(call);
        sleep(ms(10)).await;
        self.end();
        Ok(())
    }

    fn expect(&self, what: &str, calls: usize, most: usize) {
        assert_eq!(self.most.load(Ordering::SeqCst), most, "{what}");
        assert_eq!(*self.began.lock().unwrap(), (0..calls).collect::<Vec<_>>(), "{what}: the order");
    }
}

const CALLS: usize = 20;

/// Makes calls at the same time.
async fn at_once<F: Future<Output = ()> + Send + 'static>(call: impl Fn(usize) -> F) {
    let mut calls = JoinSet::new();
    for n in 0..CALLS {
        calls.spawn(call(n));
    }
    calls.join_all().await;
}

/// Makes one call through a [`PollRetry`].
async fn polled(mut call: PollRetry<Tokio>, server: &Server, n: usize) {
    poll_fn(|cx| call.poll_begin(cx)).await.unwrap();
    let mut answer = Box::pin(server.answer(n));
    poll_fn(|cx| call.attempt(|| answer.as_mut().poll(cx))).await.unwrap();
    call.succeeded();
}

#[tokio::test(start_paused = true)]
async fn no_more_attempts_than_allowed_are_in_flight_and_the_others_wait_in_order() {
    for what in ["run", "call", "PollRetry"] {
        let (server, bulkhead) = (Arc::new(Server::default()), Arc::new(Bulkhead::new(3, PATIENT)));
        let api = Retrier::new(TWICE).shared_guard(bulkhead.clone());
        let start = tokio::time::Instant::now();
        at_once(|n| {
            let (api, server) = (api.clone(), Arc::clone(&server));
            async move {
                match what {
                    "run" => api.run(|| server.answer(n)).await.unwrap(),
                    "call" => api.call().attempt(server.answer(n)).await.unwrap().unwrap(),
                    _ => polled(PollRetry::new(&api, Tokio), &server, n).await,
                }
            }
        })
        .await;
        server.expect(what, CALLS, 3);
        // Seven rounds of three, and a check after each.
        assert!((ms(70)..ms(120)).contains(&start.elapsed()), "{what}: {:?}", start.elapsed());
        assert_eq!(bulkhead.count(), (0, 0), "{what}");
    }
}

#[test]
fn blocking_calls_wait_on_their_threads() {
    let (server, bulkhead) = (Server::default(), Arc::new(Bulkhead::new(2, PATIENT)));
    let api = Retrier::new(TWICE).shared_guard(bulkhead.clone());
    thread::scope(|scope| {
        for n in 0..6 {
            let (api, server) = (&api, &server);
            scope.spawn(move || {
                let attempt = || {
                    server.begin(n);
                    thread::sleep(ms(5));
                    server.end();
                    Ok::<_, Fail>(())
                };
                api.blocking(attempt).unwrap();
            });
        }
    });
    assert!(server.most.load(Ordering::SeqCst) <= 2);
    assert_eq!((server.began.lock().unwrap().len(), bulkhead.count()), (6, (0, 0)));
}

/// The retrier was given the bulkhead by value, and makes one for each target.
#[tokio::test(start_paused = true)]
async fn each_target_has_places_of_its_own() {
    let api = Retrier::new(TWICE).guard(Bulkhead::new(2, PATIENT));
    let servers = [(); 2].map(|()| Arc::new(Server::default()));
    let start = tokio::time::Instant::now();
    at_once(|n| {
        let (api, server) = (api.clone(), Arc::clone(&servers[n % 2]));
        async move { polled(PollRetry::new(&api, Tokio).target(n % 2), &server, n / 2).await }
    })
    .await;
    for server in servers {
        server.expect("a target", CALLS / 2, 2);
    }
    // Five rounds of two at each target, at the same time.
    assert!((ms(50)..ms(90)).contains(&start.elapsed()), "{:?}", start.elapsed());
}

/// A retrier with a changed policy, a listener or a rule still calls the same targets.
#[tokio::test(start_paused = true)]
async fn what_does_not_change_the_guards_shares_those_of_the_targets() {
    let api = Retrier::new(TWICE).guard(Bulkhead::new(1, PATIENT));
    let others = [api.with(|policy| policy.max_attempts(1)).unwrap(), api.clone().when(|_: &Fail| true)];
    let server = Arc::new(Server::default());
    at_once(|n| {
        let (api, server) = (others[n % 2].clone(), Arc::clone(&server));
        async move { polled(PollRetry::new(&api, Tokio).target("one"), &server, n).await }
    })
    .await;
    server.expect("one target", CALLS, 1);
}

/// A copy does not wait: without a place for it, the first attempt is left alone.
#[tokio::test(start_paused = true)]
async fn a_copy_without_a_place_is_not_started() {
    const HEDGE: Hedge = Hedge::after(ms(1)).with_max_copies(2);
    for (places, launched) in [(0, 1), (1, 2), (2, 3)] {
        let (bulkhead, recorder) = (Arc::new(Bulkhead::new(places, PATIENT)), Recorder::new());
        let api = Retrier::new(TWICE).shared_guard(bulkhead.clone()).on_event(recorder.listener());
        let slow = async || {
            sleep(ms(100)).await;
            Err::<(), _>(Fail::TRANSIENT)
        };
        let report = hedge(&HEDGE, slow).retrier(&api).with_report().await;
        assert_eq!((report.launched, report.rejected), (launched, places < 2), "{places} places");
        let want = if places < 2 { FULL } else { StopReason::Attempts };
        assert_eq!(recorder.events().last().unwrap().action, Action::Stop(want), "{places} places");
        assert_eq!(bulkhead.count(), (0, 0));
    }
}

/// The first attempt is asked for before it waits: a retry has its place at the end of the line again.
#[test]
fn a_place_is_free_again_after_each_attempt() {
    let bulkhead = Arc::new(Bulkhead::new(1, PATIENT));
    let (clock, api) = (VirtualClock::new(), Retrier::new(TWICE).shared_guard(bulkhead.clone()));
    let attempts = Cell::new(0);
    let attempt = |_| {
        assert_eq!(bulkhead.count(), (1, 0));
        attempts.set(attempts.get() + 1);
        Err::<(), _>(Fail(Outcome::TRANSIENT))
    };
    api.blocking_call(attempt).timer(&clock).run().unwrap_err();
    assert_eq!((attempts.get(), clock.elapsed(), bulkhead.count()), (2, ms(10), (0, 0)));
    assert!(clock.now() > Instant::ZERO);
}
