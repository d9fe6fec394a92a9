//! A test for your own suite: the policy that you ship cannot cause a storm.
//!
//! ```text
//! cargo run -p stagger-sim --example prove_a_policy
//! ```
//!
//! In your crate the functions below `main` are tests (`#[test]`), and `POLICY` is the one that your program uses.

use core::time::Duration;

use stagger_core::budget::Tokens;
use stagger_core::{Policy, policy};
use stagger_sim::testing::{OverloadTest, StormTest};
use stagger_sim::{ScenarioError, outage, reconnect};

/// What the clients reconnect with.
const CONNECTION: Policy = policy!(exponential(ms(500), secs(30)).spread(secs(60)).unlimited_attempts());

/// What the calls are repeated with.
const CALL: Policy = policy!(exponential(ms(100), secs(2)).max_attempts(4));

fn main() -> Result<(), ScenarioError> {
    a_restart_of_the_gateway_is_no_storm()?;
    a_stall_of_the_database_is_over_when_it_is_over()
}

fn a_restart_of_the_gateway_is_no_storm() -> Result<(), ScenarioError> {
    // A hundred thousand clients, and a gateway that lets in 2,000 a second: 50 s at the least.
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

fn a_stall_of_the_database_is_over_when_it_is_over() -> Result<(), ScenarioError> {
    // 700 requests a second from ten processes, to a database that does 1,000 and stands still for two seconds.
    let scenario = outage::OutageScenario::builder(700.0).capacity(1_000.0).build()?;
    let overload = OverloadTest::run(&scenario, &CALL, |_| outage::ProcessGuards::none().budget(Tokens::new()));
    overload.is_not_metastable().recovers_within(Duration::from_secs(10)).amplification_at_most(1.1);
    println!("{overload}");
    Ok(())
}
