//! Calls that must be `Send` and spawnable whatever they borrow. Compiling is the main check.

use core::cell::Cell;
use std::rc::Rc;
use std::sync::Arc;

use stagger::reconnect::Reconnect;
use stagger::{Cancel, Policy, Rejected, Retrier, RetryResultExt as _, policy};

use super::support::{Fail, RecordingBreaker, RecordingBudget, ms};

const POLICY: Policy = policy!(exponential(ms(1), ms(5)).max_attempts(5));

struct Connection {
    calls: u32,
}

#[derive(Debug, PartialEq, thiserror::Error)]
#[error("{self:?}")]
enum MyError {
    Busy,
    Rejected(Rejected),
}

impl From<Rejected> for MyError {
    fn from(rejected: Rejected) -> Self {
        Self::Rejected(rejected)
    }
}

impl Connection {
    async fn query(&mut self, sql: &str) -> Result<usize, MyError> {
        self.calls += 1;
        tokio::task::yield_now().await;
        if self.calls < 3 { Err(MyError::Busy) } else { Ok(sql.len()) }
    }
}

async fn get(url: &str) -> Result<usize, MyError> {
    tokio::task::yield_now().await;
    Ok(url.len())
}

#[tokio::test(start_paused = true)]
async fn the_builder_is_a_future_that_can_be_spawned() {
    let url = String::from("http://host/");
    let handle = tokio::spawn(async move { stagger::retry(&POLICY, async || get(&url).await).await });
    assert_eq!(handle.await.unwrap(), Ok(12));

    // Without an async block around the builder.
    let url = Arc::new(String::from("http://host/"));
    let builder = stagger::retry(&POLICY, move || {
        let url = Arc::clone(&url);
        async move { get(&url).await }
    })
    .when(|error| *error == MyError::Busy);
    assert_eq!(tokio::spawn(builder).await.unwrap(), Ok(12));
}

#[tokio::test(start_paused = true)]
async fn builders_can_be_joined_and_selected() {
    let (a, b) = tokio::join!(
        stagger::retry(&POLICY, async || get("a").await),
        stagger::retry(&POLICY, async || get("bb").await).with_report(),
    );
    assert_eq!((a, b.result.into_inner()), (Ok(1), Ok(2)));
    tokio::select! {
        out = stagger::retry(&POLICY, async || get("ccc").await) => assert_eq!(out, Ok(3)),
        () = core::future::pending() => unreachable!(),
    }
}

#[tokio::test(start_paused = true)]
async fn a_call_that_borrows_its_context_mutably_can_be_spawned() {
    let api = Retrier::new(POLICY);
    let handle = tokio::spawn(async move {
        let sql = String::from("select 1");
        let mut connection = Connection { calls: 0 };
        let answer =
            api.run_with(&mut connection, async |connection, _| connection.query(&sql).await).await.into_inner();
        (answer, connection.calls)
    });
    assert_eq!(handle.await.unwrap(), (Ok(8), 3));
}

#[tokio::test(start_paused = true)]
async fn a_retry_loop_can_borrow_locals_and_be_spawned() {
    let api = Retrier::new(POLICY);
    let handle = tokio::spawn(async move {
        let sql = String::from("select 1");
        let mut connection = Connection { calls: 0 };
        let mut call = api.call();
        let rows = loop {
            if let Some(done) = call.attempt(connection.query(&sql)).await {
                break done.into_inner()?;
            }
        };
        Ok::<_, MyError>((rows, connection.calls))
    });
    assert_eq!(handle.await.unwrap(), Ok((8, 3)));
}

#[tokio::test(start_paused = true)]
async fn all_calls_are_send() {
    fn is_send<T: Send>(_: &T) {}
    let api = Retrier::new(POLICY).when(|error: &MyError| *error == MyError::Busy);
    is_send(&api);
    is_send(&api.run(async || get("a").await));
    is_send(&api.run(async || get("a").await).with_inner_error());
    is_send(&api.run(async || get("a").await).with_report().cancelled_by(core::future::pending::<()>()));
    is_send(&api.call());
    is_send(&stagger::retry(&POLICY, async || get("a").await).timeout(ms(1_000)));
    is_send(&Cancel::new());
}

