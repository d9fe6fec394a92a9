//! Nested retries: three layers with three attempts each turn one call into 27, or 3, or what one budget grants; and
//! what to do about work on other tasks. On virtual time.
//!
//! ```sh
//! cargo run -p stagger --example nested_retries
//! ```

use core::sync::atomic::{AtomicU32, Ordering};
use std::sync::Arc;

use stagger::budget::{BudgetError, Tokens};
use stagger::{NestedRetries, Policy, Retrier, RetryResultExt as _, policy, retry, scope};

const POLICY: Policy = policy!(exponential(ms(100), secs(10)).max_attempts(3));
const ONE_RETRY: Policy = policy!(exponential(ms(100), secs(10)).max_attempts(2));

/// A database that is down, and counts its queries.
#[derive(Clone, Default)]
struct Database(Arc<AtomicU32>);

impl Database {
    async fn query(&self) -> Result<(), &'static str> {
        self.0.fetch_add(1, Ordering::Relaxed);
        Err("down")
    }

    /// Returns the number of queries since the previous call.
    fn queries(&self) -> u32 {
        self.0.swap(0, Ordering::Relaxed)
    }
}

/// Loads from the database, as a repository does that knows nothing about its callers.
async fn load(database: Database) -> Result<(), &'static str> {
    retry(&POLICY, async || database.query().await).await
}

/// Makes a page from a service from a repository, each of which retries. Returns the number of queries.
async fn three_layers(outer: &Retrier, inner: &Retrier, database: &Database) -> u32 {
    let rejected = |_| "rejected";
    let query = async || database.query().await;
    let repository = async || inner.run(query).await.into_inner_or(rejected);
    let service = async || inner.run(repository).await.into_inner_or(rejected);
    assert!(outer.run(service).await.is_err());
    database.queries()
}

#[tokio::main(flavor = "current_thread", start_paused = true)]
async fn main() -> Result<(), BudgetError> {
    let (database, api) = (Database::default(), Retrier::new(POLICY));

    // By default the inner layers make one attempt each, and leave retrying to the outermost layer.
    let disabled = three_layers(&api, &api, &database).await;
    let multiplied = three_layers(&api, &api.clone().nested(NestedRetries::Allow), &database).await;
    println!("three layers, three attempts each: {disabled} queries, or {multiplied} if every layer retries");
    assert_eq!((disabled, multiplied), (3, 27));

    // Alternatively all layers retry within one budget: 10 retries here, whichever layer makes them.
    let api = api.budget(Tokens::builder().capacity(50).build()?);
    let shared = three_layers(&api, &api.clone().nested(NestedRetries::ShareBudget), &database).await;
    println!("with one budget for all layers: {shared} queries");
    assert_eq!(shared, 1 + 10);

    // A spawned task is outside of the attempt, unless it inherits the scope.
    let spawning = async || tokio::spawn(load(database.clone())).await.unwrap_or(Err("it panicked"));
    assert_eq!(retry(&POLICY, spawning).await, Err("down"));
    let spawned = database.queries();
    let inheriting = async || tokio::spawn(scope::inherit(load(database.clone()))).await.unwrap_or(Err("it panicked"));
    assert_eq!(retry(&POLICY, inheriting).await, Err("down"));
    let inherited = database.queries();
    println!("work on a spawned task: {spawned} queries, or {inherited} with scope::inherit");
    assert_eq!((spawned, inherited), (9, 3));

    // Shared work must not depend on which caller happened to start it: filling a cache retries, even if the first
    // caller does, too.
    let fill = async || scope::detached(load(database.clone())).await;
    assert_eq!(retry(&ONE_RETRY, fill).await, Err("down"));
    let shared = database.queries();
    println!("shared work with scope::detached: {shared} queries, 3 for each of the 2 attempts around it");
    assert_eq!(shared, 6);
    Ok(())
}
