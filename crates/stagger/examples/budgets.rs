//! Budgets: what failing calls cost a server, with and without one; one for each host. On virtual time.
//!
//! ```sh
//! cargo run -p stagger --example budgets
//! ```

use core::cell::Cell;
use core::num::NonZeroUsize;
use core::sync::atomic::{AtomicU32, Ordering};
use core::time::Duration;
use std::sync::Arc;

use stagger::budget::{BudgetError, Partitioned, Tokens, Window};
use stagger::{Policy, Ratio, Retrier, StopReason, policy};
use tokio::task::JoinSet;
use tokio::time::sleep;

const POLICY: Policy = policy!(exponential(ms(100), secs(10)).max_attempts(4));
const CALLS: u32 = 1_000;

/// A thousand calls of a service that is down, a hundred a second. Gives what it saw of them: first attempts and retries.
async fn outage(api: Retrier) -> u32 {
    let seen = Arc::new(AtomicU32::new(0));
    let mut calls = JoinSet::new();
    for _ in 0..CALLS {
        let (api, seen) = (api.clone(), Arc::clone(&seen));
        calls.spawn(async move {
            let attempt = async || {
                seen.fetch_add(1, Ordering::Relaxed);
                Err::<(), _>("down")
            };
            api.run(attempt).await
        });
        sleep(Duration::from_millis(10)).await;
    }
    calls.join_all().await;
    seen.load(Ordering::Relaxed)
}

/// One host is down, the other fails every tenth time. Gives how many calls of the ailing one failed for good.
async fn two_hosts(api: impl Fn(&str) -> Retrier) -> u32 {
    let (request, mut failed) = (Cell::new(0), 0);
    for _ in 0..CALLS {
        let down = async || Err::<(), _>("down");
        let ailing = async || {
            request.set(request.get() + 1);
            if request.get() % 10 == 0 { Err("reset") } else { Ok(()) }
        };
        // Both fail sometimes; only the second is counted.
        let _ = api("down.example").run(down).await;
        failed += u32::from(api("ailing.example").run(ailing).await.is_err());
    }
    failed
}

#[tokio::main(flavor = "current_thread", start_paused = true)]
async fn main() -> Result<(), BudgetError> {
    let window = Window::builder().ratio(Ratio::percent(20)).min_per_second(0).build()?;
    let unbounded = outage(Retrier::new(POLICY)).await;
    let tokens = outage(Retrier::new(POLICY).budget(Tokens::new())).await;
    let share = outage(Retrier::new(POLICY).budget(window)).await;
    println!("{CALLS} calls, of which every one fails:");
    println!("  no budget            {unbounded} attempts");
    println!("  500 tokens, 5 each   {tokens} attempts: 100 retries, then none until calls succeed again");
    println!("  20 % of the calls    {share} attempts");
    assert_eq!((unbounded, tokens), (4 * CALLS, CALLS + 100));
    assert!(share > CALLS + CALLS / 10 && share <= CALLS + CALLS / 5, "{share}");

    // Who is refused keeps its own error, and is told whose budget it was.
    let broke = Retrier::new(POLICY).budget(Tokens::builder().initial(0).build()?);
    let Err(error) = broke.run(async || Err::<(), _>("down")).await else { unreachable!("it is down") };
    println!("  refused like this    {error}");
    assert_eq!((error.stop_reason(), error.error()), (StopReason::Budget, Some(&"down")));

    // A bucket of its own for each host, so that one in trouble does not use up the retries of the others.
    let most = NonZeroUsize::new(100).unwrap_or(NonZeroUsize::MIN);
    let hosts = Partitioned::<String, _>::new(most, || Tokens::builder().reward(1).build().unwrap_or_default());
    let one = Arc::new(Tokens::builder().reward(1).build()?);
    let shared = two_hosts(|_| Retrier::new(POLICY).shared_budget(one.clone())).await;
    let apart = two_hosts(|host| Retrier::new(POLICY).shared_budget(hosts.of(host))).await;
    println!("one host down, another that fails one request in ten; its failed calls, of {CALLS}:");
    println!("  a budget for both    {shared}");
    println!("  one for each host    {apart}");
    assert_eq!(apart, 0);
    assert!(shared > 50, "{shared}");
    Ok(())
}
