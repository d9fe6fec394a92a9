//! Settled meaning 15: a call inside an attempt of another call does not retry unless it is configured to.

use core::cell::Cell;
use core::future::ready;
use core::task::Poll;
use std::collections::HashSet;
use std::sync::Arc;
use std::thread;

use futures_lite::future::{block_on, yield_now};
use stagger::budget::{Concurrent, Lifetime, Tokens};
use stagger::reconnect::Reconnect;
use stagger::testing::NoSleep;
use stagger::{Guard, NestedRetries, Policy, Retrier, StopReason, blocking, policy, retry_with_timer, scope};

use super::support::{PendingTimer, ms, poll_times};

const THREE: Policy = policy!(constant(ms(1)).max_attempts(3));
const ONE: Policy = policy!(constant(ms(1)).max_attempts(1));

/// Runs three nested calls and returns how often the innermost operation was called. Checks that the count is the same
/// whether the operation is ready at once or pending first.
fn innermost_calls(outer: Policy, middle: Policy, inner: Policy) -> u32 {
    let calls = |is_pending: bool| {
        let calls = Cell::new(0);
        let operation = async || {
            if is_pending {
                yield_now().await;
            }
            calls.set(calls.get() + 1);
            Err::<(), _>("no")
        };
        let inner = async || retry_with_timer(&inner, NoSleep, operation).await;
        let middle = async || retry_with_timer(&middle, NoSleep, inner).await;
        block_on(retry_with_timer(&outer, NoSleep, middle)).unwrap_err();
        calls.get()
    };
    let (ready, pending) = (calls(false), calls(true));
    assert_eq!(ready, pending);
    ready
}

#[test]
fn meaning_15_three_layers_of_three_attempts_make_three_in_total() {
    assert_eq!(innermost_calls(THREE, THREE, THREE), 3);
}

#[test]
fn meaning_15_a_layer_without_retries_lets_the_next_retry() {
    assert_eq!(innermost_calls(ONE, THREE, THREE), 3);
    assert_eq!(innermost_calls(THREE, ONE, THREE), 3);
    assert_eq!(innermost_calls(ONE, ONE, THREE), 3);
    assert_eq!(innermost_calls(ONE, ONE, ONE), 1);
}

#[test]
fn meaning_15_a_suppressed_retry_is_reported_as_nested() {
    let inner = || blocking::retry(&THREE, || Err::<(), _>("no")).timer(NoSleep).detailed().run();
    let outer =
        blocking::retry(&THREE, || inner().map_err(|error| (error.stop_reason(), error.attempts()))).timer(NoSleep);
    assert_eq!(outer.run(), Err((StopReason::Nested, 1)));
    assert_eq!(inner().unwrap_err().stop_reason(), StopReason::Attempts, "the depth is restored after the outer call");
}

#[test]
fn meaning_15_every_driver_sets_and_checks_the_depth() {
    let depths = Cell::new([0; 6]);
    let note = |at: usize| {
        let mut seen = depths.get();
        seen[at] = scope::depth();
        depths.set(seen);
        Ok::<(), &str>(())
    };
    let retrier = Retrier::new(THREE);
    blocking::retry(&THREE, || note(0)).run().unwrap();
    block_on(retry_with_timer(&THREE, NoSleep, async || note(1))).unwrap();
    retrier.blocking(|| note(2)).unwrap();
    block_on(retrier.run_on(NoSleep, async || note(3))).unwrap();
    block_on(retrier.run_with_on(NoSleep, &mut (), async |(), _| note(4))).unwrap();
    block_on(retrier.call_on(NoSleep).attempt(async { note(5) })).unwrap().unwrap();
    assert_eq!(depths.get(), [1; 6]);

    let inside = |stop: &dyn Fn() -> StopReason| {
        let outcome = blocking::retry(&THREE, || Err::<(), _>(stop())).timer(NoSleep).run();
        outcome.unwrap_err()
    };
    let no = || Err::<(), _>("no");
    let stops = [
        inside(&|| blocking::retry(&THREE, no).timer(NoSleep).detailed().run().unwrap_err().stop_reason()),
        inside(&|| block_on(retry_with_timer(&THREE, NoSleep, async || no()).detailed()).unwrap_err().stop_reason()),
        inside(&|| retrier.blocking(no).unwrap_err().stop_reason()),
        inside(&|| block_on(retrier.run_on(NoSleep, async || no())).unwrap_err().stop_reason()),
        inside(&|| block_on(retrier.run_with_on(NoSleep, &mut (), async |(), _| no())).unwrap_err().stop_reason()),
        inside(&|| block_on(retrier.call_on(NoSleep).attempt(async { no() })).unwrap().unwrap_err().stop_reason()),
    ];
    assert_eq!(stops, [StopReason::Nested; 6]);
}

