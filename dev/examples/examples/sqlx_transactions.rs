//! Conflicting transactions: one that fails to serialize is retried as a whole.
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

/// All transactions update the same row; jitter separates them, so that they succeed.
const POLICY: Policy = policy!(exponential(ms(5), ms(200)).max_attempts(50));

/// Takes one piece from the stock. The whole transaction is one attempt, because the values that it has read are
/// invalid once it has failed.
async fn sell(pool: &PgPool) -> Result<(), sqlx::Error> {
    let mut transaction = pool.begin_with("begin isolation level serializable").await?;
    let pieces: i32 = sqlx::query_scalar("select pieces from stock").fetch_one(&mut *transaction).await?;
    // Gives other transactions time to read the same value.
    tokio::time::sleep(Duration::from_millis(2)).await;
    sqlx::query("update stock set pieces = $1").bind(pieces - 1).execute(&mut *transaction).await?;
    transaction.commit().await
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let postgres = Postgres::start()?;
    postgres.sql("create table stock (pieces int); insert into stock values (100)")?;
    let pool = PgPoolOptions::new().max_connections(10).connect(&postgres.url()).await?;

    // The rule classifies serialization failures (SQLSTATE 40001) as transient.
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
    assert!(attempts > SALES, "there were no conflicts");
    assert_eq!(left, 80, "a sale was lost");

    // A permanent error is not retried.
    let wrong = retrier.run(|| sqlx::query("insert into nothing values (1)").execute(&pool)).await;
    let error = wrong.err().ok_or("the table must not exist")?;
    assert_eq!(error.attempts(), 1);
    println!("{error:#}");
    Ok(())
}
