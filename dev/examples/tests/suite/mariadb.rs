//! MariaDB: locked rows, deadlocks, a read-only server, one without a free connection, one that ends.

use core::cell::RefCell;
use core::time::Duration;

use mysql_async::prelude::Queryable as _;
use mysql_async::{Conn, Error};
use sqlx::Connection as _;
use stagger::{Outcome, Policy, policy};
use stagger_kit::{Mariadb, Signal};

use super::recipes;

const POLICY: Policy = policy!(exponential(ms(1), ms(5)).max_attempts(20));

/// Returns the number of an error, and its outcome.
fn classified(error: &Error) -> (Option<u16>, Outcome) {
    let number = if let Error::Server(error) = error { Some(error.code) } else { None };
    (number, recipes::mysql_async(error))
}

async fn connect(mariadb: &Mariadb, user: &str) -> Conn {
    Conn::from_url(mariadb.url(user)).await.unwrap()
}

#[tokio::test]
async fn locks_and_deadlocks_are_transient_and_end_the_transaction() {
    let mariadb = Mariadb::start(&[]).unwrap();
    let (mut first, mut second) = (connect(&mariadb, "app").await, connect(&mariadb, "app").await);
    first.query_drop("create table stock (id int primary key, pieces int)").await.unwrap();
    first.query_drop("insert into stock values (1, 100), (2, 100)").await.unwrap();
    let sell = |id: u32| format!("update stock set pieces = pieces - 1 where id = {id}");

    // 1205, with SQLSTATE HY000: only the number says that a retry helps.
    first.query_drop("begin").await.unwrap();
    first.query_drop(sell(1)).await.unwrap();
    second.query_drop("set innodb_lock_wait_timeout = 0").await.unwrap();
    let locked = second.query_drop(sell(1)).await.unwrap_err();
    assert_eq!(classified(&locked), (Some(1205), Outcome::TRANSIENT));
    let mut other = sqlx::MySqlConnection::connect(&mariadb.url("app")).await.unwrap();
    sqlx::query("set innodb_lock_wait_timeout = 0").execute(&mut other).await.unwrap();
    let locked = sqlx::query("delete from stock where id = 1").execute(&mut other).await.unwrap_err();
    assert_eq!(stagger_db::sqlx(&locked), Outcome::TRANSIENT, "{locked}");

    // 1213: each waits for the row of the other.
    second.query_drop("set innodb_lock_wait_timeout = 50").await.unwrap();
    second.query_drop("begin").await.unwrap();
    second.query_drop(sell(2)).await.unwrap();
    let (one, two) = tokio::join!(first.query_drop(sell(2)), second.query_drop(sell(1)));
    let victim = one.err().or(two.err()).unwrap();
    assert_eq!(classified(&victim), (Some(1213), Outcome::TRANSIENT));
    first.query_drop("rollback").await.unwrap();
    second.query_drop("rollback").await.unwrap();

    for (statement, number) in [("insert into stock values (1, 1)", 1062), ("select * from nothing", 1146)] {
        let error = first.query_drop(statement).await.unwrap_err();
        assert_eq!(classified(&error), (Some(number), Outcome::Permanent));
    }
}

#[tokio::test]
async fn a_write_to_a_replica_succeeds_once_it_is_promoted() {
    let mariadb = Mariadb::start(&["--read-only"]).unwrap();
    let mut root = connect(&mariadb, "root").await;
    root.query_drop("create table test.sale (id int primary key)").await.unwrap();
    let seen = RefCell::new(Vec::new());
    let sell = async || {
        let sold = connect(&mariadb, "app").await.query_drop("insert into sale values (1)").await;
        if let Err(error) = &sold {
            seen.borrow_mut().extend(classified(error).0);
            connect(&mariadb, "root").await.query_drop("set global read_only = off").await?;
        }
        sold
    };
    stagger::retry(&POLICY, sell).classify(recipes::mysql_async).await.unwrap();
    assert_eq!(*seen.borrow(), [1290]);
}

#[tokio::test]
async fn a_server_or_a_user_without_a_free_connection_is_throttled() {
    let mariadb = Mariadb::start(&["--max-connections=10"]).unwrap();
    let mut open = Vec::new();
    let full = loop {
        match Conn::from_url(mariadb.url("app")).await {
            Ok(connection) => open.push(connection),
            Err(error) => break error,
        }
    };
    assert_eq!((classified(&full), open.len()), ((Some(1040), Outcome::throttled(None)), 10));
    let full = sqlx::MySqlConnection::connect(&mariadb.url("app")).await.unwrap_err();
    assert_eq!(stagger_db::sqlx(&full), Outcome::throttled(None), "{full}");
    drop(open);

    let mut root = connect(&mariadb, "root").await;
    root.query_drop("grant usage on *.* to app@'127.0.0.1' with max_user_connections 1").await.unwrap();
    let _one = connect(&mariadb, "app").await;
    let full = Conn::from_url(mariadb.url("app")).await.unwrap_err();
    assert_eq!(classified(&full), (Some(1226), Outcome::throttled(None)));
}

#[tokio::test]
async fn a_server_that_ends_is_transient_however_it_ends() {
    let mut mariadb = Mariadb::start(&[]).unwrap();
    let mut connection = connect(&mariadb, "app").await;
    let mut root = connect(&mariadb, "root").await;
    // The connection is killed, as a shutdown does: with an error message or by closing it.
    let id: u64 = connection.query_first("select connection_id()").await.unwrap().unwrap();
    let (waiting, killed) = tokio::join!(
        connection.query_drop("select sleep(60)"),
        root.query_drop(format!("do sleep(0.05); kill connection {id}"))
    );
    killed.unwrap();
    let error = waiting.unwrap_err();
    assert_eq!(classified(&error).1, Outcome::TRANSIENT, "{error}");

    let mut connection = connect(&mariadb, "app").await;
    mariadb.server().stop(Signal::TERM, Duration::from_secs(30)).unwrap();
    let error = connection.query_drop("select 1").await.unwrap_err();
    assert_eq!(classified(&error).1, Outcome::TRANSIENT, "{error}");
    let refused = Conn::from_url(mariadb.url("app")).await.unwrap_err();
    assert_eq!(classified(&refused), (None, Outcome::TRANSIENT));
}