#[test]
fn meaning_15_a_blocking_call_in_an_async_call_does_not_retry() {
    let calls = Cell::new(0);
    let operation = async || {
        yield_now().await;
        blocking::retry(&THREE, || {
            calls.set(calls.get() + 1);
            Err::<(), _>("no")
        })
        .run()
    };
    block_on(retry_with_timer(&THREE, NoSleep, operation)).unwrap_err();
    assert_eq!(calls.get(), 3);
}

/// A new thread starts at depth 0 unless it inherits; detached work retries on its own.
#[test]
fn meaning_15_blocking_work_can_inherit_the_depth_or_be_detached() {
    let calls = Cell::new(0);
    let inner = || {
        blocking::retry(&THREE, || {
            calls.set(calls.get() + 1);
            Err::<(), _>("no")
        })
        .timer(NoSleep)
        .run()
    };
    blocking::retry(&THREE, || scope::detached_fn(inner)()).timer(NoSleep).run().unwrap_err();
    assert_eq!(calls.get(), 9);

    let attempts = || blocking::retry(&THREE, || Err::<(), _>("no")).timer(NoSleep).with_report().run().attempts;
    let seen = Cell::new((0, 0));
    let outer = blocking::retry(&THREE, || {
        let (separate, inherited) = (thread::spawn(attempts), thread::spawn(scope::inherit_fn(attempts)));
        seen.set((separate.join().unwrap(), inherited.join().unwrap()));
        Ok::<_, ()>(())
    });
    outer.run().unwrap();
    assert_eq!((seen.get(), scope::depth()), ((3, 1), 0));
}

#[test]
fn meaning_15_connecting_counts_as_an_attempt() {
    let depths = Cell::new(0);
    let connect = async || {
        yield_now().await;
        depths.set(scope::depth());
        Ok::<_, &str>(())
    };
    block_on(Reconnect::with_timer(NoSleep, THREE, connect).next()).unwrap();
    assert_eq!((depths.get(), scope::depth()), (1, 0));

    let connect = || {
        depths.set(10 + scope::depth());
        Ok::<_, &str>(())
    };
    Reconnect::with_timer(NoSleep, THREE, connect).next_blocking().unwrap();
    assert_eq!((depths.get(), scope::depth()), (11, 0));
}

/// Between two polls of an attempt, another task may run on the same thread; it is not nested.
#[test]
fn meaning_15_the_depth_is_set_only_while_the_attempt_is_polled() {
    let inside = async {
        for _ in 0..5 {
            assert_eq!(scope::depth(), 1);
            yield_now().await;
        }
        Ok::<_, &str>(())
    };
    let mut inside = Some(inside);
    let call = retry_with_timer(&THREE, NoSleep, || inside.take().unwrap());
    let outside = async {
        for _ in 0..5 {
            assert_eq!(scope::depth(), 0);
            yield_now().await;
        }
    };
    block_on(futures_lite::future::zip(async { call.await.unwrap() }, outside));
}

/// Depth is read once, at the first poll of the inner call: a call first polled outside keeps retrying when polled
/// inside.
#[test]
fn meaning_15_depth_is_read_at_the_first_poll() {
    let inner = || Box::pin(retry_with_timer(&THREE, PendingTimer::default(), || ready(Err::<(), _>("no"))).detailed());

    let mut polled_outside = inner();
    assert!(poll_times(polled_outside.as_mut(), 1).is_pending());
    let outer = blocking::retry(&THREE, || block_on(polled_outside.as_mut())).timer(NoSleep).when(|_| false);
    assert_eq!(outer.run().unwrap_err().stop_reason(), StopReason::Attempts);

    let mut created_outside = inner();
    let outer = blocking::retry(&THREE, || block_on(created_outside.as_mut())).timer(NoSleep).when(|_| false);
    assert_eq!(outer.run().unwrap_err().stop_reason(), StopReason::Nested);
}

