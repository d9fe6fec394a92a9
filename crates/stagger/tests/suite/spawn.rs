//! What must be spawnable, whatever it borrows. That it compiles is the test; that it runs is a bonus.

use std::sync::Arc;

use stagger::{Cancel, OwnError as _, Policy, Refused, Retrier, policy};

const POLICY: Policy = policy!(exponential(ms(1), ms(5)).max_attempts(5));

struct Connection {
    calls: u32,
}

#[derive(Debug, PartialEq)]
enum MyError {
    Busy,
    Refused(Refused),
}

impl From<Refused> for MyError {
    fn from(why: Refused) -> Self {
        Self::Refused(why)
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
async fn the_one_liner_is_the_future_that_is_spawned() {
    let url = String::from("http://host/");
    let handle = tokio::spawn(async move { stagger::retry(&POLICY, async || get(&url).await).await });
    assert_eq!(handle.await.unwrap(), Ok(12));

    // The builder itself, without an async block around it.
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
        stagger::retry(&POLICY, async || get("bb").await).report(),
    );
    assert_eq!((a, b.result.own()), (Ok(1), Ok(2)));
    tokio::select! {
        out = stagger::retry(&POLICY, async || get("ccc").await) => assert_eq!(out, Ok(3)),
        () = std::future::pending() => unreachable!(),
    }
}

#[tokio::test(start_paused = true)]
async fn a_call_that_borrows_its_context_mutably_is_spawned() {
    let api = Retrier::new(POLICY);
    let handle = tokio::spawn(async move {
        let sql = String::from("select 1");
        let mut connection = Connection { calls: 0 };
        let answer = api.run_with(&mut connection, async |connection, _| connection.query(&sql).await).await.own();
        (answer, connection.calls)
    });
    assert_eq!(handle.await.unwrap(), (Ok(8), 3));
}

#[tokio::test(start_paused = true)]
async fn the_loop_form_lends_anything_and_is_spawned() {
    let api = Retrier::new(POLICY);
    let handle = tokio::spawn(async move {
        let sql = String::from("select 1");
        let mut connection = Connection { calls: 0 };
        let mut call = api.call();
        let rows = loop {
            if let Some(done) = call.attempt(connection.query(&sql)).await {
                break done.own()?;
            }
        };
        Ok::<_, MyError>((rows, connection.calls))
    });
    assert_eq!(handle.await.unwrap(), Ok((8, 3)));
}

#[tokio::test(start_paused = true)]
async fn every_kind_of_call_is_send() {
    fn is_send<T: Send>(_: &T) {}
    let api = Retrier::new(POLICY).when(|error: &MyError| *error == MyError::Busy);
    is_send(&api);
    is_send(&api.run(async || get("a").await));
    is_send(&api.run(async || get("a").await).own());
    is_send(&api.run(async || get("a").await).report().cancelled_by(std::future::pending::<()>()));
    is_send(&api.call());
    is_send(&stagger::retry(&POLICY, async || get("a").await).timeout(std::time::Duration::from_secs(1)));
    is_send(&Cancel::new());
}
