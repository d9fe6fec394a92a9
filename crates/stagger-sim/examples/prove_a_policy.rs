//! Tests for your own suite which prove that your policies cannot cause a retry storm.
//!
//! ```text
//! cargo run -p stagger-sim --example prove_a_policy
//! ```
//!
//! In your crate, the functions below `main` are tests (`#[test]`), and the constants are the policies of your program.

use core::time::Duration;

use stagger_core::budget::Tokens;
use stagger_core::{Policy, policy};
use stagger_sim::testing::{OverloadTest, StormTest};
use stagger_sim::{ScenarioError, outage, reconnect};

/// The policy for reconnects.
const CONNECTION: Policy = policy!(exponential(ms(500), secs(30)).spread(secs(60)).unlimited_attempts());

/// The policy for calls.
const CALL: Policy = policy!(exponential(ms(100), secs(2)).max_attempts(4));

fn main() -> Result<(), ScenarioError> {
    a_restart_of_the_gateway_causes_no_storm()?;
    the_system_recovers_from_a_stall_of_the_database()
}

fn a_restart_of_the_gateway_causes_no_storm() -> Result<(), ScenarioError> {
    // A hundred thousand clients, and a gateway that accepts 2,000 per second: at least 50 s.
    let scenario = reconnect::ReconnectScenario::builder(100_000).rate(2_000.0).backlog(1_000).build()?;
    let storm = StormTest::run(&scenario, &CONNECTION);
    storm
        .all_clients_recover()
        .peak_second_at_most(2_000)
        .attempts_per_client_at_most(1.1)
        .recovered_p99_within(Duration::from_secs(65));
    println!("{storm}");
    Ok(())
}

fn the_system_recovers_from_a_stall_of_the_database() -> Result<(), ScenarioError> {
    // 700 requests per second from ten processes, to a database that processes 1,000 and stalls for two seconds.
    let scenario = outage::OutageScenario::builder(700.0).capacity(1_000.0).build()?;
    let overload = OverloadTest::run(&scenario, &CALL, |_| outage::ProcessGuards::none().budget(Tokens::new()));
    overload.is_not_metastable().recovers_within(Duration::from_secs(10)).amplification_at_most(1.1);
    println!("{overload}");
    Ok(())
}
