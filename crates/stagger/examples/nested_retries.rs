//! Nested retries: three layers with three attempts each make 27 calls of one, or 3, or what one budget pays for; and what
//! to do about work on other tasks. On virtual time.
//!
//! ```sh
//! cargo run -p stagger --example nested_retries
//! ```

use core::sync::atomic::{AtomicU32, Ordering};
use std::sync::Arc;

use stagger::budget::{BudgetError, Tokens};
use stagger::{NestedRetries, scope};
use stagger::{Policy, Retrier, RetryResultExt as _, policy, retry};

const POLICY: Policy = policy!(exponential(ms(100), secs(10)).max_attempts(3));
const ONE_RETRY: Policy = policy!(exponential(ms(100), secs(10)).max_attempts(2));

/// A database that is down, and counts who knocks.
#[derive(Clone, Default)]
struct Database(Arc<AtomicU32>);

impl Database {
    async fn query(&self) -> Result<(), &'static str> {
        self.0.fetch_add(1, Ordering::Relaxed);
        Err("down")
    }

    /// How many queries there were since the last time of asking.
    fn queries(&self) -> u32 {
        self.0.swap(0, Ordering::Relaxed)
    }
}

/// What a repository does, that knows nothing of its callers.
async fn load(database: Database) -> Result<(), &'static str> {
    retry(&POLICY, async || database.query().await).await
}

/// A page, made of a service, made of a repository: each of them retries. Gives the queries that this makes.
async fn three_layers(outside: &Retrier, inside: &Retrier, database: &Database) -> u32 {
    let refused = |_| "refused";
    let query = async || database.query().await;
    let repository = async || inside.run(query).await.into_inner_or(refused);
    let service = async || inside.run(repository).await.into_inner_or(refused);
    assert!(outside.run(service).await.is_err());
    database.queries()
}

#[tokio::main(flavor = "current_thread", start_paused = true)]
async fn main() -> Result<(), BudgetError> {
    let (database, api) = (Database::default(), Retrier::new(POLICY));

    // By default the layers inside make one attempt each, and leave the retrying to the outermost.
    let stood_down = three_layers(&api, &api, &database).await;
    let multiplied = three_layers(&api, &api.clone().nested(NestedRetries::Allow), &database).await;
    println!("three layers, three attempts each: {stood_down} queries, or {multiplied} where every layer retries");
    assert_eq!((stood_down, multiplied), (3, 27));

    // Or all of them retry, and one budget pays: for 10 retries here, whichever layer makes them.
    let api = api.budget(Tokens::builder().capacity(50).build()?);
    let shared = three_layers(&api, &api.clone().nested(NestedRetries::ShareBudget), &database).await;
    println!("with one budget for all layers: {shared} queries");
    assert_eq!(shared, 1 + 10);

    // A task that is spawned is outside of the attempt, unless it inherits the mark.
    let spawning = async || tokio::spawn(load(database.clone())).await.unwrap_or(Err("it panicked"));
    assert_eq!(retry(&POLICY, spawning).await, Err("down"));
    let spawned = database.queries();
    let inheriting = async || tokio::spawn(scope::inherit(load(database.clone()))).await.unwrap_or(Err("it panicked"));
    assert_eq!(retry(&POLICY, inheriting).await, Err("down"));
    let inherited = database.queries();
    println!("work on a task of its own: {spawned} queries, or {inherited} with scope::inherit");
    assert_eq!((spawned, inherited), (9, 3));

    // Work that others wait for, too, must not depend on who happened to start it: a cache that is filled for everybody
    // retries, also where its first caller would.
    let fill = async || scope::detached(load(database.clone())).await;
    assert_eq!(retry(&ONE_RETRY, fill).await, Err("down"));
    let shared = database.queries();
    println!("shared work with scope::detached: {shared} queries, 3 for each of the 2 attempts around it");
    assert_eq!(shared, 6);
    Ok(())
}
