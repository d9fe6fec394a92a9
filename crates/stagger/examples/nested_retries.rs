//! Nested retries: three layers with three attempts each make 27 calls of one, or 3; and what to do about work on other
//! tasks. On virtual time.
//!
//! ```sh
//! cargo run -p stagger --example nested_retries
//! ```

use core::sync::atomic::{AtomicU32, Ordering};
use std::sync::Arc;

use stagger::{Policy, policy, retry, scope};

const POLICY: Policy = policy!(exponential(ms(100), secs(10)).max_attempts(3));

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

#[tokio::main(flavor = "current_thread", start_paused = true)]
async fn main() {
    let database = Database::default();

    // As it would be without the mark: every layer retries what the one inside has given up.
    let unmarked = async || scope::detached(load(database.clone())).await;
    let service = async || scope::detached(retry(&POLICY, unmarked)).await;
    assert_eq!(retry(&POLICY, service).await, Err("down"));
    let multiplied = database.queries();

    // By default the layers inside make one attempt each, and leave the retrying to the outermost.
    let service = async || retry(&POLICY, async || load(database.clone()).await).await;
    assert_eq!(retry(&POLICY, service).await, Err("down"));
    let stood_down = database.queries();
    println!(
        "three layers, three attempts each: {multiplied} queries, or {stood_down} where the inner ones stand down"
    );
    assert_eq!((multiplied, stood_down), (27, 3));

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
    const ONE_RETRY: Policy = policy!(exponential(ms(100), secs(10)).max_attempts(2));
    assert_eq!(retry(&ONE_RETRY, fill).await, Err("down"));
    let shared = database.queries();
    println!("shared work with scope::detached: {shared} queries, 3 for each of the 2 attempts around it");
    assert_eq!(shared, 6);
}