#[tokio::test(start_paused = true)]
async fn a_call_that_borrows_from_its_task_can_be_spawned() {
    struct Client {
        api: Retrier,
        urls: Vec<String>,
    }

    impl Client {
        /// Borrows `self` in the operation and the argument in the validation.
        async fn fetch(&self, max_size: &usize) -> Result<usize, MyError> {
            let url = &self.urls[0];
            let call =
                self.api.run(|| get(url)).validate(|size| if size > *max_size { Err(MyError::Busy) } else { Ok(size) });
            call.with_inner_error().await
        }

        async fn fetch_without_retrier(&self) -> stagger::Report<usize, MyError> {
            let call = stagger::retry(self.api.policy(), async || get(&self.urls[0]).await);
            let is_wanted = |error: &MyError| self.urls.len() == 1 && *error == MyError::Busy;
            call.when(is_wanted).on_event(|_| assert!(!self.urls.is_empty())).with_report().await
        }
    }

    let client = Arc::new(Client { api: Retrier::new(POLICY), urls: vec![String::from("http://host/")] });
    let shared = Arc::clone(&client);
    assert_eq!(tokio::spawn(async move { shared.fetch(&100).await }).await.unwrap(), Ok(12));
    assert_eq!(tokio::spawn(async move { client.fetch_without_retrier().await }).await.unwrap().attempts, 1);
}

#[tokio::test(start_paused = true)]
async fn a_call_with_borrowed_guards_can_be_spawned() {
    let (budget, breaker) = (Arc::new(RecordingBudget::new(9)), Arc::new(RecordingBreaker::new(9, ms(1))));
    let task = tokio::spawn(async move {
        stagger::retry(&POLICY, async || Err::<(), _>(MyError::Busy))
            .guard(&*breaker)
            .guard(&*budget)
            .timeout(ms(5))
            .with_inner_error()
            .await
    });
    assert_eq!(task.await.unwrap(), Err(MyError::Busy));
}

#[tokio::test(start_paused = true)]
async fn a_context_can_be_unsized() {
    let api = Retrier::new(POLICY);
    let mut numbers = [0_u32; 3];
    let slice: &mut [u32] = &mut numbers;
    let answer = api.run_with(slice, async |slice, attempt| {
        slice[attempt.number as usize - 1] = attempt.number;
        if attempt.is_last() || attempt.number == 3 { Ok(()) } else { Err(MyError::Busy) }
    });
    assert_eq!((answer.await, numbers), (Ok(()), [1, 2, 3]));
}

#[tokio::test(start_paused = true)]
async fn reconnect_can_be_spawned() {
    let task = tokio::spawn(async {
        let url = String::from("http://host/");
        let mut connections = Reconnect::new(POLICY, async || get(&url).await);
        connections.next().await.map(|size| (size, connections.next().is_send()))
    });
    assert_eq!(task.await.unwrap(), Ok((12, ())));
}

trait IsSend: Send {
    fn is_send(&self) {}
}

impl<T: Send> IsSend for T {}

#[test]
fn blocking_calls_can_be_sent_to_other_threads() {
    let api = Retrier::new(POLICY).timeout(ms(5));
    let name = String::from("borrowed");
    let call = api.blocking_call(|_| Ok::<_, MyError>(name.len()));
    std::thread::scope(|threads| {
        let of_a_retrier = threads.spawn(|| call.run());
        let alone = threads.spawn(|| stagger::blocking::retry(&POLICY, || Ok::<_, MyError>(name.len())).run());
        assert_eq!((of_a_retrier.join().unwrap(), alone.join().unwrap()), (Ok(8), Ok(8)));
    });
}

/// A call that is not `Send` runs on a `LocalSet`.
#[tokio::test(start_paused = true)]
async fn a_call_that_is_not_send_can_be_spawned_locally() {
    let calls = Rc::new(Cell::new(0));
    let task_calls = calls.clone();
    let local = tokio::task::LocalSet::new();
    let task = local.spawn_local(async move {
        stagger::retry(&POLICY, async || {
            task_calls.set(task_calls.get() + 1);
            Err::<(), _>(MyError::Busy)
        })
        .await
    });
    local.await;
    assert_eq!((task.await.unwrap(), calls.get()), (Err(MyError::Busy), 5));
}

/// Boxing makes it possible to store the future, whose type cannot be named, in a struct.
#[tokio::test(start_paused = true)]
async fn a_call_can_be_stored_as_a_trait_object() {
    let call: core::pin::Pin<Box<dyn Future<Output = Result<usize, MyError>> + Send>> =
        Box::pin(stagger::retry(&POLICY, async || get("a").await));
    assert_eq!(call.await, Ok(1));
}

// A call with immediately ready attempts and zero delays still yields to other tasks.

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
