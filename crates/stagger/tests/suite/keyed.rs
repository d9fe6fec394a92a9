//! [`Keyed`]: one guard per key, for a bounded number of keys.

use core::num::NonZeroUsize;
use core::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use core::time::Duration;
use std::sync::Arc;

use stagger::breaker::CircuitBreaker;
use stagger::budget::Tokens;
use stagger::guard::{Answer, Ask, End, Keyed, Permit};
use stagger::{FailureKind, Guard as _, Instant, Outcome, Seed};

const NOW: Instant = Instant::ZERO;

fn at(seconds: u64) -> Instant {
    NOW.saturating_add(Duration::from_secs(seconds))
}

fn max(keys: usize) -> NonZeroUsize {
    NonZeroUsize::new(keys).unwrap()
}

fn hosts(max_keys: usize) -> Keyed<String, Tokens> {
    Keyed::guards(Tokens::new).max_keys(max(max_keys))
}

fn breakers(max_keys: usize) -> Keyed<u32, CircuitBreaker> {
    let make = || CircuitBreaker::builder(Seed::new(1)).consecutive(1).build().unwrap();
    Keyed::guards(make).max_keys(max(max_keys))
}

fn acquire(tokens: &Tokens) {
    assert!(tokens.reserve(FailureKind::Transient, &NOW).is_some());
}

fn fail(breaker: &CircuitBreaker) {
    let Answer::Go(permit) = breaker.ask(Ask::FIRST, Permit::NONE, &NOW) else { panic!("it is open") };
    breaker.settle(permit, End::Made(&Outcome::TRANSIENT), &NOW);
}

fn keys(hosts: &Keyed<String, Tokens>) -> Vec<String> {
    let mut keys = Vec::new();
    hosts.for_each(|key, _| keys.push(key.clone()));
    keys.sort();
    keys
}

#[test]
fn each_key_keeps_a_separate_guard() {
    let hosts = hosts(2);
    assert!(hosts.is_empty());
    acquire(&hosts.of("a", NOW));
    assert_eq!((hosts.of("a", NOW).available(), hosts.of("b", NOW).available(), hosts.len()), (Some(99), Some(100), 2));
}

#[test]
fn the_least_recently_used_guard_at_rest_is_replaced_at_the_limit() {
    let hosts = hosts(3);
    for (time, key) in ["a", "b", "c", "a", "d"].into_iter().enumerate() {
        let _ = hosts.of(key, at(time as u64));
    }
    assert_eq!(keys(&hosts), ["a", "c", "d"]);
    for n in 0..1_000 {
        let _ = hosts.of(n.to_string().as_str(), at(n));
        assert_eq!(hosts.len(), 3);
    }
}

#[test]
fn a_guard_in_use_is_not_replaced() {
    let hosts = hosts(2);
    let held = hosts.of("a", NOW);
    for key in ["b", "c", "d"] {
        let _ = hosts.of(key, at(3_600));
    }
    assert_eq!(keys(&hosts), ["a", "d"]);
    assert!(Arc::ptr_eq(&held, &hosts.of("a", NOW)));
}

#[test]
fn a_spent_budget_survives_any_number_of_other_keys() {
    let hosts = hosts(3);
    acquire(&hosts.of("spent", NOW));
    for n in 0..10_000 {
        let _ = hosts.of(n.to_string().as_str(), at(n / 20));
    }
    assert_eq!(hosts.of("spent", at(500)).available(), Some(99));
}

#[test]
fn an_open_breaker_survives_any_number_of_other_keys() {
    let hosts = breakers(3);
    fail(&hosts.of(&0, NOW));
    for n in 1..10_000 {
        let _ = hosts.of(&n, NOW);
    }
    assert!(matches!(hosts.of(&0, NOW).ask(Ask::FIRST, Permit::NONE, &NOW), Answer::No { .. }));
}

