//! A quiet period of two processes, with a real store.

use core::time::Duration;
use std::sync::{Arc, Mutex};

use stagger::guard::{Answer, Ask, End, Guard as _, Permit, QuietPeriod};
use stagger::time::{Clock as _, SystemClock};
use stagger::{Outcome, ServerHint};
use stagger_kit::{Port, Signal};
use stagger_redis::{Fleet, FleetEvent, SettingsProblem, SharedQuietPeriod};

use super::sharing::until;
use super::worker::{Redis, documented_user};

/// Tells a process to wait, as a server would.
fn tell(quiet: &SharedQuietPeriod, millis: u64) {
    let hint = ServerHint::AtLeast(Duration::from_millis(millis));
    quiet.settle(Permit::NONE, End::Made(&Outcome::throttled(Some(hint))), &SystemClock.now());
}

/// Returns for how long a call that asks now waits.
fn wait(quiet: &SharedQuietPeriod) -> Duration {
    quiet.retry_in(&SystemClock.now())
}

/// Starts a call, if one may start.
fn start(quiet: &SharedQuietPeriod) -> Option<Permit> {
    match quiet.ask(Ask::FIRST, Permit::NONE, &SystemClock.now()) {
        Answer::Go(permit) => Some(permit),
        Answer::Wait { permit, .. } => {
            quiet.settle(permit, End::NeverMade, &SystemClock.now());
            None
        }
        Answer::No { .. } => None,
    }
}

#[tokio::test]
async fn what_one_process_is_told_holds_the_other_within_a_second_and_one_probe_goes_first() {
    let redis = Redis::start(&[]);
    let events = Arc::new(Mutex::new(Vec::new()));
    let told = Arc::clone(&events);
    let url = redis.url();
    let builder = Fleet::builder(&url, 2).on_event(move |event| told.lock().unwrap().push(event.clone()));
    let (one, two) = (builder.build().unwrap(), Fleet::builder(&redis.url(), 2).build().unwrap());
    let guards = [two, one.clone()].map(|fleet| fleet.quiet_period("api").build().unwrap());
    let [first, second] = &guards;
    until(|| one.snapshot().processes == 2).await;

    let begun = tokio::time::Instant::now();
    tell(first, 2_500);
    assert!(start(first).is_none(), "at once in the process that was told");
    until(|| !wait(second).is_zero()).await;
    let learned = begun.elapsed();
    assert!(learned < Duration::from_millis(1_400), "a period and a round trip: {learned:?}");
    let ends = learned + wait(second);
    assert!(ends >= Duration::from_millis(2_490) && ends < Duration::from_millis(4_200), "{ends:?}");

    // Both want to call, and one may.
    let mut probes = Vec::new();
    until(|| {
        let started = guards.iter().enumerate().filter_map(|(index, quiet)| Some((index, start(quiet)?)));
        probes.extend(started);
        !probes.is_empty()
    })
    .await;
    assert!(begun.elapsed() >= Duration::from_millis(2_490));
    // As long as a call may take.
    for _ in 0..100 {
        assert!(guards.iter().all(|quiet| start(quiet).is_none()), "the probe has no answer yet");
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    let (prober, permit) = probes.pop().unwrap();
    assert!(probes.is_empty());
    guards[prober].settle(permit, End::Made(&Outcome::Success), &SystemClock.now());
    let answered = tokio::time::Instant::now();
    until(|| start(&guards[1 - prober]).is_some()).await;
    assert!(answered.elapsed() < Duration::from_millis(2_800), "{:?}", answered.elapsed());
    let paused = |event: &FleetEvent| matches!(event, FleetEvent::Paused { target, .. } if target == "api");
    assert_eq!(events.lock().unwrap().iter().filter(|event| paused(event)).count(), 1);
}

#[tokio::test]
async fn a_hint_reaches_the_fleet_up_to_the_longest_pause_and_its_keys_expire() {
    let redis = Redis::start(&[]);
    let [one, two] = [(); 2].map(|()| Fleet::builder(&redis.url(), 2).namespace("shop").build().unwrap());
    let longest = || QuietPeriod::builder().max(Duration::from_secs(20)).build().unwrap();
    let [first, second] = [&one, &two].map(|fleet| fleet.quiet_period("api").local(longest()).build().unwrap());
    until(|| two.snapshot().is_leased).await;
    tell(&first, 3_600_000);
    until(|| !second.remaining().is_zero()).await;
    assert!(wait(&second) <= Duration::from_secs(20), "{:?}", wait(&second));
    for key in ["{stagger:shop}:api:quiet", "{stagger:shop}:processes"] {
        let redis::Value::Int(ttl) = redis.run(&format!("PTTL {key}")) else { panic!("{key}") };
        assert!((3_500_000..=3_600_000).contains(&ttl), "{key}: {ttl}");
    }
    assert_eq!(
        one.quiet_period("api").build().unwrap_err().problems(),
        [SettingsProblem::OtherLimits],
        "the longest pause is another"
    );
}

#[tokio::test]
async fn a_store_that_is_away_or_hangs_holds_and_delays_no_call() {
    let port = Port::reserve().unwrap();
    let away = Fleet::builder(&format!("redis://{}", port.address()), 8).build().unwrap();
    let mut redis = Redis::start(&[]);
    let hanging = Fleet::builder(&redis.url(), 8).build().unwrap();
    let guards = [&away, &hanging].map(|fleet| fleet.quiet_period("api").build().unwrap());
    until(|| hanging.snapshot().is_leased).await;
    redis.server.running().unwrap().signal(Signal::STOP).unwrap();
    for quiet in &guards {
        let begun = tokio::time::Instant::now();
        assert!(start(quiet).is_some());
        tell(quiet, 1_000);
        assert!(start(quiet).is_none());
        assert!(begun.elapsed() < Duration::from_millis(50), "{:?}", begun.elapsed());
    }
    // What each process was told ends by itself, spread over a second.
    let begun = tokio::time::Instant::now();
    until(|| guards.iter().all(|quiet| start(quiet).is_some())).await;
    assert!(begun.elapsed() < Duration::from_millis(3_000), "{:?}", begun.elapsed());
}

#[tokio::test]
async fn quiet_periods_need_the_documented_commands_only() {
    let redis = Redis::start(&[]);
    let url = documented_user(&redis, "A quiet period needs ");
    let fleet = Fleet::builder(&url, 1).namespace("shop").build().unwrap();
    let quiet = fleet.quiet_period("t").build().unwrap();
    until(|| fleet.snapshot().reports > 0).await;
    // A pause that is decided, one that is told, its probe and its end.
    for _ in 0..20 {
        quiet.settle(Permit::NONE, End::Made(&Outcome::throttled(None)), &SystemClock.now());
    }
    tell(&quiet, 1_000);
    until(|| !quiet.remaining().is_zero() || fleet.snapshot().failures > 0).await;
    until(|| start(&quiet).is_some()).await;
    quiet.settle(Permit::NONE, End::Made(&Outcome::Success), &SystemClock.now());
    let reports = fleet.snapshot().reports;
    until(|| fleet.snapshot().reports > reports + 2).await;
    assert_eq!(fleet.snapshot().failures, 0);
}
