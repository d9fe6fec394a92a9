//! The burst invariant with concurrent threads.

use core::sync::atomic::{AtomicU64, Ordering};
use std::sync::Barrier;
use std::thread;

use stagger_core::budget::{
    Adaptive, Concurrent, ControlMode, Controlled, Lifetime, RetryControl, SuccessRate, Throttle, Tokens, Window,
};
use stagger_core::guard::{End, Permit};
use stagger_core::{FailureKind, Guard, Guards, Instant, Outcome, Ratio, Seed};

use super::{NOW, attempt, drain};
use crate::laws::support::{Start, at, ms, secs};

const THREADS: u64 = 4;
const CALLS: u64 = 2_000;

/// Runs `work` in [`THREADS`] threads at the same time and returns the sum of the results.
fn together(work: impl Fn(u64) -> u64 + Sync) -> u64 {
    let (start, work) = (Barrier::new(THREADS as usize), &work);
    thread::scope(|scope| {
        let threads: Vec<_> = (0..THREADS)
            .map(|n| {
                let start = &start;
                scope.spawn(move || {
                    start.wait();
                    work(n)
                })
            })
            .collect();
        threads.into_iter().map(|thread| thread.join().unwrap()).sum()
    })
}

/// Makes [`CALLS`] failing calls with up to three failing retries in every thread and returns the retries granted.
fn burst(budget: &dyn Guard, now: impl Fn(u64) -> Instant + Sync) -> u64 {
    together(|_| {
        let mut granted = 0;
        for call in 0..CALLS {
            let now = now(call);
            let mut permit = budget.start(&now);
            for _ in 0..3 {
                budget.settle(permit, End::Made(&Outcome::TRANSIENT), &now);
                let Some(next) = budget.reserve(FailureKind::Transient, &now) else {
                    permit = Permit::NONE;
                    break;
                };
                permit = next;
                granted += 1;
            }
            budget.settle(permit, End::Made(&Outcome::TRANSIENT), &now);
        }
        granted
    })
}

#[test]
fn threads_use_up_exactly_the_tokens() {
    assert_eq!(burst(&Tokens::new(), |_| NOW), 100);
}

/// Threads spend the initial tokens, the refill and the rewards, and no more; a final drain takes the rest.
#[test]
fn threads_spend_initial_tokens_refill_and_rewards_only() {
    let tokens = Tokens::builder().capacity(10_000).initial(500).reward(1).refill(3, secs(1)).build().unwrap();
    let granted = together(|_| {
        let mut granted = 0;
        for call in 0..CALLS {
            let now = at(ms(call));
            attempt(&tokens, Outcome::Success, now);
            granted += (0..3).filter(|_| tokens.reserve(FailureKind::Transient, &now).is_some()).count() as u64;
        }
        granted
    });
    let granted = granted + drain(&tokens, at(ms(CALLS))).len() as u64;
    // The refill starts at the first request for a retry, which may be a few milliseconds after the epoch.
    let earned = 500 + 3 * CALLS / 1_000 + THREADS * CALLS;
    assert!((earned / 5 - 1..=earned / 5).contains(&granted), "{granted} granted, expected {}", earned / 5);
}

/// While no request is accepted, the nth is granted with probability 1 / n, so the total grows as the logarithm of n.
#[test]
fn adaptive_threads_get_few_retries_while_all_calls_fail() {
    let adaptive = Adaptive::new(Seed::new(1));
    let granted = burst(&adaptive, |_| NOW);
    let requests = adaptive.snapshot(NOW).requests;
    assert!(requests > 2 * THREADS * CALLS - 10, "every call requests a retry, and rejections count");
    let expected = 10.0 + (requests as f64 / 10.0).ln();
    assert!((granted as f64) < expected + 20.0, "{granted} granted, {expected:.0} expected");
    assert!(granted >= 4, "half of the first ten requests are retries, and all of these are granted: {granted}");
}

/// Changes of the mode do not exceed the budget in enforced mode, and every request is counted.
#[test]
fn threads_spend_tokens_once_while_the_mode_changes() {
    let (tokens, control) = (Tokens::new(), RetryControl::new());
    let controlled = Controlled::new(&tokens, &control);
    let list: [&dyn Guard; 2] = [&controlled, &control];
    let guards = Guards::of(&list);
    let requested = AtomicU64::new(0);
    let granted = together(|thread| {
        let mut granted = 0;
        for call in 0..CALLS {
            if thread == 0 {
                control.set(if call % 2 == 0 { ControlMode::NoRetries } else { ControlMode::Enforced });
            }
            requested.fetch_add(1, Ordering::Relaxed);
            granted += u64::from(guards.another_of_several(|| NOW).is_ok());
        }
        granted
    });
    let seen = control.snapshot();
    assert_eq!(granted + seen.rejected + seen.stopped, requested.into_inner());
    assert_eq!(granted + drain(&tokens, NOW).len() as u64, 100);
}

