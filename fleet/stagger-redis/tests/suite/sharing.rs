//! Fleets in one process: what is shared, what is handed back, and what is wrong.

use core::time::Duration;
use std::sync::{Arc, Mutex};

use stagger::guard::{End, Guard as _, Permit};
use stagger::{FailureKind, Instant};
use stagger_kit::Port;
use stagger_redis::{Fleet, FleetEvent, SettingsProblem, SharedTokens};

use super::worker::Redis;

const NOW: Instant = Instant::ZERO;

fn retries(tokens: &SharedTokens) -> u64 {
    let granted = || tokens.reserve(FailureKind::Transient, &NOW);
    core::iter::repeat_with(granted).take_while(Option::is_some).count() as u64
}

/// Waits until it is true, as a process would that asks for retries all the time.
pub(crate) async fn until(mut is_true: impl FnMut() -> bool) {
    let wait = async {
        while !is_true() {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    };
    tokio::time::timeout(Duration::from_secs(60), wait).await.unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn f4_a_thousand_clients_that_ask_at_once_have_the_capacity_together() {
    stagger_kit::raise_descriptor_limit(3_000).unwrap();
    let redis = Redis::start(&["--maxclients", "2000"]);
    let fleets: Vec<_> =
        (0..1_000).map(|_| Fleet::builder(&redis.url(), 1_000).namespace("many").build().unwrap()).collect();
    let tokens: Vec<_> =
        fleets.iter().map(|fleet| fleet.tokens("t").capacity(500).reward(0).build().unwrap()).collect();
    let mut granted = 0;
    let mut ask = || {
        granted += tokens.iter().map(retries).sum::<u64>();
        granted * 5
    };
    // Until nearly all have had a reply.
    until(|| {
        ask();
        fleets.iter().filter(|fleet| fleet.snapshot().processes > 0).count() >= 950
    })
    .await;
    // What was granted last may be on its way.
    until(|| ask() >= 475).await;
    // A process that the machine has not run for the length of its lease may spend it when the store has given it to
    // others.
    assert!(ask() <= 525, "{}", ask());
}

#[tokio::test]
async fn a_lease_is_handed_back_when_its_last_handle_is_dropped() {
    let redis = Redis::start(&[]);
    let [one, other] = [(); 2].map(|()| Fleet::builder(&redis.url(), 2).build().unwrap());
    let build = |fleet: &Fleet| fleet.tokens("t").capacity(100).cost(5).reward(0).build().unwrap();
    let (first, second) = (build(&one), build(&other));
    // The first takes the whole bucket and spends one half of it.
    until(|| {
        let _ = first.reserve(FailureKind::Transient, &NOW);
        first.snapshot().held >= 40
    })
    .await;
    let clone = first.clone();
    drop(first);
    assert!(clone.available().is_some_and(|retries| retries > 0), "a clone keeps it");
    let held = clone.snapshot().held;
    drop((clone, one));
    let mut granted = 0;
    until(|| {
        granted += retries(&second);
        granted * 5 >= held
    })
    .await;
    assert!(granted * 5 <= 100);
}

#[tokio::test]
async fn a_fleet_that_is_closed_has_handed_its_leases_back_and_told_what_it_spent() {
    let redis = Redis::start(&[]);
    for _ in 0..2 {
        let url = redis.url();
        let fleet = Fleet::builder(&url, 1).patience(Duration::from_millis(250)).build().unwrap();
        let tokens = fleet.tokens("t").capacity(4).cost(1).reward(0).build().unwrap();
        until(|| fleet.snapshot().answered > 0).await;
        // Two of four each time.
        assert_eq!(retries(&tokens), 2);
        drop(tokens);
        fleet.close().await;
    }
    let fleet = Fleet::builder(&redis.url(), 1).build().unwrap();
    let tokens = fleet.tokens("t").capacity(4).cost(1).reward(0).build().unwrap();
    until(|| fleet.snapshot().answered > 0).await;
    assert_eq!((retries(&tokens), tokens.snapshot().left), (0, 0));
}

#[tokio::test]
async fn a_fleet_without_a_store_is_closed_at_once() {
    let port = Port::reserve().unwrap();
    let fleet = Fleet::builder(&format!("redis://{}", port.address()), 1).build().unwrap();
    let tokens = fleet.tokens("t").build().unwrap();
    drop(tokens);
    let begun = tokio::time::Instant::now();
    fleet.close().await;
    assert!(begun.elapsed() < Duration::from_millis(300), "{:?}", begun.elapsed());
}

#[tokio::test]
async fn one_target_of_a_fleet_is_one_lease_with_one_set_of_limits() {
    let port = Port::reserve().unwrap();
    let fleet = Fleet::builder(&format!("redis://{}", port.address()), 1).build().unwrap();
    let build = || fleet.tokens("t").refill(50, Duration::from_secs(1));
    let (one, same) = (build().build().unwrap(), build().build().unwrap());
    let other = build().capacity(400).build().unwrap_err();
    assert_eq!(other.problems(), [SettingsProblem::OtherLimits]);
    until(|| one.snapshot().held > 0).await;
    assert_eq!(one.snapshot(), same.snapshot());
    let names: Vec<_> = (0..63).map(|n| format!("t{n}")).collect();
    let tokens: Vec<_> = names.iter().map(|name| fleet.tokens(name).build().unwrap()).collect();
    assert_eq!(fleet.tokens("more").build().unwrap_err().problems(), [SettingsProblem::TooManyTargets]);
    drop(tokens);
}

#[tokio::test]
async fn the_loss_and_the_return_of_the_store_are_told_once() {
    let mut redis = Redis::start(&[]);
    redis.server.kill();
    let events = Arc::new(Mutex::new(Vec::new()));
    let told = Arc::clone(&events);
    let url = redis.url();
    let fleet = Fleet::builder(&url, 1).on_event(move |event| told.lock().unwrap().push(event.clone()));
    let fleet = fleet.build().unwrap();
    let tokens = fleet.tokens("t").refill(50, Duration::from_secs(1)).build().unwrap();
    until(|| tokens.snapshot().held > 0).await;
    until(|| fleet.snapshot().failures >= 3).await;
    redis.server.restart().unwrap();
    until(|| fleet.snapshot().is_leased).await;
    let events = events.lock().unwrap();
    let [FleetEvent::StoreLost { reason }, FleetEvent::StoreRestored { after }] = &events[..] else {
        panic!("{events:?}")
    };
    assert!(reason.contains("refused"), "{reason}");
    assert!(*after > Duration::ZERO && *after < Duration::from_secs(10));
    assert_eq!(fleet.snapshot().losses, 1);
}

#[tokio::test]
async fn an_account_needs_the_documented_commands_only() {
    const DOCUMENTATION: &str = include_str!("../../src/store.md");
    let (_, list) = DOCUMENTATION.split_once("An account needs ").unwrap();
    let (list, _) = list.split_once(" on these keys").unwrap();
    let commands =
        list.split('`').skip(1).step_by(2).map(|command| format!("+{}", command.to_lowercase().replace(' ', "|")));
    let commands: Vec<_> = commands.collect();
    assert_eq!(commands.len(), 15);
    let redis = Redis::start(&[]);
    // Without one of them there is no lease.
    for left_out in (0..commands.len()).map(Some).chain([None]) {
        let granted = commands.iter().enumerate().filter(|(index, _)| Some(*index) != left_out);
        let granted: Vec<_> = granted.map(|(_, command)| command.as_str()).collect();
        redis.run("ACL SETUSER shop reset");
        redis.run(&format!("ACL SETUSER shop on >secret ~{{stagger:shop}}* {}", granted.join(" ")));
        redis.run("SCRIPT FLUSH");
        let url = format!("redis://shop:secret@{}", redis.port.address());
        let fleet = Fleet::builder(&url, 1).namespace("shop").build().unwrap();
        let _tokens = fleet.tokens("t").build().unwrap();
        let _window = fleet.window("t").build().unwrap();
        until(|| fleet.snapshot().is_leased || fleet.snapshot().failures > 0).await;
        let is_needed_at_once = left_out.is_none_or(|index| !["+hdel", "+zscore"].contains(&commands[index].as_str()));
        assert!(!is_needed_at_once || fleet.snapshot().is_leased == left_out.is_none(), "{left_out:?}");
    }
}

#[test]
fn every_problem_of_the_settings_is_reported_at_once() {
    let error = Fleet::builder("http://host", 0).namespace("").build().unwrap_err();
    use SettingsProblem::{EmptyName, NoProcesses, NoRuntime, Url};
    let [Url(_), NoProcesses, EmptyName, NoRuntime] = error.problems() else { panic!("{error}") };
    assert!(error.to_string().contains("0 processes are expected: use the number that usually runs; "), "{error}");
}

#[tokio::test]
async fn limits_that_cannot_work_are_rejected() {
    let fleet = Fleet::builder("redis://127.0.0.1:1", 1).build().unwrap();
    let error = fleet.tokens("").capacity(0).initial(1).refill(1, Duration::ZERO).build().unwrap_err();
    assert_eq!(
        error.problems(),
        [
            SettingsProblem::EmptyName,
            SettingsProblem::Capacity(0),
            SettingsProblem::InitialAboveCapacity(1),
            SettingsProblem::Cost(5),
            SettingsProblem::RewardAboveCapacity(1),
            SettingsProblem::Refill,
        ]
    );
    let long = "x".repeat(129);
    assert_eq!(fleet.tokens(&long).build().unwrap_err().problems(), [SettingsProblem::LongName(129)]);
    assert!(fleet.tokens("t").capacity(1_000_000_000).refill(u32::MAX, Duration::MAX).build().is_ok());
}

/// Measures F6 and the path of a retry: `cargo nextest run --release -p stagger-redis --run-ignored only --no-capture
/// the_cost`.
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
#[ignore = "measures; run it alone, optimized"]
async fn the_cost_of_a_retry() {
    const RETRIES: u32 = 1_000_000;
    let mut redis = Redis::start(&[]);
    let fleet = Fleet::builder(&redis.url(), 1).build().unwrap();
    let tokens = fleet.tokens("t").capacity(1_000_000_000).cost(1).reward(1).build().unwrap();
    until(|| {
        let is_enough = tokens.snapshot().held > u64::from(RETRIES);
        // What is asked for is the demand, of which the next lease is twice as much. A lease in hand is left for the
        // measurement.
        for _ in 0..if is_enough { 0 } else { RETRIES } {
            let _ = tokens.reserve(FailureKind::Transient, &NOW);
        }
        is_enough
    })
    .await;
    let begun = std::time::Instant::now();
    for _ in 0..RETRIES {
        assert!(tokens.reserve(FailureKind::Transient, &NOW).is_some());
    }
    println!("with a lease in hand: {:?} per retry", begun.elapsed() / RETRIES);
    let begun = std::time::Instant::now();
    for _ in 0..RETRIES {
        tokens.settle(Permit::NONE, End::Made(&stagger::Outcome::Success), &NOW);
    }
    println!("a success: {:?}", begun.elapsed() / RETRIES);
    redis.server.running().unwrap().signal(stagger_kit::Signal::STOP).unwrap();
    until(|| !fleet.snapshot().is_leased).await;
    let mut took: Vec<_> = (0..RETRIES)
        .map(|_| {
            let begun = std::time::Instant::now();
            let _ = tokens.reserve(FailureKind::Transient, &NOW);
            begun.elapsed()
        })
        .collect();
    took.sort_unstable();
    println!(
        "with the store stopped: p50 {:?}, p99 {:?}, with two clock readings",
        took[took.len() / 2],
        took[took.len() * 99 / 100]
    );
}
