//! Tests of servers that send hints.

use core::time::Duration;

use stagger_core::{Jitter, Policy, Seed};
use stagger_sim::reconnect::{ReconnectFigures, ReconnectScenario, RetryAfter};

/// Runs 10,000 clients with a server that accepts 500 per second: at least 20 s.
fn with(hints: RetryAfter) -> ReconnectFigures {
    let policy = Policy::exponential(Duration::from_millis(500), Duration::from_secs(30))
        .unlimited_attempts()
        .unlimited_hint()
        .build()
        .unwrap();
    let scenario = ReconnectScenario::builder(10_000).rate(500.0).backlog(50).retry_after(hints).build().unwrap();
    scenario.run(&policy, Seed::new(1))
}

#[test]
fn with_reservations_all_clients_need_two_attempts_and_the_min_recovery_time() {
    let figures = with(RetryAfter::Reservations);
    assert!(figures.attempts <= 20_000, "{} attempts", figures.attempts);
    assert!(figures.t100.is_some_and(|t100| t100 < Duration::from_millis(20_400)), "{:?}", figures.t100);
    let after_the_first_wave = figures.arrivals.peak(Duration::from_secs(1));
    assert!(after_the_first_wave <= 75, "{after_the_first_wave} in 100 ms; the capacity is 50");
}

#[test]
fn clients_with_the_same_hint_are_spread() {
    let figures = with(RetryAfter::Fixed(Duration::from_secs(20)));
    // At least 10 s of spread are added to the 20 s, so 200 ms have 200 of the 10,000 clients.
    let peak = figures.arrivals.peak(Duration::from_secs(2));
    assert!(peak < 250, "{peak} in 100 ms");
    assert!(with(RetryAfter::None).attempts > 2 * figures.attempts);
}

#[test]
fn the_total_wait_is_the_sum_of_the_delays() {
    let second = Policy::constant(Duration::from_secs(1)).jitter(Jitter::None).max_attempts(7).build().unwrap();
    let scenario = ReconnectScenario::builder(100).rate(1.0).backlog(1).build().unwrap();
    let figures = scenario.run(&second, Seed::new(1));
    let delays = figures.attempts as f64 / 100.0;
    assert!((figures.waited_mean.as_secs_f64() - delays).abs() < 1e-9, "{:?}, {delays} s", figures.waited_mean);
    assert!(figures.gave_up > 80 && figures.attempts > 500, "{figures:?}");
}

#[test]
fn no_client_is_accepted_while_the_server_is_down() {
    let policy = Policy::exponential(Duration::from_millis(500), Duration::from_secs(30)).max_attempts(20).build();
    let down = Duration::from_secs(10);
    let scenario = ReconnectScenario::builder(1_000).rate(1e6).backlog(1_000).down_for(down).build().unwrap();
    let figures = scenario.run(&policy.unwrap(), Seed::new(1));
    let before = figures.connects.counts()[..100].iter().sum::<u32>();
    assert_eq!((before, figures.connected), (0, 1_000));
    assert!(figures.t50.is_some_and(|t50| t50 < Duration::from_secs(20)), "{:?}", figures.t50);
}
