//! The burst invariant, with real threads.

use core::sync::atomic::{AtomicU64, Ordering};
use std::sync::Barrier;
use std::thread;

use stagger_core::budget::{
    Adaptive, Concurrent, ControlMode, ControlledBudget, Lifetime, SuccessRate, Throttle, Tokens, Unlimited, Window,
};
use stagger_core::{Budget, FailureKind, Instant, Outcome, Ratio, Seed, guard::BudgetPermit};

use super::{NOW, attempt, drain};
use crate::laws::support::{at, ms, secs};

const THREADS: u64 = 4;
const CALLS: u64 = 2_000;

/// So many threads do this at the same time; the sum of what they give.
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

/// Every thread makes its calls, all of which fail, as their up to three retries do; how many retries were lent.
fn burst(budget: &dyn Budget, now: impl Fn(u64) -> Instant + Sync) -> u64 {
    together(|_| {
        let mut lent = 0;
        for call in 0..CALLS {
            let now = now(call);
            let mut loan = budget.on_first_attempt(&now);
            for _ in 0..3 {
                budget.record(loan, &Outcome::TRANSIENT, &now);
                let Some(next) = budget.try_acquire(FailureKind::Transient, &now) else {
                    loan = BudgetPermit::NONE;
                    break;
                };
                loan = next;
                lent += 1;
            }
            budget.record(loan, &Outcome::TRANSIENT, &now);
        }
        lent
    })
}

#[test]
fn threads_share_the_tokens_to_the_last() {
    assert_eq!(burst(&Tokens::new(), |_| NOW), 100);
}

/// Initial tokens, refill and deposits, and nothing besides: to the last token, if the last one asks.
#[test]
fn threads_spend_what_was_there_and_what_has_come_and_no_more() {
    let tokens = Tokens::builder().capacity(10_000).initial(500).reward(1).refill(3, secs(1)).build().unwrap();
    let lent = together(|_| {
        let mut lent = 0;
        for call in 0..CALLS {
            let now = at(ms(call));
            attempt(&tokens, Outcome::Success, now);
            lent += (0..3).filter(|_| tokens.try_acquire(FailureKind::Transient, &now).is_some()).count() as u64;
        }
        lent
    });
    let lent = lent + drain(&tokens, at(ms(CALLS))).len() as u64;
    // The refill runs from the first time that a retry is asked for, which may be a few milliseconds after the epoch.
    let came = 500 + 3 * CALLS / 1_000 + THREADS * CALLS;
    assert!((came / 5 - 1..=came / 5).contains(&lent), "{lent}, and not {}", came / 5);
}

/// While nothing is accepted, the nth request is lent with probability 1 / n: all in all the logarithm of their number.
#[test]
fn threads_that_are_refused_by_chance_have_few_retries() {
    let adaptive = Adaptive::new(Seed::new(1));
    let lent = burst(&adaptive, |_| NOW);
    let requests = adaptive.snapshot(NOW).requests;
    assert!(requests > 2 * THREADS * CALLS - 10, "every call asks for a retry, and refusals count");
    let expected = 10.0 + (requests as f64 / 10.0).ln();
    assert!((lent as f64) < expected + 20.0, "{lent} lent, {expected:.0} expected");
    assert!(lent >= 4, "half of the first ten requests are retries, and all of these pass: {lent}");
}

/// Whoever moves it, no more pass than the budget has while it is enforced, and every one that asks is counted.
#[test]
fn threads_under_a_control_that_is_moved_spend_the_tokens_once() {
    let control = ControlledBudget::new(Tokens::new());
    let asked = AtomicU64::new(0);
    let lent = together(|thread| {
        let mut lent = 0;
        for call in 0..CALLS {
            if thread == 0 {
                control.set(if call % 2 == 0 { ControlMode::NoRetries } else { ControlMode::Enforced });
            }
            asked.fetch_add(1, Ordering::Relaxed);
            lent += u64::from(control.try_acquire(FailureKind::Transient, &NOW).is_some());
        }
        lent
    });
    let seen = control.snapshot();
    assert_eq!(lent + seen.rejected + seen.stopped, asked.into_inner());
    control.set(ControlMode::Enforced);
    assert_eq!(lent + drain(&control, NOW).len() as u64, 100);
}

