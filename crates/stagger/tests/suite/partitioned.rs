//! [`Partitioned`].

use core::num::NonZeroUsize;
use core::sync::atomic::{AtomicU32, Ordering};
use std::sync::Arc;

use stagger::budget::{Partitioned, Tokens};
use stagger::{Budget as _, FailureKind, Instant, Outcome, guard::BudgetPermit};

fn hosts(most: usize) -> Partitioned<String, Tokens> {
    Partitioned::new(NonZeroUsize::new(most).unwrap(), Tokens::new)
}

fn spend(tokens: &Tokens) {
    assert!(tokens.try_acquire(FailureKind::Transient, &Instant::ZERO).is_some());
}

fn keys(hosts: &Partitioned<String, Tokens>) -> Vec<String> {
    let mut keys = Vec::new();
    hosts.for_each(|key, _| keys.push(key.clone()));
    keys.sort();
    keys
}

#[test]
fn every_key_has_a_budget_of_its_own_and_keeps_it() {
    let hosts = hosts(2);
    assert!(hosts.is_empty());
    spend(&hosts.of("a"));
    assert_eq!((hosts.of("a").available(), hosts.of("b").available(), hosts.len()), (Some(99), Some(100), 2));
}

#[test]
fn there_are_never_more_keys_than_said_and_what_was_used_longest_ago_goes() {
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
fn what_is_held_does_not_go() {
    let hosts = hosts(2);
    let held = hosts.of("a");
    spend(&held);
    for key in ["b", "c", "d"] {
        let _ = hosts.of(key);
    }
    assert_eq!(keys(&hosts), ["a", "d"]);
    assert!(Arc::ptr_eq(&held, &hosts.of("a")));
}

#[test]
fn newcomers_share_one_budget_when_all_are_held() {
    let hosts = hosts(1);
    let held = hosts.of("a");
    let (b, c) = (hosts.of("b"), hosts.of("c"));
    assert!(Arc::ptr_eq(&b, &c) && !Arc::ptr_eq(&b, &held));
    spend(&b);
    assert_eq!((hosts.rest().available(), held.available(), hosts.len()), (Some(99), Some(100), 1));
    drop(held);
    assert!(!Arc::ptr_eq(&hosts.of("b"), &b), "there is room for it now");
    assert_eq!(keys(&hosts), ["b"]);
}

#[test]
fn threads_that_come_with_one_key_get_one_budget() {
    let hosts = hosts(4);
    std::thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| {
                for n in 0..200 {
                    let key = ["a", "b", "c", "d"][n % 4];
                    spend(&hosts.of(key));
                    hosts.of(key).record(BudgetPermit::NONE, &Outcome::Success, &Instant::ZERO);
                }
            });
        }
    });
    hosts.for_each(|key, tokens| assert_eq!(tokens.available(), Some(100), "{key}"));
    assert_eq!(hosts.len(), 4);
}

/// A budget that cannot be made leaves the others as they are.
#[test]
fn a_panic_in_the_making_breaks_nothing() {
    let made = AtomicU32::new(0);
    let hosts: Partitioned<u8, Tokens> = Partitioned::new(NonZeroUsize::new(2).unwrap(), move || {
        assert_ne!(made.fetch_add(1, Ordering::Relaxed), 2, "the third one");
        Tokens::new()
    });
    spend(&hosts.of(&1));
    let panicked = std::panic::catch_unwind(core::panic::AssertUnwindSafe(|| hosts.of(&2)));
    assert!(panicked.is_err());
    assert_eq!((hosts.of(&1).available(), hosts.of(&2).available(), hosts.len()), (Some(99), Some(100), 2));
}
