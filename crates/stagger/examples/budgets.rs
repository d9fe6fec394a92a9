//! Budgets: the load of failing calls on a server, with and without a budget, and one budget per host. On virtual time.
//!
//! ```sh
//! cargo run -p stagger --example budgets
//! ```

use core::cell::Cell;
use core::sync::atomic::{AtomicU32, Ordering};
use core::time::Duration;
use std::sync::Arc;

use stagger::budget::{BudgetError, Tokens, Window};
use stagger::guard::Keyed;
use stagger::time::{Clock as _, Tokio};
use stagger::{Policy, Ratio, Retrier, StopReason, policy};
use tokio::task::JoinSet;
use tokio::time::sleep;

const POLICY: Policy = policy!(exponential(ms(100), secs(10)).max_attempts(4));
const CALLS: u32 = 1_000;

/// Makes a thousand calls to a service that is down, a hundred per second. Returns the attempts it received, including
/// retries.
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

/// Calls one host that is down and one that fails every tenth request. Returns how many calls to the second one failed.
async fn two_hosts(api: impl Fn(&str) -> Retrier) -> u32 {
    let (request, mut failed) = (Cell::new(0), 0);
    for _ in 0..CALLS {
        let down = async || Err::<(), _>("down");
        let flaky = async || {
            request.set(request.get() + 1);
            if request.get() % 10 == 0 { Err("reset") } else { Ok(()) }
        };
        // Calls to both hosts can fail; only those to the second are counted.
        let _ = api("down.example").run(down).await;
        failed += u32::from(api("flaky.example").run(flaky).await.is_err());
    }
    failed
}

#[tokio::main(flavor = "current_thread", start_paused = true)]
async fn main() -> Result<(), BudgetError> {
    let window = Window::builder().ratio(Ratio::percent(20)).min_per_second(0).build()?;
    let unbounded = outage(Retrier::new(POLICY)).await;
    let tokens = outage(Retrier::new(POLICY).budget(Tokens::new())).await;
    let share = outage(Retrier::new(POLICY).budget(window)).await;
    println!("{CALLS} calls, all of which fail:");
    println!("  no budget            {unbounded} attempts");
    println!("  500 tokens, 5 each   {tokens} attempts: 100 retries, then none until calls succeed again");
    println!("  20 % of the calls    {share} attempts");
    assert_eq!((unbounded, tokens), (4 * CALLS, CALLS + 100));
    assert!(share > CALLS + CALLS / 10 && share <= CALLS + CALLS / 5, "{share}");

    // A call whose retry is rejected keeps its own error, and reports that its budget was the reason.
    let exhausted = Retrier::new(POLICY).budget(Tokens::builder().initial(0).build()?);
    let Err(error) = exhausted.run(async || Err::<(), _>("down")).await else { unreachable!("the service is down") };
    println!("  the error            {error:#}");
    assert_eq!((error.stop_reason(), error.error()), (StopReason::BUDGET, Some(&"down")));

    // One budget per host, so that a failing host does not use up the retries of the others.
    let hosts = Keyed::<String, _>::guards(|| Tokens::builder().reward(1).build().unwrap_or_default());
    let one = Arc::new(Tokens::builder().reward(1).build()?);
    let shared = two_hosts(|_| Retrier::new(POLICY).shared_guard(one.clone())).await;
    let separate = two_hosts(|host| Retrier::new(POLICY).shared_guard(hosts.of(host, Tokio.now()))).await;
    println!("one host down, another that fails one request in ten; failed calls to the second, of {CALLS}:");
    println!("  one shared budget    {shared}");
    println!("  one per host         {separate}");
    assert_eq!(separate, 0);
    assert!(shared > 50, "{shared}");
    Ok(())
}
