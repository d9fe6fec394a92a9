//! An operator control in an incident: a client throttles its retries, disables them and enables them again while it
//! runs. On virtual time.
//!
//! ```sh
//! cargo run -p stagger --example retry_control
//! ```

use core::sync::atomic::{AtomicU32, Ordering};

use stagger::breaker::CircuitBreaker;
use stagger::budget::{ControlMode, Tokens};
use stagger::control::RetryControls;
use stagger::{Policy, Ratio, Retrier, StopReason, policy};

const POLICY: Policy = policy!(exponential(ms(100), secs(10)).max_attempts(4));
const CALLS: u32 = 100;

/// A server that is down, and counts its requests.
#[derive(Default)]
struct Server(AtomicU32);

impl Server {
    async fn answer(&self) -> Result<(), &'static str> {
        self.0.fetch_add(1, Ordering::Relaxed);
        Err("no answer")
    }

    /// Returns the attempts made by a hundred calls.
    async fn load(&self, api: &Retrier) -> u32 {
        self.0.store(0, Ordering::Relaxed);
        for _ in 0..CALLS {
            let _ = api.run(|| self.answer()).await;
        }
        self.0.load(Ordering::Relaxed)
    }
}

#[tokio::main(flavor = "current_thread", start_paused = true)]
async fn main() -> Result<(), Box<dyn core::error::Error>> {
    // The value of STAGGER_CONTROL; usually unset.
    let controls = RetryControls::from_env()?;
    controls.set("*", ControlMode::Enforced);
    // Large enough that only the operator control has an effect here.
    let budget = Tokens::builder().capacity(1_000_000).build()?;
    let api = Retrier::new(POLICY).named("api").budget(budget).controls(&controls);
    let server = Server::default();

    println!("{:<32}{:>4} attempts for {CALLS} calls", "before", server.load(&api).await);
    for (line, want) in [
        // Every retry adds load to a server that is down: throttle them,
        ("api=20%", 120..=130),
        // disable them,
        ("api=no-retries", 100..=100),
        // and enable them again.
        ("api=enforced", 400..=400),
    ] {
        controls.apply(line)?;
        let load = server.load(&api).await;
        println!("{line:<32}{load:>4}");
        assert!(want.contains(&load), "{line}: {load}");
    }

    // A guard that is not trusted yet is observed: it rejects nothing, and what it would have rejected is counted.
    let db = Retrier::new(POLICY).named("db").breaker(CircuitBreaker::new(stagger::seed())).controls(&controls);
    controls.apply("db=observed 10%")?;
    let load = server.load(&db).await;
    let seen = controls.control("db").snapshot();
    println!(
        "{:<32}{load:>4}, of which the breaker would have rejected {}",
        "db=observed 10%", seen.would_have_rejected
    );
    assert!(load >= CALLS && seen.rejected == 0 && seen.would_have_rejected > 0);

    // A line with a mistake is an error, and changes nothing.
    let error = controls.apply("api=no-retry; db").err().ok_or("the line is invalid")?;
    println!("{error}");
    assert_eq!((error.problems().len(), controls.setting("db").share()), (2, Ratio::percent(10)));

    controls.set("api", ControlMode::NoRetries);
    let error = api.run(|| server.answer()).await.err().ok_or("the server is down")?;
    println!("{error:#}");
    assert_eq!((error.stop_reason(), error.attempts()), (StopReason::CONTROL, 1));
    Ok(())
}
