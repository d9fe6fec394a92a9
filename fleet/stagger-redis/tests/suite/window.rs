//! Windows that processes share: the retries of all are a share of the calls of all.

use core::time::Duration;

use stagger::guard::{Ask, End, Guard as _, Permit};
use stagger::{FailureKind, Instant, Ratio};
use stagger_kit::Port;
use stagger_redis::{Fleet, SettingsProblem, SharedWindow};

use super::sharing::until;
use super::worker::{Calls, Log, Redis, Workers};

const NOW: Instant = Instant::ZERO;

fn build(fleet: &Fleet) -> SharedWindow {
    fleet.window("t").ratio(Ratio::percent(10)).min_per_second(1).build().unwrap()
}

fn calls(window: &SharedWindow, calls: usize) {
    for _ in 0..calls {
        let _ = window.ask(Ask::FIRST, Permit::NONE, &NOW);
    }
}

fn retries(window: &SharedWindow) -> u64 {
    let granted = || window.reserve(FailureKind::Transient, &NOW);
    core::iter::repeat_with(granted).take_while(Option::is_some).count() as u64
}

#[test]
fn w1_the_retries_of_eight_processes_are_a_share_of_the_calls_of_all() {
    let redis = Redis::start(&[]);
    let workers = Workers::start_with(&redis.url(), 7.0, &[Calls::Fail; 8], &[("FLEET_WINDOW", "1")]);
    let log = Log::sum(&workers.finish());
    // A fifth of 200 calls per second and process, and ten times ten.
    let allowed = 0.2 * 8.0 * 200.0 * 7.0 + 100.0;
    let retries = log.retries.len() as f64;
    println!("{retries} of {allowed}");
    // Of the last two seconds, the calls are reported and leased, but not all of the leases are used.
    assert!(retries <= allowed && retries >= 0.6 * allowed, "{retries} of {allowed}");
    assert!(log.reports.iter().all(|reports| *reports <= 7 + 3), "{:?}", log.reports);
    assert_eq!((log.reports.len(), log.losses.iter().sum::<u64>()), (8, 0));
    assert!(log.slowest.iter().all(|micros| *micros < 1_000), "{:?}", log.slowest);
}

#[tokio::test]
async fn a_process_that_fails_has_the_retries_that_the_calls_of_others_allow() {
    let redis = Redis::start(&[]);
    let [failing, other] = [(); 2].map(|()| Fleet::builder(&redis.url(), 2).build().unwrap());
    let (failing, other) = (build(&failing), build(&other));
    calls(&other, 900);
    calls(&failing, 10);
    let mut granted = 0;
    until(|| {
        granted += retries(&failing);
        // Of a tenth of 910, and ten: all but what the other holds for a first retry.
        granted >= 99
    })
    .await;
    assert!(granted <= 101, "{granted}");
    drop(other);
}

#[tokio::test]
async fn without_a_store_a_process_has_a_share_of_its_own_calls() {
    let port = Port::reserve().unwrap();
    let fleet = Fleet::builder(&format!("redis://{}", port.address()), 5).build().unwrap();
    let window = build(&fleet);
    calls(&window, 100);
    assert_eq!(retries(&window), 0);
    until(|| window.snapshot().held > 0).await;
    // A tenth of 100, and a fifth of ten.
    assert_eq!(retries(&window), 12);
    let permit = {
        calls(&window, 10);
        until(|| window.snapshot().held > 0).await;
        window.reserve(FailureKind::Transient, &NOW).unwrap()
    };
    assert_eq!(window.available(), Some(0));
    window.settle(permit, End::NeverMade, &NOW);
    assert_eq!(window.available(), Some(1));
}

#[tokio::test]
async fn windows_that_cannot_work_are_rejected() {
    let fleet = Fleet::builder("redis://127.0.0.1:1", 1).build().unwrap();
    let ttl = Duration::from_secs(1);
    let error = fleet.window("").ttl(ttl).ratio(Ratio::percent(150)).min_per_second(u32::MAX).build().unwrap_err();
    let want = [
        SettingsProblem::EmptyName,
        SettingsProblem::WindowLength(ttl),
        SettingsProblem::Ratio(Ratio::percent(150)),
        SettingsProblem::Minimum(u64::from(u32::MAX)),
    ];
    assert_eq!(error.problems(), want);
    let _window = build(&fleet);
    let other = fleet.window("t").ttl(Duration::from_secs(20)).build().unwrap_err();
    assert_eq!(other.problems(), [SettingsProblem::OtherLimits]);
    assert!(fleet.tokens("t").build().is_ok(), "another kind of budget");
}
