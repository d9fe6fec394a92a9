//! A circuit breaker: it trips, rejects, probes and closes; a retry around it returns when the breaker says so; and the
//! breakers of a fleet do not send their probes at the same time. On virtual time.
//!
//! ```sh
//! cargo run -p stagger --example circuit_breaker
//! ```

use core::cell::Cell;
use core::error::Error;
use core::time::Duration;
use std::io::{self, ErrorKind};
use std::sync::Arc;

use stagger::breaker::{BreakerState, CircuitBreaker};
use stagger::guard::{Answer, Ask, End, Permit};
use stagger::testing::Recorder;
use stagger::time::{Clock as _, Tokio};
use stagger::{Guard as _, Instant, Outcome, Policy, Retrier, RetryResultExt as _, Seed, policy, retry};
use tokio::time::sleep;

const ONCE: Policy = policy!(constant(secs(1)).max_attempts(1));
/// Open for half a second to a second at first, then for longer each time.
const OPEN: Policy = policy!(exponential(secs(1), secs(30)).jitter(Jitter::Equal));
const PATIENT: Policy = policy!(exponential(ms(10), ms(100)).max_attempts(4));
/// Duration of the server's outage.
const OUTAGE: Duration = Duration::from_secs(4);

#[tokio::main(flavor = "current_thread", start_paused = true)]
async fn main() -> Result<(), Box<dyn Error>> {
    let breaker = Arc::new(CircuitBreaker::builder(stagger::seed()).consecutive(5).open(OPEN).build()?);
    let api = Retrier::new(ONCE).shared_guard(breaker.clone());
    let (start, seen) = (Tokio.now(), Cell::new(0));
    let server = async || {
        seen.set(seen.get() + 1);
        if Tokio.now().saturating_since(start) < OUTAGE {
            Err(io::Error::from(ErrorKind::ConnectionRefused))
        } else {
            Ok(())
        }
    };

    // A call every 10 ms. The server receives the first five and a few probes; the others are rejected immediately.
    let (mut calls, mut was_rejected) = (0, false);
    while calls < 10 || breaker.state() != BreakerState::Closed {
        let before = seen.get();
        let answer = api.run(server).await.into_inner();
        calls += 1;
        let is_rejected = seen.get() == before;
        if !(is_rejected && was_rejected) {
            let message = answer.map_or_else(|error| error.to_string(), |()| String::from("success"));
            println!("{:>7.2?}  {:6}  {message}", Tokio.now().saturating_since(start), breaker.state().name());
        }
        was_rejected = is_rejected;
        sleep(Duration::from_millis(10)).await;
    }
    println!("{calls} calls, {} of which reached the server", seen.get());
    assert!(calls > 400 && seen.get() <= 12, "{calls} calls, {}", seen.get());

    // A retry around it: the breaker's rejection carries a hint, so no retry is wasted while it is open.
    let now = Tokio.now();
    for _ in 0..5 {
        fail(&breaker, now);
    }
    let (retry_in, recorder) = (breaker.retry_in(&now), Recorder::new());
    let around = retry(&PATIENT, async || api.run(server).await.into_inner()).on_event(recorder.listener());
    let attempts = around.with_report().await.attempts;
    println!(
        "open for {retry_in:.1?}: a retry around it waits {:.1?} and makes {attempts} attempts",
        recorder.delays()
    );
    assert!(attempts == 2 && recorder.delays()[0] >= retry_in);

    // A fleet whose breakers trip at the same instant.
    let mut probes: Vec<_> = (0..1_000).map(|client| first_probe(Seed::new(1).for_call(client))).collect();
    probes.sort_unstable();
    let (first, last) = (probes[0], probes[probes.len() - 1]);
    let within = |from: u128| probes.iter().filter(|at| (from..from + 10).contains(&at.as_millis())).count();
    let busiest = (500..=1_000).step_by(10).map(within).max().unwrap_or_default();
    println!("1000 breakers send their probes from {first:.2?} to {last:.2?}, at most {busiest} within 10 ms");
    assert!(first >= Duration::from_millis(500) && last <= Duration::from_secs(1) && busiest < 50);
    Ok(())
}

/// Makes an attempt that fails, if the breaker lets it start.
fn fail(breaker: &CircuitBreaker, now: Instant) {
    if let Answer::Go(permit) = breaker.ask(Ask::FIRST, Permit::NONE, &now) {
        breaker.settle(permit, End::Made(&Outcome::TRANSIENT), &now);
    }
}

/// Returns how long after tripping the breaker with this seed sends its first probe.
fn first_probe(seed: Seed) -> Duration {
    let Ok(breaker) = CircuitBreaker::builder(seed).consecutive(1).open(OPEN).build() else { return Duration::ZERO };
    fail(&breaker, Instant::ZERO);
    breaker.retry_in(&Instant::ZERO)
}
