//! PostgreSQL: failed over, restarted, and closing connections that are idle.

use core::cell::{Cell, RefCell};
use core::time::Duration;

use sea_orm::ConnectionTrait as _;
use sqlx::{Connection as _, Executor as _, PgConnection};
use stagger::{Outcome, Policy, Retrier, policy};
use stagger_kit::Postgres;
use tokio_postgres::{Client, Error, NoTls};

use super::recipes;

/// The delays of at most 20 ms give a server time to restart or to be promoted.
const POLICY: Policy = policy!(exponential(ms(10), ms(20)).max_attempts(200));

async fn connect(url: &str) -> Result<Client, Error> {
    let (client, connection) = tokio_postgres::connect(url, NoTls).await?;
    tokio::spawn(connection);
    Ok(client)
}

/// Returns the SQLSTATE of an error, and its outcome.
fn classified(error: &Error) -> (Option<&str>, Outcome) {
    (error.code().map(tokio_postgres::error::SqlState::code), recipes::tokio_postgres(error))
}

#[tokio::test]
async fn a_write_to_the_standby_succeeds_once_it_is_promoted() {
    let primary = RefCell::new(Postgres::start().unwrap());
    primary.borrow().sql("create table sale (id int primary key)").unwrap();
    let standby = primary.borrow().standby().unwrap();
    let (url, seen) = (standby.url(), RefCell::new(Vec::new()));
    let sell = async || {
        // A new connection for each attempt.
        let client = connect(&url).await?;
        client.execute("insert into sale values (1)", &[]).await.inspect_err(|error| {
            seen.borrow_mut().extend(classified(error).0.map(str::to_owned));
            primary.borrow_mut().server().kill();
            standby.sql("select pg_promote()").unwrap();
        })
    };
    stagger::retry(&POLICY, sell).classify(recipes::tokio_postgres).await.unwrap();
    assert_eq!(*seen.borrow(), ["25006"]);
    assert_eq!(standby.sql("select count(*) from sale").unwrap(), "1\n");
}

#[tokio::test]
async fn a_killed_server_and_a_connection_to_it_are_transient() {
    let mut postgres = Postgres::start().unwrap();
    let url = postgres.url();
    let client = connect(&url).await.unwrap();
    postgres.server().kill();
    assert_eq!(classified(&client.execute("select 1", &[]).await.unwrap_err()).1, Outcome::TRANSIENT);
    assert_eq!(classified(&client.execute("select 1", &[]).await.unwrap_err()).1, Outcome::TRANSIENT);
    assert_eq!(classified(&connect(&url).await.err().unwrap()), (None, Outcome::TRANSIENT));
    postgres.server().restart().unwrap();
    let retrier = Retrier::new(POLICY).classify(recipes::tokio_postgres);
    let count = async || connect(&url).await?.execute("select 1", &[]).await;
    assert_eq!(retrier.run(count).await.unwrap(), 1);
}

#[tokio::test]
async fn replies_of_the_server_are_classified_by_their_sqlstate() {
    let postgres = Postgres::start().unwrap();
    let client = connect(&postgres.url()).await.unwrap();
    let raised = |code: &str| format!("do $$ begin raise exception using errcode = '{code}'; end $$");
    for (statement, code, want) in [
        ("begin read only; create table t (id int)".to_owned(), "25006", Outcome::TRANSIENT),
        ("execute nothing".to_owned(), "26000", Outcome::TRANSIENT),
        ("select * from nothing".to_owned(), "42P01", Outcome::Permanent),
        (raised("40001"), "40001", Outcome::TRANSIENT),
        (raised("53300"), "53300", Outcome::throttled(None)),
    ] {
        let error = client.batch_execute(&statement).await.unwrap_err();
        assert_eq!(classified(&error), (Some(code), want), "{statement}");
        client.batch_execute("rollback").await.unwrap();
    }

    let orm = sea_orm::Database::connect(postgres.url()).await.unwrap();
    for (statement, want) in [
        (raised("40P01"), Outcome::TRANSIENT),
        (raised("57P05"), Outcome::TRANSIENT),
        ("select * from nothing".to_owned(), Outcome::Permanent),
    ] {
        let error = orm.execute_unprepared(&statement).await.unwrap_err();
        assert_eq!(recipes::sea_orm(&error), want, "{error}");
    }
}

#[tokio::test]
async fn a_statement_that_another_server_prepared_is_prepared_again() {
    let postgres = Postgres::start().unwrap();
    let client = connect(&postgres.url()).await.unwrap();
    let attempts = Cell::new(0);
    let count = async || {
        attempts.set(attempts.get() + 1);
        let statement = client.prepare("select 1").await?;
        if attempts.get() == 1 {
            // As behind a pooler that has changed the server.
            client.batch_execute("deallocate all").await?;
        }
        client.execute(&statement, &[]).await
    };
    assert_eq!(stagger::retry(&POLICY, count).classify(recipes::tokio_postgres).await.unwrap(), 1);
    assert_eq!(attempts.get(), 2);
}

#[tokio::test]
async fn connections_that_the_server_closed_because_they_were_idle_are_transient() {
    let postgres = Postgres::start().unwrap();
    for (setting, begin, code) in [
        ("set idle_in_transaction_session_timeout = '1ms'", "begin", "25P03"),
        ("set idle_session_timeout = '1ms'", "select 1", "57P05"),
    ] {
        let mut connection = PgConnection::connect(&postgres.url()).await.unwrap();
        connection.execute(begin).await.unwrap();
        connection.execute(setting).await.unwrap();
        let open = "select count(*) from pg_stat_activity where query like 'set idle%'";
        while postgres.sql(open).unwrap() != "0\n" {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
        let error = connection.execute("select 1").await.unwrap_err();
        let seen = error.as_database_error().and_then(|error| error.code());
        assert_eq!(seen.as_deref(), Some(code), "{error}");
        assert_eq!(stagger_db::sqlx(&error), Outcome::TRANSIENT);
    }
}
