//! The claims are the figures of: stagger simulate reconnect --compare socket.io --compare 'exponential base=1s spread=5s max-attempts=inf' --clients 500 --capacity 100/s --down 2s --seed 1

use core::time::Duration;

use stagger_core::{Policy, Seed};
use stagger_sim::reconnect::ReconnectScenario;
use stagger_sim::testing::StormTest;

#[test]
fn clients_that_lose_their_connections_come_back_in_time() -> Result<(), Box<dyn core::error::Error>> {
    let policy: Policy = "exponential base=1s cap=30s multiplier=2 jitter=full spread=5s max-attempts=inf".parse()?;
    let scenario = ReconnectScenario::builder(500)
        .rate(100.0)
        .backlog(500)
        .one_way(Duration::from_millis(10), Duration::from_millis(40))
        .disconnect_window(Duration::from_millis(300))
        .down_for(Duration::from_secs(2))
        .horizon(Duration::from_secs(86400))
        .build()?;
    StormTest::run_with_seed(&scenario, &policy, Seed::new(1))
        .peak_second_at_most(272)
        .attempts_per_client_at_most(1.76)
        .recovered_p99_within(Duration::from_micros(6830080))
        .all_clients_recover();
    Ok(())
}