#[test]
fn threads_share_the_window_to_the_last() {
    let window = Window::builder().ratio(Ratio::percent(33)).min_per_second(0).build().unwrap();
    // The last call is the only one that is sure to see all calls, so what is left is asked for at the end.
    let lent = burst(&window, |_| NOW) + drain(&window, NOW).len() as u64;
    assert_eq!(lent, Ratio::percent(33).of(THREADS * CALLS));
}

/// Every thread has its own idea of the time, and passes from slot to slot when it gets there.
#[test]
fn threads_in_different_slots_do_not_overspend() {
    let ratio = Ratio::percent(60);
    let window = Window::builder().ttl(core::time::Duration::from_secs(1)).ratio(ratio).min_per_second(0);
    let window = window.build().unwrap();
    let lent = burst(&window, |call| Instant::from_nanos(call * 400_000));
    assert!(lent <= ratio.of(THREADS * CALLS), "{lent}");
    assert!(lent > 0);
}

#[test]
fn threads_share_a_lifetime_to_the_last() {
    let lifetime = Lifetime::with(Ratio::percent(20), 0).unwrap();
    let lent = burst(&lifetime, |_| NOW) + drain(&lifetime, NOW).len() as u64;
    assert_eq!(lent, THREADS * CALLS / 4);
    assert_eq!(lifetime.snapshot().calls, THREADS * CALLS);
}

#[test]
fn threads_are_throttled_together() {
    let lent = burst(&Throttle::new(100, Ratio::percent(10)).unwrap(), |_| NOW);
    assert!(lent <= 49, "{lent}");
    let lent = burst(&SuccessRate::default(), |_| NOW);
    assert!(lent <= 5, "{lent}");
}

#[test]
fn threads_do_not_exceed_the_floor_and_leave_nothing_behind() {
    let budget = Concurrent::with(Ratio::ZERO, 2).unwrap();
    let most = AtomicU64::new(0);
    together(|_| {
        for _ in 0..CALLS {
            let first = budget.on_first_attempt(&NOW);
            budget.record(first, &Outcome::TRANSIENT, &NOW);
            if let Some(loan) = budget.try_acquire(FailureKind::Transient, &NOW) {
                most.fetch_max(budget.snapshot().retries, Ordering::Relaxed);
                budget.release(loan);
            }
        }
        0
    });
    assert!((1..=2).contains(&most.into_inner()));
    assert_eq!((budget.snapshot().firsts, budget.snapshot().retries), (0, 0));
}

/// A hundred calls are active at once, and all of them fail.
#[test]
fn threads_retry_no_more_than_their_share_of_what_is_active() {
    let budget = Concurrent::with(Ratio::percent(25), 3).unwrap();
    let calls: Vec<_> = (0..100).map(|_| budget.on_first_attempt(&NOW)).collect();
    let calls = std::sync::Mutex::new(calls);
    let lent = together(|_| {
        let mut lent = 0;
        while let Some(call) = { calls.lock().unwrap().pop() } {
            budget.record(call, &Outcome::TRANSIENT, &NOW);
            lent += u64::from(budget.try_acquire(FailureKind::Transient, &NOW).is_some());
        }
        lent
    });
    assert!((20..=25).contains(&lent), "{lent}");
    assert_eq!((budget.snapshot().firsts, budget.snapshot().retries), (0, lent));
}

#[test]
fn what_threads_give_back_is_there_again() {
    let budgets: [&dyn Budget; 3] = [&Tokens::new(), &Window::new(), &Lifetime::new()];
    for budget in budgets {
        let before = budget.available();
        together(|_| {
            for _ in 0..CALLS {
                if let Some(loan) = budget.try_acquire(FailureKind::Transient, &NOW) {
                    budget.release(loan);
                }
            }
            0
        });
        // The window had not been asked yet, so it did not know the time.
        assert_eq!(budget.available(), before, "{budget:?}");
    }
}

#[test]
fn threads_together_get_the_share_of_a_control_to_the_last() {
    let (control, share) = (ControlledBudget::new(Unlimited), Ratio::millionths(333_333));
    control.set(share);
    let lent =
        together(|_| (0..CALLS).filter(|_| control.try_acquire(FailureKind::Transient, &NOW).is_some()).count() as u64);
    assert_eq!((lent, control.snapshot().limited), (share.of(THREADS * CALLS), THREADS * CALLS - lent));
}
