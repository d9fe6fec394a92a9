use core::time::Duration;
use std::{env, fs};

use stagger_core::{Policy, Seed, policy};
use stagger_sim::reconnect::ReconnectScenario;
use stagger_sim::testing::StormTest;

use super::message;

const BARE: Policy = policy!(exponential(ms(500), secs(30)).unlimited_attempts());
const SPREAD: Policy = policy!(exponential(ms(500), secs(30)).spread(secs(20)).unlimited_attempts());

/// Simulates 20 s of work for the server.
fn storm(policy: &Policy) -> StormTest {
    StormTest::run(&ReconnectScenario::builder(10_000).rate(500.0).backlog(250).build().unwrap(), policy)
}

/// Compares the message with the documented example. After a change: `STAGGER_BLESS=1 cargo test -p stagger-sim
/// testing`.
#[test]
fn a_failure_shows_the_limit_the_figures_and_a_plot() {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/src/testing/example.txt");
    let bare = storm(&BARE);
    let text = message(|| bare.peak_second_at_most(600));
    if env::var_os("STAGGER_BLESS").is_some() {
        fs::write(path, &text).unwrap();
    }
    assert_eq!(fs::read_to_string(path).unwrap(), text);
    assert!(text.starts_with(&format!("{} attempts arrive within one second", bare.figures().peak_second())));
}

#[test]
fn each_assertion_holds_up_to_its_limit() {
    let storm = storm(&SPREAD);
    let figures = storm.figures();
    let (attempts, took) = (figures.attempts_per_client(), figures.recovered_p99.unwrap());
    storm
        .all_clients_recover()
        .peak_at_most(figures.peak())
        .peak_second_at_most(figures.peak_second())
        .attempts_per_client_at_most(attempts)
        .recovered_p99_within(took);
    for (text, what) in [
        (message(|| storm.peak_at_most(figures.peak() - 1)), "within 100 ms; the limit"),
        (message(|| storm.peak_second_at_most(figures.peak_second() - 1)), "within one second; the limit"),
        (message(|| storm.attempts_per_client_at_most(0.99 * attempts)), "attempts per client; the limit"),
        (message(|| storm.recovered_p99_within(took - Duration::from_nanos(1))), "of the clients recover within"),
    ] {
        let first = text.lines().next().unwrap();
        assert!(first.contains(what), "{text}");
        assert!(text.ends_with(&storm.to_string()), "figures and plot are missing: {text}");
    }
}

#[test]
fn clients_that_give_up_have_not_recovered() {
    let few = storm(&BARE.to_builder().max_attempts(2).build().unwrap());
    let missing = few.figures().clients - few.figures().connected;
    let text = message(|| few.all_clients_recover());
    assert!(text.starts_with(&format!("{missing} of 10000 clients do not recover\n")), "{text}");
    let text = message(|| few.recovered_p99_within(Duration::MAX));
    assert!(text.starts_with("99 % of the clients recover within never; "), "{text}");
}

#[test]
fn another_seed_gives_another_storm() {
    let scenario = ReconnectScenario::builder(1_000).rate(100.0).build().unwrap();
    let attempts = |seed| StormTest::run_with_seed(&scenario, &BARE, Seed::new(seed)).figures().attempts;
    assert_eq!(attempts(1), StormTest::run(&scenario, &BARE).figures().attempts);
    assert_ne!(attempts(1), attempts(2));
}

#[test]
fn a_report_names_the_seed_and_the_remedy() {
    let scenario = ReconnectScenario::builder(10_000).rate(500.0).backlog(250);
    let run = |scenario: ReconnectScenario, policy: &Policy| {
        StormTest::run_with_seed(&scenario, policy, Seed::new(77)).to_string()
    };
    let bare = run(scenario.build().unwrap(), &BARE);
    assert!(bare.contains("\n  seed                 77\n"), "{bare}");
    let spread = "\n  remedy               with a spread of 20s the first wave is within the capacity on average\n";
    assert!(bare.contains(spread), "{bare}");
    let few = run(scenario.build().unwrap(), &BARE.to_builder().max_attempts(2).build().unwrap());
    assert!(few.contains(" clients gave up: more attempts, or unlimited_attempts()\n"), "{few}");
    let short = run(scenario.horizon(Duration::from_secs(10)).build().unwrap(), &BARE);
    assert!(short.contains(" clients were still trying at the end: a longer horizon\n"), "{short}");
    // The peak of a server with room to spare needs no remedy.
    let ample = run(ReconnectScenario::builder(10).rate(500.0).build().unwrap(), &BARE);
    assert!(ample.contains("\n  seed ") && !ample.contains("remedy"), "{ample}");
}
