//! Operator controls that are set once for all processes, with a real store.

use core::time::Duration;
use std::sync::{Arc, Mutex};

use stagger::FailureKind;
use stagger::Guard as _;
use stagger::Instant;
use stagger::control::RetryControls;
use stagger_kit::{Port, Signal};
use stagger_redis::{ControlStore, ControlStoreError, Fleet, FleetEvent};

use super::sharing::until;
use super::worker::Redis;

fn fleet(url: &str, controls: &RetryControls) -> Fleet {
    let fleet = Fleet::builder(url, 2).namespace("shop").build().unwrap();
    fleet.controls(controls);
    fleet
}

#[tokio::test]
async fn what_is_set_once_is_in_force_in_every_process_within_a_period_and_a_round_trip() {
    let mut redis = Redis::start(&[]);
    let processes = [(); 2].map(|()| RetryControls::new());
    let fleets = processes.each_ref().map(|controls| fleet(&redis.url(), controls));
    let targets = processes.each_ref().map(|controls| controls.control("api"));
    let granted = |index: usize| targets[index].reserve(FailureKind::Transient, &Instant::ZERO).is_some();
    until(|| fleets.iter().all(|fleet| fleet.controls_snapshot().unwrap().unconfirmed.is_some())).await;
    assert!(granted(0) && granted(1));
    assert_eq!(fleets[0].controls_snapshot().unwrap().version, 0);

    let mut store = ControlStore::new(&redis.url(), "shop").unwrap();
    assert_eq!(store.read().await, Ok(None));
    let begun = tokio::time::Instant::now();
    let stored = store.set(0, "api=no-retries", "me: slow", None).await.unwrap();
    until(|| !granted(0) && !granted(1)).await;
    assert!(begun.elapsed() < Duration::from_millis(1_400), "{:?}", begun.elapsed());
    let seen = fleets[0].controls_snapshot().unwrap();
    assert_eq!((seen.version, seen.is_obeyed, seen.ends_in), (stored.version, true, None));
    assert!(seen.age.unwrap() < Duration::from_secs(5));
    for (key, least) in [("{stagger:shop}:controls", 2_591_000_000), ("{stagger:shop}:controls-changes", 2_591_000_000)]
    {
        let redis::Value::Int(ttl) = redis.run(&format!("PTTL {key}")) else { panic!("{key}") };
        assert!((least..=2_592_000_000).contains(&ttl), "{key}: {ttl}");
    }

    // The store is gone: the last known value stays, with its age.
    redis.server.running().unwrap().signal(Signal::STOP).unwrap();
    until(|| fleets[0].snapshot().losses == 1).await;
    let seen = fleets[0].controls_snapshot().unwrap();
    assert!(seen.unconfirmed.unwrap() > Duration::from_secs(1) && seen.is_obeyed && !granted(0));
    redis.server.running().unwrap().signal(Signal::CONT).unwrap();

    // It has lost them: they stay as well, and the next ones have a larger version.
    redis.run("FLUSHALL");
    let begun = fleets[0].snapshot().reports;
    until(|| fleets[0].snapshot().reports > begun + 1 && fleets[0].snapshot().is_leased).await;
    assert!(!granted(0));
    let next = store.set(0, "*=enforced", "me: over", None).await.unwrap();
    assert!(next.version > stored.version);
    until(|| granted(0) && granted(1)).await;
}

#[tokio::test]
async fn controls_with_an_end_are_reset_at_it_and_the_event_tells_each_change_once() {
    let redis = Redis::start(&[]);
    let controls = RetryControls::new();
    let events = Arc::new(Mutex::new(Vec::new()));
    let (told, url) = (Arc::clone(&events), redis.url());
    let builder =
        Fleet::builder(&url, 1).namespace("shop").on_event(move |event| told.lock().unwrap().push(event.clone()));
    let fleet = builder.build().unwrap();
    fleet.controls(&controls);
    let mut store = ControlStore::new(&url, "shop").unwrap();
    let length = Some(Duration::from_millis(1_500));
    let first = store.set(0, "*=off", "me: test", length).await.unwrap();
    assert!(first.ends_in.is_some_and(|left| left <= Duration::from_millis(1_500)));
    until(|| controls.setting("api").to_string() == "off").await;
    until(|| controls.setting("api").to_string() == "enforced").await;
    // What another version of the program wrote.
    redis.run("HSET {stagger:shop}:controls text api=nonsense version 4000000000000000 ends -1");
    until(|| events.lock().unwrap().len() == 3).await;
    let events = events.lock().unwrap();
    let [FleetEvent::ControlsChanged { note }, FleetEvent::ControlsEnded, FleetEvent::ControlsRejected { reason }] =
        &events[..]
    else {
        panic!("{events:?}")
    };
    assert!(note == "me: test" && reason.contains("unknown setting `nonsense`"), "{note}, {reason}");
}

