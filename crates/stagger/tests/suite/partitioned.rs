//! [`Partitioned`]: one budget per key, for a bounded number of keys.

use core::num::NonZeroUsize;
use core::sync::atomic::{AtomicU32, Ordering};
use std::sync::Arc;

use stagger::budget::{Partitioned, Tokens};
use stagger::guard::BudgetPermit;
use stagger::{Budget as _, FailureKind, Instant, Outcome};

fn hosts(max_keys: usize) -> Partitioned<String, Tokens> {
    Partitioned::new(NonZeroUsize::new(max_keys).unwrap(), Tokens::new)
}

fn acquire(tokens: &Tokens) {
    assert!(tokens.try_acquire(FailureKind::Transient, &Instant::ZERO).is_some());
}

fn keys(hosts: &Partitioned<String, Tokens>) -> Vec<String> {
    let mut keys = Vec::new();
    hosts.for_each(|key, _| keys.push(key.clone()));
    keys.sort();
    keys
}

#[test]
fn each_key_keeps_a_separate_budget() {
    let hosts = hosts(2);
    assert!(hosts.is_empty());
    acquire(&hosts.of("a"));
    assert_eq!((hosts.of("a").available(), hosts.of("b").available(), hosts.len()), (Some(99), Some(100), 2));
}

#[test]
fn the_least_recently_used_key_is_evicted_at_the_limit() {
    let hosts = hosts(3);
    for key in ["a", "b", "c", "a", "d"] {
        let _ = hosts.of(key);
    }
    assert_eq!(keys(&hosts), ["a", "c", "d"]);
    for n in 0..1_000 {
        let _ = hosts.of(n.to_string().as_str());
        assert_eq!(hosts.len(), 3);
    }
}

#[test]
fn a_budget_in_use_is_not_evicted() {
    let hosts = hosts(2);
    let held = hosts.of("a");
    acquire(&held);
    for key in ["b", "c", "d"] {
        let _ = hosts.of(key);
    }
    assert_eq!(keys(&hosts), ["a", "d"]);
    assert!(Arc::ptr_eq(&held, &hosts.of("a")));
}

#[test]
fn new_keys_share_one_budget_if_all_others_are_in_use() {
    let hosts = hosts(1);
    let held = hosts.of("a");
    let (b, c) = (hosts.of("b"), hosts.of("c"));
    assert!(Arc::ptr_eq(&b, &c) && !Arc::ptr_eq(&b, &held));
    acquire(&b);
    assert_eq!((hosts.rest().available(), held.available(), hosts.len()), (Some(99), Some(100), 1));
    drop(held);
    assert!(!Arc::ptr_eq(&hosts.of("b"), &b), "there is room for the key now");
    assert_eq!(keys(&hosts), ["b"]);
}

#[test]
fn threads_with_the_same_key_share_its_budget() {
    let hosts = hosts(4);
    std::thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| {
                for n in 0..200 {
                    let key = ["a", "b", "c", "d"][n % 4];
                    acquire(&hosts.of(key));
                    hosts.of(key).record(BudgetPermit::NONE, &Outcome::Success, &Instant::ZERO);
                }
            });
        }
    });
    hosts.for_each(|key, tokens| assert_eq!(tokens.available(), Some(100), "{key}"));
    assert_eq!(hosts.len(), 4);
}

#[test]
fn a_panic_while_creating_a_budget_leaves_the_others_intact() {
    let created = AtomicU32::new(0);
    let hosts: Partitioned<u8, Tokens> = Partitioned::new(NonZeroUsize::new(2).unwrap(), move || {
        assert_ne!(created.fetch_add(1, Ordering::Relaxed), 2, "the third budget");
        Tokens::new()
    });
    acquire(&hosts.of(&1));
    let panicked = std::panic::catch_unwind(core::panic::AssertUnwindSafe(|| hosts.of(&2)));
    assert!(panicked.is_err());
    assert_eq!((hosts.of(&1).available(), hosts.of(&2).available(), hosts.len()), (Some(99), Some(100), 2));
}
