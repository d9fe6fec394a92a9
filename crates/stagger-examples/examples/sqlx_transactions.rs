//! Transactions that get in each other's way: whoever loses runs the whole of it again.
//!
//! ```sh
//! cargo run -p stagger-examples --example sqlx_transactions
//! ```

use core::error::Error;
use core::time::Duration;
use std::sync::Arc;

use sqlx::PgPool;
use sqlx::postgres::PgPoolOptions;
use stagger::{Policy, Retrier, policy};
use stagger_kit::Postgres;
use tokio::task::JoinSet;

const SALES: u32 = 20;

/// Everybody wants the same row: who comes back at another moment than the others gets through.
const POLICY: Policy = policy!(exponential(ms(5), ms(200)).max_attempts(50));

/// Takes one piece from the stock. From the beginning to the commit it is one attempt, for what was read in it is good for
/// nothing once it has failed.
async fn sell(pool: &PgPool) -> Result<(), sqlx::Error> {
    let mut transaction = pool.begin_with("begin isolation level serializable").await?;
    let pieces: i32 = sqlx::query_scalar("select pieces from stock").fetch_one(&mut *transaction).await?;
    // As long as it takes to decide; meanwhile others have read the same.
    tokio::time::sleep(Duration::from_millis(2)).await;
    sqlx::query("update stock set pieces = $1").bind(pieces - 1).execute(&mut *transaction).await?;
    transaction.commit().await
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let postgres = Postgres::start()?;
    postgres.sql("create table stock (pieces int); insert into stock values (100)")?;
    let pool = PgPoolOptions::new().max_connections(10).connect(&postgres.url()).await?;

    // A serialization failure, SQLSTATE 40001, is transient to this rule.
    let retrier = Arc::new(Retrier::new(POLICY).classify(stagger_db::sqlx));
    let mut sales = JoinSet::new();
    for _ in 0..SALES {
        let (retrier, pool) = (Arc::clone(&retrier), pool.clone());
        sales.spawn(async move { retrier.run(|| sell(&pool)).with_report().await });
    }
    let mut attempts = 0;
    while let Some(report) = sales.join_next().await {
        let report = report?;
        attempts += report.attempts;
        report.result?;
    }
    let left: i32 = sqlx::query_scalar("select pieces from stock").fetch_one(&pool).await?;
    println!("{SALES} sales in {attempts} attempts, {left} pieces left");
    assert!(attempts > SALES, "they were in nobody's way");
    assert_eq!(left, 80, "a sale was lost");

    // What is wrong is wrong the next time too.
    let wrong = retrier.run(|| sqlx::query("insert into nothing values (1)").execute(&pool)).await;
    let error = wrong.err().ok_or("there is no such table")?;
    assert_eq!(error.attempts(), 1);
    println!("{error}");
    Ok(())
}
