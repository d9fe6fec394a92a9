//! Hedging: a second copy of slow requests, and its effect on tail latency. On virtual time.
//!
//! ```sh
//! cargo run -p stagger --example hedging
//! ```

use core::time::Duration;

use stagger::hedge::{Hedge, Latencies};
use stagger::schedule::draw;
use stagger::{Ratio, Seed};
use tokio::time::{Instant, sleep};

const CALLS: u64 = 2_000;
/// A second copy for the slowest 5 %; after 100 ms until enough latencies are known.
const TAIL: Hedge = Hedge::at_quantile(Ratio::percent(95), Duration::from_millis(100));

/// Sends a request to a server that responds within 5 to 15 ms, except for one request in fifty, which takes a second.
async fn send_request(id: u64) -> Result<(), &'static str> {
    let seed = Seed::new(1).for_call(id);
    let is_slow = seed.get() % 50 == 0;
    let (least, most) = if is_slow { (1_000, 1_000) } else { (5, 15) };
    sleep(draw(Duration::from_millis(least), Duration::from_millis(most), seed.for_call(1).get())).await;
    Ok(())
}

fn quantile(sorted: &[Duration], percent: usize) -> Duration {
    sorted[(sorted.len() - 1) * percent / 100]
}

#[tokio::main(flavor = "current_thread", start_paused = true)]
async fn main() -> Result<(), &'static str> {
    let (mut plain, mut hedged, mut launched) = (Vec::new(), Vec::new(), 0);
    for id in 0..CALLS {
        let began = Instant::now();
        send_request(id).await?;
        plain.push(began.elapsed());
    }

    let latencies = Latencies::new(500);
    for id in 0..CALLS {
        let (began, mut copies) = (Instant::now(), 0);
        let report = stagger::hedge::hedge(&TAIL, || {
            copies += 1;
            // The same request at another time, or to another replica.
            send_request(id + CALLS * (copies - 1))
        })
        .latencies(&latencies)
        .with_report()
        .await;
        report.result?;
        launched += u64::from(report.launched);
        hedged.push(began.elapsed());
    }

    plain.sort_unstable();
    hedged.sort_unstable();
    let extra = (launched - CALLS) as f64 / CALLS as f64 * 100.0;
    println!("without hedging: p50 {:.1?}, p99 {:.1?}", quantile(&plain, 50), quantile(&plain, 99));
    println!("with hedging:    p50 {:.1?}, p99 {:.1?}", quantile(&hedged, 50), quantile(&hedged, 99));
    println!("for {extra:.1} % more requests");

    assert_eq!(quantile(&plain, 99), Duration::from_secs(1));
    assert!(quantile(&hedged, 99) < Duration::from_millis(60));
    assert!(extra < 9.0);
    Ok(())
}
