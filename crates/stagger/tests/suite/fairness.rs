//! A call whose attempts are ready at once, and whose delays are zero, lets other tasks run all the same.

use core::cell::Cell;
use std::rc::Rc;

use stagger::{Policy, Retrier, policy, reconnect::Reconnect};

use super::support::Fail;

const EAGER: Policy = policy!(zero().unlimited_attempts());

/// Fails until another task of the same thread has run; panics if that takes too long.
fn turns() -> impl Fn() -> Result<(), Fail> {
    let (others, calls) = (Rc::new(Cell::new(0)), Cell::new(0_u32));
    let theirs = Rc::clone(&others);
    tokio::task::spawn_local(async move { theirs.set(1) });
    move || {
        calls.set(calls.get() + 1);
        assert!(calls.get() < 10_000, "no other task has its turn");
        if others.get() == 0 { Err(Fail::TRANSIENT) } else { Ok(()) }
    }
}

#[tokio::test]
async fn every_endless_call_without_delays_lets_other_tasks_run() {
    let tasks = tokio::task::LocalSet::new();
    tasks
        .run_until(async {
            let operation = turns();
            stagger::retry(&EAGER, async || operation()).await.unwrap();

            let retrier = Retrier::new(EAGER);
            let operation = turns();
            retrier.run(async || operation()).await.unwrap();
            let operation = turns();
            retrier.run_with(&mut (), async |(), _| operation()).await.unwrap();

            let operation = turns();
            let mut call = retrier.call();
            while call.attempt(async { operation() }).await.is_none() {}

            let operation = turns();
            Reconnect::new(&EAGER, async || operation()).next().await.unwrap();
        })
        .await;
}
