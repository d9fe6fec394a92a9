//! Uses each published library once.

use std::cell::Cell;
use std::io;
use std::time::{Duration, SystemTime};

use stagger::{Policy, Retrier, ServerHint, policy};
use stagger_core::Seed;
use stagger_sim::reconnect::ReconnectScenario;

const POLICY: Policy = policy!(exponential(ms(1), ms(2)).max_attempts(3));

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let calls = Cell::new(0);
    let answer = stagger::retry(&POLICY, async || {
        calls.set(calls.get() + 1);
        if calls.get() < 3 { Err(io::Error::from(io::ErrorKind::ConnectionReset)) } else { Ok(calls.get()) }
    });
    assert_eq!(answer.await?, 3);
    assert_eq!(POLICY.delays(Seed::new(1)).count(), 2);

    let backoff = stagger_cenkalti::with_max_retries(stagger_cenkalti::ZeroBackOff, 1);
    let result = stagger_cenkalti::retry(async || Ok::<_, io::Error>("done"), backoff).await;
    assert_eq!(result.ok(), Some("done"));

    let mut headers = http::HeaderMap::new();
    headers.insert("retry-after", http::HeaderValue::from_static("120"));
    let hint = stagger_http::hint::server_hint(&headers, SystemTime::now);
    assert_eq!(hint, Some(ServerHint::AtLeast(Duration::from_secs(120))));

    let _ = Retrier::new(POLICY).classify(stagger_db::redis);
    // Nothing listens there; the fleet does not need it to.
    let fleet = stagger_redis::Fleet::builder("redis://127.0.0.1:9", 1).build()?;
    let _ = Retrier::new(POLICY).budget(fleet.tokens("example").build()?);
    let _ = stagger_ws::Client::builder().url("ws://localhost:9/");

    let scenario = ReconnectScenario::builder(100).rate(50.0).backlog(25).build()?;
    assert!(scenario.run(&Policy::DEFAULT, Seed::new(1)).attempts_per_client() >= 1.0);
    println!("the packages work");
    Ok(())
}