#[test]
fn threads_use_up_exactly_the_window() {
    let window = Window::builder().ratio(Ratio::percent(33)).min_per_second(0).build().unwrap();
    // Only the last call is sure to see all calls, so the rest is drained at the end.
    let granted = burst(&window, |_| NOW) + drain(&window, NOW).len() as u64;
    assert_eq!(granted, Ratio::percent(33).of(THREADS * CALLS));
}

/// Every thread has its own current time, and moves from slot to slot independently.
#[test]
fn threads_in_different_slots_do_not_exceed_the_window() {
    let ratio = Ratio::percent(60);
    let window = Window::builder().ttl(core::time::Duration::from_secs(1)).ratio(ratio).min_per_second(0);
    let window = window.build().unwrap();
    let granted = burst(&window, |call| Instant::from_nanos(call * 400_000));
    assert!(granted <= ratio.of(THREADS * CALLS), "{granted}");
    assert!(granted > 0);
}

#[test]
fn threads_use_up_exactly_a_lifetime_budget() {
    let lifetime = Lifetime::with(Ratio::percent(20), 0).unwrap();
    let granted = burst(&lifetime, |_| NOW) + drain(&lifetime, NOW).len() as u64;
    assert_eq!(granted, THREADS * CALLS / 4);
    assert_eq!(lifetime.snapshot().calls, THREADS * CALLS);
}

#[test]
fn threads_share_one_throttle() {
    let granted = burst(&Throttle::new(100, Ratio::percent(10)).unwrap(), |_| NOW);
    assert!(granted <= 49, "{granted}");
    let granted = burst(&SuccessRate::default(), |_| NOW);
    assert!(granted <= 5, "{granted}");
}

#[test]
fn threads_do_not_exceed_the_floor_or_leak_permits() {
    let budget = Concurrent::with(Ratio::ZERO, 2).unwrap();
    let peak = AtomicU64::new(0);
    together(|_| {
        for _ in 0..CALLS {
            let first = budget.start(&NOW);
            budget.settle(first, End::Made(&Outcome::TRANSIENT), &NOW);
            if let Some(permit) = budget.reserve(FailureKind::Transient, &NOW) {
                peak.fetch_max(budget.snapshot().retries, Ordering::Relaxed);
                budget.settle(permit, End::NeverMade, &NOW);
            }
        }
        0
    });
    assert!((1..=2).contains(&peak.into_inner()));
    assert_eq!((budget.snapshot().firsts, budget.snapshot().retries), (0, 0));
}

/// 100 calls are active at once, and all of them fail.
#[test]
fn threads_retry_at_most_a_share_of_active_calls() {
    let budget = Concurrent::with(Ratio::percent(25), 3).unwrap();
    let calls: Vec<_> = (0..100).map(|_| budget.start(&NOW)).collect();
    let calls = std::sync::Mutex::new(calls);
    let granted = together(|_| {
        let mut granted = 0;
        while let Some(call) = { calls.lock().unwrap().pop() } {
            budget.settle(call, End::Made(&Outcome::TRANSIENT), &NOW);
            granted += u64::from(budget.reserve(FailureKind::Transient, &NOW).is_some());
        }
        granted
    });
    assert!((20..=25).contains(&granted), "{granted}");
    assert_eq!((budget.snapshot().firsts, budget.snapshot().retries), (0, granted));
}

#[test]
fn permits_released_by_threads_are_available_again() {
    let budgets: [&dyn Guard; 3] = [&Tokens::new(), &Window::new(), &Lifetime::new()];
    for budget in budgets {
        let before = budget.available();
        together(|_| {
            for _ in 0..CALLS {
                if let Some(permit) = budget.reserve(FailureKind::Transient, &NOW) {
                    budget.settle(permit, End::NeverMade, &NOW);
                }
            }
            0
        });
        // Before the first request, the window had not read the time.
        assert_eq!(budget.available(), before, "{budget:?}");
    }
}

#[test]
fn threads_get_exactly_the_share_of_a_control() {
    let (control, share) = (RetryControl::new(), Ratio::millionths(333_333));
    control.set(share);
    let granted =
        together(|_| (0..CALLS).filter(|_| control.reserve(FailureKind::Transient, &NOW).is_some()).count() as u64);
    assert_eq!((granted, control.snapshot().limited), (share.of(THREADS * CALLS), THREADS * CALLS - granted));
}