#[tokio::test]
async fn a_change_of_what_has_changed_in_the_meantime_is_refused_and_the_last_hundred_are_kept() {
    let redis = Redis::start(&[]);
    let mut store = ControlStore::new(&redis.url(), "shop").unwrap();
    let mut version = 0;
    for number in 0..105 {
        version = store.set(version, "api=25%", &format!("me: {number}"), None).await.unwrap().version;
    }
    let redis::Value::Int(kept) = redis.run("LLEN {stagger:shop}:controls-changes") else { panic!() };
    assert_eq!(kept, 100);
    let Err(ControlStoreError::Changed(now)) = store.set(version - 1, "api=off", "you", None).await else { panic!() };
    assert_eq!((now.version, &*now.note), (version, "me: 104"));
    assert_eq!(store.read().await.unwrap().unwrap().text, "api=25%");
    for (text, note, want) in [
        ("api=none", "me".to_owned(), "unknown setting `none`"),
        (&"#".repeat(20_000), "me".to_owned(), "20000 bytes"),
        ("api=off", "n".repeat(2_000), "2000 bytes"),
    ] {
        let error = store.set(version, text, &note, None).await.unwrap_err();
        assert!(matches!(&error, ControlStoreError::Invalid(_)) && error.to_string().contains(want), "{error}");
    }
}

#[tokio::test]
async fn a_store_that_cannot_be_reached_is_named_within_its_time_limits() {
    let port = Port::reserve().unwrap();
    let begun = tokio::time::Instant::now();
    let error = ControlStore::new(&format!("redis://{}", port.address()), "shop").unwrap().read().await.unwrap_err();
    assert!(matches!(&error, ControlStoreError::Unreachable(_)) && error.to_string().contains("refused"), "{error}");
    let mut redis = Redis::start(&[]);
    redis.server.running().unwrap().signal(Signal::STOP).unwrap();
    let error = ControlStore::new(&redis.url(), "shop").unwrap().read().await.unwrap_err();
    assert!(matches!(error, ControlStoreError::Unreachable(_)), "{error}");
    assert!(begun.elapsed() < Duration::from_millis(2_500), "{:?}", begun.elapsed());
    redis.server.running().unwrap().signal(Signal::CONT).unwrap();
    let problems = ControlStore::new("http://host", "").unwrap_err();
    assert_eq!(problems.problems().len(), 2, "{problems}");
}

#[tokio::test]
async fn controls_need_the_documented_commands_only() {
    const DOCUMENTATION: &str = include_str!("../../src/store.md");
    let (_, list) = DOCUMENTATION.split_once("Obeying operator controls needs ").unwrap();
    let (obeying, list) = list.split_once("and setting them ").unwrap();
    let (setting, _) = list.split_once('.').unwrap();
    let redis = Redis::start(&[]);
    let url_of = |user: &str, list: &str| {
        let commands = list.split('`').skip(1).step_by(2);
        let commands: Vec<_> = commands.map(|name| format!("+{}", name.to_lowercase().replace(' ', "|"))).collect();
        redis.run(&format!("ACL SETUSER {user} on >secret ~{{stagger:shop}}* {}", commands.join(" ")));
        format!("redis://{user}:secret@{}", redis.port.address())
    };
    let mut store = ControlStore::new(&url_of("admin", setting), "shop").unwrap();
    store.set(0, "api=off", "me", None).await.unwrap();
    assert_eq!(store.read().await.unwrap().unwrap().text, "api=off");
    let controls = RetryControls::new();
    let fleet = fleet(&url_of("process", obeying), &controls);
    until(|| controls.setting("api").to_string() == "off" || fleet.snapshot().failures > 0).await;
    assert_eq!(fleet.snapshot().failures, 0);
}