/// Each poll runs on a different thread.
#[test]
fn meaning_15_the_depth_follows_a_task_across_threads() {
    let inner = async || {
        assert_eq!(scope::depth(), 2);
        Err::<(), _>("no")
    };
    let outer = async || {
        let mut threads = HashSet::new();
        for _ in 0..4 {
            assert_eq!(scope::depth(), 1);
            threads.insert(thread::current().id());
            yield_now().await;
        }
        let inner = retry_with_timer(&THREE, NoSleep, inner).detailed().await;
        Ok::<_, ()>((threads.len(), inner.unwrap_err().stop_reason()))
    };
    let mut call = Box::pin(retry_with_timer(&THREE, NoSleep, outer));
    let ended = (0..10).find_map(|_| {
        let polled = thread::scope(|threads| threads.spawn(|| poll_times(call.as_mut(), 1)).join().unwrap());
        assert_eq!(scope::depth(), 0);
        if let Poll::Ready(seen) = polled { Some(seen) } else { None }
    });
    assert_eq!(ended, Some(Ok((4, StopReason::Nested))));
}

#[tokio::test(start_paused = true)]
async fn meaning_15_a_spawned_task_is_at_depth_0_unless_it_inherits() {
    async fn stop_reason() -> StopReason {
        let call = stagger::retry(&THREE, async || {
            tokio::time::sleep(ms(1)).await;
            Err::<(), _>("no")
        });
        call.detailed().await.unwrap_err().stop_reason()
    }
    let stops = stagger::retry(&THREE, async || {
        let spawned = tokio::spawn(stop_reason()).await.unwrap();
        let inherited = tokio::spawn(scope::inherit(stop_reason())).await.unwrap();
        let thread = thread::spawn(scope::depth).join().unwrap();
        let detached = scope::detached(stop_reason()).await;
        let inside = stop_reason().await;
        Ok::<_, ()>((spawned, inherited, thread, detached, inside))
    });
    assert_eq!(
        stops.await,
        Ok((StopReason::Attempts, StopReason::Nested, 0, StopReason::Attempts, StopReason::Nested))
    );
}

/// Runs two innermost_calls that share a budget and returns how often the inner operation was called.
fn calls_with_shared_budget(
    nested: NestedRetries,
    budget: &Arc<dyn Guard>,
    run: impl Fn(&Retrier, &mut dyn FnMut() -> Result<(), &'static str>),
) -> u32 {
    let retrier = Retrier::new(THREE).shared_guard(Arc::clone(budget));
    let (inner, calls) = (retrier.clone().nested(nested), Cell::new(0));
    let mut operation = || {
        let count = || {
            calls.set(calls.get() + 1);
            Err::<(), _>("no")
        };
        block_on(inner.run_on(NoSleep, async || count())).map_err(|_| "no")
    };
    run(&retrier, &mut operation);
    calls.get()
}

fn budget_of_five() -> Arc<dyn Guard> {
    Arc::new(Tokens::builder().capacity(25).build().unwrap())
}

#[test]
fn meaning_15_a_shared_budget_limits_the_retries_of_all_layers() {
    let outer = |retrier: &Retrier, operation: &mut dyn FnMut() -> Result<(), &'static str>| {
        retrier.blocking_call(|_| operation()).timer(NoSleep).run().unwrap_err();
    };
    assert_eq!(calls_with_shared_budget(NestedRetries::ShareBudget, &budget_of_five(), outer), 1 + 5);
    assert_eq!(calls_with_shared_budget(NestedRetries::Disable, &budget_of_five(), outer), 3);
    // Layers that ignore each other make three times three attempts.
    let plenty: Arc<dyn Guard> = Arc::new(Tokens::new());
    assert_eq!(calls_with_shared_budget(NestedRetries::Allow, &plenty, outer), 9);
    assert_eq!(calls_with_shared_budget(NestedRetries::ShareBudget, &plenty, outer), 9);
}

#[test]
fn meaning_15_share_budget_without_a_budget_does_not_retry() {
    let without_budget = Retrier::new(THREE).nested(NestedRetries::ShareBudget);
    let inner = || without_budget.blocking(|| Err::<(), _>("no")).map_err(|error| error.stop_reason());
    assert_eq!(blocking::retry(&THREE, inner).timer(NoSleep).run(), Err(StopReason::Nested));
}

