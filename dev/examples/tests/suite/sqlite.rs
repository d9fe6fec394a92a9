//! SQLite: a locked database, with two connections.

use core::cell::Cell;
use core::time::Duration;

use diesel::{Connection as _, RunQueryDsl as _, SqliteConnection, sql_query};
use rusqlite::{Connection, OpenFlags};
use stagger::{Outcome, Policy, Retrier, policy};
use tempfile::TempDir;

use super::recipes;

const POLICY: Policy = policy!(zero().max_attempts(5));

/// A database on disk with a table of one row.
struct Database(TempDir);

impl Database {
    fn new(journal: &str) -> Self {
        let database = Self(tempfile::tempdir().unwrap());
        let table = "create table stock (id integer primary key, pieces int); insert into stock values (1, 100)";
        database.connect().execute_batch(&format!("pragma journal_mode = {journal}; {table}")).unwrap();
        database
    }

    fn path(&self) -> String {
        self.0.path().join("stock.db").display().to_string()
    }

    /// Opens a connection that does not wait for locks.
    fn connect(&self) -> Connection {
        let connection = Connection::open(self.path()).unwrap();
        connection.busy_timeout(Duration::ZERO).unwrap();
        connection
    }
}

const SELL: &str = "update stock set pieces = pieces - 1";

fn pieces(connection: &Connection) -> rusqlite::Result<i32> {
    connection.query_row("select pieces from stock", [], |row| row.get(0))
}

/// Returns the extended result code and the outcome of an error.
fn classified(error: &rusqlite::Error) -> (i32, Outcome) {
    (error.sqlite_error().unwrap().extended_code, recipes::rusqlite(error))
}

#[test]
fn a_database_that_another_connection_has_locked_is_transient_and_a_constraint_permanent() {
    let database = Database::new("delete");
    let (first, second) = (database.connect(), database.connect());
    first.execute_batch("begin immediate").unwrap();
    assert_eq!(classified(&second.execute(SELL, []).unwrap_err()), (5, Outcome::TRANSIENT));
    first.execute_batch("commit").unwrap();
    second.execute(SELL, []).unwrap();
    let duplicate = second.execute("insert into stock values (1, 1)", []).unwrap_err();
    assert_eq!(classified(&duplicate), (1555, Outcome::Permanent));
}

#[test]
fn a_table_locked_in_a_shared_cache_is_transient() {
    let open = || Connection::open_with_flags("file:shared?mode=memory&cache=shared", OpenFlags::default()).unwrap();
    let (first, second) = (open(), open());
    first.execute_batch("create table stock (pieces int); begin; insert into stock values (1)").unwrap();
    assert_eq!(classified(&pieces(&second).unwrap_err()), (262, Outcome::TRANSIENT));
}

#[test]
fn an_outdated_snapshot_fails_again_with_the_statement_and_succeeds_with_the_transaction() {
    let database = Database::new("wal");
    let (mut first, second) = (database.connect(), database.connect());
    first.execute_batch("begin").unwrap();
    assert_eq!(pieces(&first), Ok(100));
    second.execute(SELL, []).unwrap();
    for _ in 0..2 {
        assert_eq!(classified(&first.execute(SELL, []).unwrap_err()), (517, Outcome::TRANSIENT));
    }
    first.execute_batch("rollback").unwrap();

    let attempts = Cell::new(0);
    let sell = || {
        attempts.set(attempts.get() + 1);
        let transaction = first.transaction()?;
        let seen = pieces(&transaction)?;
        if attempts.get() < 3 {
            second.execute(SELL, [])?;
        }
        transaction.execute("update stock set pieces = ?", [seen - 1])?;
        transaction.commit()
    };
    Retrier::new(POLICY).classify(recipes::rusqlite).blocking(sell).unwrap();
    assert_eq!(attempts.get(), 3);
    assert_eq!(pieces(&second), Ok(96), "four sales, each once");
}

#[test]
fn diesel_knows_a_locked_database_by_its_message() {
    let database = Database::new("delete");
    let lock = database.connect();
    let mut connection = SqliteConnection::establish(&database.path()).unwrap();
    lock.execute_batch("begin immediate").unwrap();
    let locked = sql_query(SELL).execute(&mut connection).unwrap_err();
    assert_eq!(recipes::diesel(&locked), Outcome::TRANSIENT, "{locked}");
    lock.execute_batch("commit").unwrap();
    let duplicate = sql_query("insert into stock values (1, 1)").execute(&mut connection).unwrap_err();
    assert_eq!(recipes::diesel(&duplicate), Outcome::Permanent, "{duplicate}");
    let missing = sql_query("select * from nothing").execute(&mut connection).unwrap_err();
    assert_eq!(recipes::diesel(&missing), Outcome::Permanent, "{missing}");
}
