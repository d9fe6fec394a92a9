use core::time::Duration;

use stagger_core::{Policy, Seed};
use stagger_sim::reconnect::{FirstAttempt, ReconnectFigures, ReconnectScenario, ReconnectScenarioBuilder, RetryAfter};

const SEED: Seed = Seed::new(4);

fn fleet(clients: u64) -> ReconnectScenarioBuilder {
    ReconnectScenario::builder(clients).rate(100.0).backlog(50).down_for(Duration::from_secs(2))
}

fn run(scenario: ReconnectScenarioBuilder, policy: &str) -> ReconnectFigures {
    let policy: Policy = policy.parse().unwrap();
    scenario.build().unwrap().run(&policy, SEED)
}

const FULL: &str = "exponential base=1s cap=30s max-attempts=inf";

#[test]
fn a_server_that_never_sees_too_many_attempts_does_not_crash() {
    for policy in [FULL, "exponential base=1s cap=30s spread=30s max-attempts=inf"] {
        let plain = run(fleet(2_000), policy);
        let mut looped = run(fleet(2_000).crash_loop(5, 1e6), policy);
        assert_eq!(looped.crashes, 0);
        looped.crashes = plain.crashes;
        assert_eq!(looped, plain, "{policy}");
    }
}

#[test]
fn the_herd_without_a_spread_crashes_the_server_as_often_as_it_may() {
    let crashes = |most, policy: &str| run(fleet(2_000).crash_loop(most, 200.0), policy).crashes;
    for most in [1, 2, 3] {
        assert_eq!(crashes(most, "constant base=1s jitter=none max-attempts=inf"), u64::from(most));
    }
    assert_eq!(crashes(5, "exponential base=1s cap=30s spread=40s max-attempts=inf"), 0);
}

#[test]
fn the_loop_ends_when_the_peak_is_below_the_limit() {
    // The ceilings grow with every failure, so the clients are further apart each time.
    let figures = run(fleet(2_000).crash_loop(100, 300.0), "exponential base=1s cap=2m max-attempts=inf");
    assert!((1..100).contains(&figures.crashes), "{}", figures.crashes);
    assert_eq!(figures.connected, 2_000);
}

#[test]
fn every_client_is_counted_once_and_recovers_after_the_last_crash() {
    for hint in
        [RetryAfter::None, RetryAfter::Fixed(Duration::from_secs(1)), RetryAfter::Staggered, RetryAfter::Reservations]
    {
        for first in [FirstAttempt::AfterDelay, FirstAttempt::Immediate] {
            for most in [0, 1, 4] {
                let scenario = fleet(1_000).retry_after(hint).first_attempt(first).crash_loop(most, 150.0);
                let figures = run(scenario, "exponential base=1s cap=30s max-attempts=30");
                let all = figures.connected + figures.gave_up + figures.unfinished;
                assert_eq!((all, figures.connects.total()), (1_000, figures.connected), "{hint:?} {first:?} {most}");
                let finished: u64 = figures.clients_by_attempts.iter().sum();
                let attempts: u64 = (0..).zip(&figures.clients_by_attempts).map(|(n, count)| n * count).sum();
                assert_eq!((finished, attempts), (1_000, figures.attempts), "{hint:?} {first:?} {most}");
            }
        }
    }
}

/// One client, one crash: the times follow from the model alone.
#[test]
fn a_connection_that_is_lost_again_recovers_from_its_first_loss() {
    let ms = Duration::from_millis;
    let scenario = ReconnectScenario::builder(2)
        .rate(1_000.0)
        .one_way(ms(10), ms(10))
        .disconnect_window(Duration::ZERO)
        .down_for(ms(500));
    let policy = "constant base=1s jitter=none max-attempts=inf";
    // Both arrive at 1.01 s, and the server crashes under the second. The pending handshake of the first fails, and so
    // does the second attempt: both hear of it at 1.02 s, arrive at 2.03 s, and are connected 1 and 2 ms later.
    let figures = run(scenario.crash_loop(1, 1.0), policy);
    assert_eq!((figures.crashes, figures.attempts, figures.attempts_max), (1, 4, 2));
    assert_eq!(figures.t100, Some(ms(2_042)));
    assert_eq!(run(scenario, policy).t100, Some(ms(1_022)));
}

#[test]
fn a_crash_loop_needs_a_rate() {
    for above in [0.0, -1.0, f64::NAN, f64::INFINITY] {
        let error = fleet(10).crash_loop(1, above).build().unwrap_err();
        assert!(error.to_string().contains("the rate is not between"), "{above}: {error}");
    }
}
