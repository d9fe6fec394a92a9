//! A call with immediately ready attempts and zero delays still yields to other tasks.

use core::cell::Cell;
use std::rc::Rc;

use stagger::reconnect::Reconnect;
use stagger::{Policy, Retrier, policy};

use super::support::Fail;

const EAGER: Policy = policy!(zero().unlimited_attempts());

/// Returns an operation that fails until another task on this thread has run, and panics if that takes too long.
fn fails_until_another_task_runs() -> impl Fn() -> Result<(), Fail> {
    let (other_ran, calls) = (Rc::new(Cell::new(0)), Cell::new(0_u32));
    let flag = Rc::clone(&other_ran);
    tokio::task::spawn_local(async move { flag.set(1) });
    move || {
        calls.set(calls.get() + 1);
        assert!(calls.get() < 10_000, "no other task has run");
        if other_ran.get() == 0 { Err(Fail::TRANSIENT) } else { Ok(()) }
    }
}

#[tokio::test]
async fn endless_calls_without_delays_yield_to_other_tasks() {
    let tasks = tokio::task::LocalSet::new();
    tasks
        .run_until(async {
            let operation = fails_until_another_task_runs();
            stagger::retry(&EAGER, async || operation()).await.unwrap();

            let retrier = Retrier::new(EAGER);
            let operation = fails_until_another_task_runs();
            retrier.run(async || operation()).await.unwrap();
            let operation = fails_until_another_task_runs();
            retrier.run_with(&mut (), async |(), _| operation()).await.unwrap();

            let operation = fails_until_another_task_runs();
            let mut call = retrier.call();
            while call.attempt(async { operation() }).await.is_none() {}

            let operation = fails_until_another_task_runs();
            Reconnect::new(EAGER, async || operation()).next().await.unwrap();
        })
        .await;
}
