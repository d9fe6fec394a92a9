//! Hedging: a second copy of what is slow, and what it does to the slowest calls. On virtual time.
//!
//! ```sh
//! cargo run -p stagger --example hedging
//! ```

use core::time::Duration;

use stagger::{Ratio, Seed, hedge::Hedge, hedge::Latencies, schedule::draw};
use tokio::time::{Instant, sleep};

const CALLS: u64 = 2_000;
/// A second copy for the slowest twentieth; 100 ms until it is known what that is.
const TAIL: Hedge = Hedge::at_quantile(Ratio::percent(95), Duration::from_millis(100));

/// A server that answers within 5 to 15 ms, but one time in fifty takes a second.
async fn ask(id: u64) -> Result<(), &'static str> {
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
        ask(id).await?;
        plain.push(began.elapsed());
    }

    let latencies = Latencies::new(500);
    for id in 0..CALLS {
        let (began, mut copies) = (Instant::now(), 0);
        let report = stagger::hedge::hedge(&TAIL, || {
            copies += 1;
            // The same request at another moment, or another replica.
            ask(id + CALLS * (copies - 1))
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
    let more = (launched - CALLS) as f64 / CALLS as f64 * 100.0;
    println!("without copies: p50 {:.1?}, p99 {:.1?}", quantile(&plain, 50), quantile(&plain, 99));
    println!("with copies:    p50 {:.1?}, p99 {:.1?}", quantile(&hedged, 50), quantile(&hedged, 99));
    println!("for {more:.1} % more requests");

    assert_eq!(quantile(&plain, 99), Duration::from_secs(1));
    assert!(quantile(&hedged, 99) < Duration::from_millis(60));
    assert!(more < 9.0);
    Ok(())
}