/// Otherwise made-up keys would have no guard, or the memory no bound.
#[test]
fn new_keys_share_one_guard_if_no_other_may_be_replaced() {
    let hosts = hosts(1);
    acquire(&hosts.of("a", NOW));
    let (b, c) = (hosts.of("b", NOW), hosts.of("c", NOW));
    assert!(Arc::ptr_eq(&b, &c));
    acquire(&b);
    assert_eq!((hosts.overflow().available(), hosts.len()), (Some(99), 1));
    assert_eq!(keys(&hosts), ["a"]);
    // Successes fill it, and there is room for another key.
    hosts.of("a", NOW).settle(Permit::NONE, End::Made(&Outcome::Success), &NOW);
    assert!(!Arc::ptr_eq(&hosts.of("b", NOW), &b));
    assert_eq!(keys(&hosts), ["b"]);
}

#[test]
fn a_guard_that_is_idle_makes_room_in_any_state() {
    let hosts = hosts(1).idle_after(Duration::from_secs(60));
    acquire(&hosts.of("a", at(100)));
    let _ = hosts.of("b", at(159));
    assert_eq!(keys(&hosts), ["a"]);
    let _ = hosts.of("b", at(160));
    assert_eq!(keys(&hosts), ["b"]);
    // A lookup counts as use.
    acquire(&hosts.of("b", at(200)));
    let _ = hosts.of("c", at(259));
    assert_eq!(keys(&hosts), ["b"]);
}

/// The time for which a new key holds the lock is bounded, and the search goes on with the next key.
#[test]
fn at_most_32_guards_are_examined_per_new_key() {
    let examined = Arc::new(AtomicU64::new(0));
    struct Counted(Arc<AtomicU64>);
    let counter = Arc::clone(&examined);
    let guards = Keyed::<u32, Counted>::new(
        move || Counted(Arc::clone(&counter)),
        |guard, _| {
            guard.0.fetch_add(1, Ordering::Relaxed);
            false
        },
    );
    let guards = guards.max_keys(max(100));
    for key in 0..100 {
        let _ = guards.of(&key, NOW);
    }
    assert_eq!(examined.load(Ordering::Relaxed), 0);
    for (key, want) in (100..104).zip([32, 64, 96, 128]) {
        let _ = guards.of(&key, NOW);
        assert_eq!(examined.load(Ordering::Relaxed), want);
    }
    // The only guard that may be replaced is found within four new keys.
    let rest = breakers(100);
    (0..100).for_each(|key| fail(&rest.of(&key, NOW)));
    rest.of(&70, NOW).reset(&NOW);
    (100..104).for_each(|key| drop(rest.of(&key, NOW)));
    let mut has_70 = false;
    rest.for_each(|key, _| has_70 |= *key == 70);
    assert_eq!((rest.len(), has_70), (100, false));
}

/// Four threads share four keys while two others make up keys: no guard in use is lost, and no place is leaked.
#[test]
fn threads_share_the_guard_of_a_key_while_others_make_up_keys() {
    let hosts = hosts(8);
    for key in ["a", "b", "c", "d"] {
        acquire(&hosts.of(key, NOW));
    }
    std::thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| {
                for n in 0..400 {
                    let key = ["a", "b", "c", "d"][n % 4];
                    acquire(&hosts.of(key, NOW));
                    hosts.of(key, NOW).settle(Permit::NONE, End::Made(&Outcome::Success), &NOW);
                }
            });
        }
        for thread in 0..2 {
            let hosts = &hosts;
            scope.spawn(move || {
                for n in 0..2_000 {
                    let _ = hosts.of(format!("{thread} {n}").as_str(), NOW);
                    assert!(hosts.len() <= 8);
                }
            });
        }
    });
    for key in ["a", "b", "c", "d"] {
        assert_eq!(hosts.of(key, NOW).available(), Some(99), "{key}");
    }
    assert_eq!(hosts.len(), 8);
}

#[test]
fn a_panic_while_creating_a_guard_leaves_the_others_intact() {
    let created = AtomicU32::new(0);
    let make = move || {
        assert_ne!(created.fetch_add(1, Ordering::Relaxed), 2, "the third budget");
        Tokens::new()
    };
    let hosts: Keyed<u8, Tokens> = Keyed::guards(make).max_keys(max(2));
    acquire(&hosts.of(&1, NOW));
    let panicked = std::panic::catch_unwind(core::panic::AssertUnwindSafe(|| hosts.of(&2, NOW)));
    assert!(panicked.is_err());
    assert_eq!((hosts.of(&1, NOW).available(), hosts.of(&2, NOW).available(), hosts.len()), (Some(99), Some(100), 2));
}