/// The inner first attempt is part of the outer attempt: the budget must not see it as another call, failure or
/// success.
#[test]
fn meaning_15_a_shared_budget_records_each_attempt_once() {
    let lifetime = Arc::new(Lifetime::new());
    let concurrent = Arc::new(Concurrent::new());
    let tokens = Arc::new(Tokens::builder().initial(0).build().unwrap());
    let budgets: [Arc<dyn Guard>; 3] = [lifetime.clone(), concurrent.clone(), tokens.clone()];
    for budget in budgets {
        let outer = Retrier::new(THREE).shared_guard(budget);
        let inner = outer.clone().nested(NestedRetries::ShareBudget);
        let seen = || {
            assert!(concurrent.snapshot().firsts <= 1);
            Ok::<_, ()>(())
        };
        outer.blocking(|| inner.blocking(seen).map_err(|_| ())).unwrap();
        block_on(outer.run_on(NoSleep, async || inner.run_on(NoSleep, async || seen()).await.map_err(|_| ()))).unwrap();
    }
    assert_eq!(lifetime.snapshot().calls, 2);
    assert_eq!(tokens.snapshot().tokens, 2 * 5);
    assert_eq!((concurrent.snapshot().firsts, concurrent.snapshot().retries), (0, 0));
}

/// A nested call dropped during its first attempt holds no permit.
#[test]
fn meaning_15_a_dropped_nested_call_holds_no_shared_permit() {
    let concurrent = Arc::new(Concurrent::new());
    let outer = Retrier::new(THREE).shared_guard(concurrent.clone());
    let inner = outer.clone().nested(NestedRetries::ShareBudget);
    let hangs = async || {
        let mut call = Box::pin(inner.run_on(NoSleep, async || core::future::pending::<Result<(), ()>>().await));
        assert!(poll_times(call.as_mut(), 1).is_pending());
        assert_eq!(concurrent.snapshot().firsts, 1);
        drop(call);
        assert_eq!(concurrent.snapshot().firsts, 1);
        Ok::<_, ()>(())
    };
    block_on(outer.run_on(NoSleep, hangs)).unwrap();
    assert_eq!(concurrent.snapshot().firsts, 0);
}

#[test]
fn meaning_15_nested_retries_can_be_configured_per_call() {
    let budget = budget_of_five();
    let retrier = Retrier::new(THREE).shared_guard(Arc::clone(&budget));
    let attempts = |nested: NestedRetries| {
        let inner = || {
            let no = || Err::<(), _>("no");
            let alone = blocking::retry(&THREE, no).timer(NoSleep).guard(&*budget).nested(nested);
            let of_retrier = retrier.blocking_call(|_| no()).timer(NoSleep).nested(nested);
            Ok::<_, ()>((alone.run().unwrap_err().attempts(), of_retrier.run().unwrap_err().attempts()))
        };
        blocking::retry(&THREE, inner).run().unwrap()
    };
    assert_eq!(attempts(NestedRetries::Disable), (1, 1));
    assert_eq!(attempts(NestedRetries::ShareBudget), (3, 3));
    assert_eq!(attempts(NestedRetries::Allow), (2, 1), "one retry is left in the budget");
}

#[test]
fn a_budget_of_one_call_is_asked_beside_that_of_its_retrier() {
    let (default, special) = (budget_of_five(), Tokens::builder().initial(5).reward(0).build().unwrap());
    let retrier = Retrier::new(THREE).shared_guard(Arc::clone(&default));
    let no = || Err::<(), _>("no");
    let blocking = retrier.blocking_call(|_| no()).timer(NoSleep).guard(&special).run().unwrap_err();
    assert_eq!((blocking.attempts(), blocking.stop_reason()), (2, StopReason::BUDGET));
    let run = block_on(retrier.run_on(NoSleep, async || no()).guard(&special)).unwrap_err();
    let retry_loop = block_on(retrier.call_on(NoSleep).guard(&special).attempt(async { no() })).unwrap().unwrap_err();
    assert_eq!((run.stop_reason(), retry_loop.stop_reason()), (StopReason::BUDGET, StopReason::BUDGET));
    assert_eq!(default.available(), Some(4), "what the second one refused is given back to the first");
}
