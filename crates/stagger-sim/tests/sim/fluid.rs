//! Compares the fluid model with the exact simulation.

use core::time::Duration;

use stagger_core::{Jitter, Policy, PolicyBuilder, Ratio, Seed, profile, profile::Profile};
use stagger_sim::fluid::{self, NotSimulable};
use stagger_sim::reconnect::{FirstAttempt, ReconnectScenario, ReconnectScenarioBuilder, RetryAfter};

fn exponential() -> PolicyBuilder {
    Policy::exponential(Duration::from_millis(500), Duration::from_secs(30)).unlimited_attempts()
}

/// Returns a scenario with a million clients: 50 s of work for the server, and a backlog of half a second.
fn million() -> ReconnectScenarioBuilder {
    ReconnectScenario::builder(1_000_000).rate(20_000.0).backlog(10_000)
}

#[track_caller]
fn agree(builder: PolicyBuilder, scenario: ReconnectScenarioBuilder) {
    let (policy, scenario) = (builder.build().unwrap(), scenario.build().unwrap());
    let (exact, fluid) = (scenario.run(&policy, Seed::new(1)), fluid::run(&scenario, &policy).unwrap());
    let share = |count: u64| count as f64 / exact.clients as f64;
    let seconds = |time: Option<Duration>| time.map_or(0.0, |time| time.as_secs_f64());
    for (what, got, want, tolerance) in [
        ("attempts", fluid.attempts_per_client, exact.attempts_per_client(), 0.005),
        ("t50", seconds(fluid.t50), seconds(exact.t50), 0.01),
        ("t99", seconds(fluid.t99), seconds(exact.t99), 0.01),
        ("recovered mean", fluid.recovered_mean.as_secs_f64(), exact.recovered_mean.as_secs_f64(), 0.01),
        ("peak", fluid.peak(), share(exact.peak()), 0.01),
        ("connected", fluid.connected, share(exact.connected), 0.002),
        ("gave up", fluid.gave_up, share(exact.gave_up), 0.002),
    ] {
        // The fluid model has no random variation of a bin.
        if what == "recovered mean" && exact.connected < exact.clients / 10 * 9 {
            // The connected clients are then not representative of all clients.
            continue;
        }
        let chance = match what {
            "peak" => 4.0 * (want / exact.clients as f64).sqrt(),
            // Number of clients that the server accepts per step.
            "connected" | "gave up" => exact.rate * 0.005 / exact.clients as f64,
            _ => 1e-5,
        };
        assert!((got - want).abs() <= tolerance * want + chance, "{policy}: {what} {got}, expected {want}");
    }
}

#[test]
fn jitters_that_depend_on_the_retry_number_only_are_supported() {
    let jitters = [Jitter::Full, Jitter::Equal, Jitter::Factor(Ratio::percent(20)), Jitter::None];
    for jitter in jitters {
        let scenario = if jitter == Jitter::None { million().rate(100_000.0) } else { million() };
        agree(exponential().jitter(jitter), scenario);
    }
}

#[test]
fn long_network_delays_are_supported() {
    let second = Duration::from_secs(1);
    agree(exponential(), million().one_way(second, second));
}

#[test]
fn caps_multipliers_and_profiles_are_supported() {
    agree(exponential().multiplier(4.0), million());
    agree(exponential().cap(Duration::from_secs(120)), million().rate(50_000.0));
    agree(profile::CENKALTI.policy().to_builder(), million());
    agree(profile::CENTRIFUGE.policy().to_builder(), million());
    agree(profile::SOCKET_IO.policy().to_builder(), million().rate(50_000.0));
}

/// Checks a third of all profiles: exactly those whose delays depend on previous delays are rejected, and the figures
/// of all others match the exact simulation of a million clients.
fn profiles_match_or_are_rejected(part: usize) {
    for profile in Profile::all().skip(part).step_by(3) {
        let policy = profile.policy();
        let scenario = million().build().unwrap();
        let rejected = ["aws-blog", "polly-v8", "reconnecting-websocket"].contains(&profile.name());
        match fluid::run(&scenario, &policy) {
            Err(reason) => assert!(rejected && reason == NotSimulable::Delays, "{}: {reason}", profile.name()),
            Ok(_) => {
                assert!(!rejected, "{}", profile.name());
                agree(policy.to_builder(), million());
            }
        }
    }
}

#[test]
fn every_third_profile_matches_or_is_rejected() {
    profiles_match_or_are_rejected(0);
}

#[test]
fn every_third_profile_from_the_second_on_matches_or_is_rejected() {
    profiles_match_or_are_rejected(1);
}

#[test]
fn every_third_profile_from_the_third_on_matches_or_is_rejected() {
    profiles_match_or_are_rejected(2);
}

#[test]
fn decorrelated_jitter_is_the_only_unsupported_jitter() {
    for jitter in [Jitter::None, Jitter::Full, Jitter::Equal, Jitter::Factor(Ratio::ONE), Jitter::Decorrelated] {
        let policy = exponential().jitter(jitter).build().unwrap();
        let answer = fluid::run(&million().build().unwrap(), &policy);
        let want = if jitter == Jitter::Decorrelated { Err(NotSimulable::Delays) } else { Ok(()) };
        assert_eq!(answer.map(drop), want, "{jitter}");
    }
}

/// Checks that computations of minutes or gigabytes are rejected, but not days without events.
#[test]
fn expensive_computations_are_rejected() {
    let days = Duration::from_secs(76 * 3_600);
    let no_capacity = ReconnectScenario::builder(1_000_000).rate(1e-9).backlog(1).horizon(days);
    let long = Duration::from_secs(3_600);
    for (scenario, builder, want) in [
        (no_capacity, exponential().cap(Duration::from_secs(86_400)).multiplier(1.05), Err(NotSimulable::Work)),
        (no_capacity, Policy::exponential(long, Duration::MAX).unlimited_attempts(), Err(NotSimulable::Work)),
        (
            no_capacity.horizon(Duration::from_secs(86_400)),
            exponential().cap(Duration::MAX).jitter(Jitter::None),
            Ok(()),
        ),
        (no_capacity, Policy::constant(Duration::MAX).unlimited_attempts(), Ok(())),
    ] {
        let policy = builder.build().unwrap();
        assert_eq!(fluid::run(&scenario.build().unwrap(), &policy).map(drop), want, "{policy}");
    }
}

/// Checks that times after the horizon are not reported, as in the exact simulation.
#[test]
fn clients_that_receive_the_answer_after_the_horizon_are_not_connected() {
    let scenario = million().rate(20_000.0).backlog(1_000_000).horizon(Duration::from_secs(20));
    agree(exponential(), scenario);
    let figures = fluid::run(&scenario.build().unwrap(), &exponential().build().unwrap()).unwrap();
    assert!((figures.connected - 0.4).abs() < 0.01 && figures.t50.is_none(), "{figures:?}");
}

#[test]
fn spreads_limits_and_downtime_are_supported() {
    agree(exponential().spread(Duration::from_secs(10)), million());
    agree(exponential().max_attempts(4), million());
    agree(exponential(), million().first_attempt(FirstAttempt::Immediate));
    agree(exponential(), million().down_for(Duration::from_secs(7)));
    agree(exponential(), million().disconnect_window(Duration::from_secs(30)));
}

#[test]
fn unsupported_settings_are_rejected_with_the_reason() {
    let plain = ReconnectScenario::builder(1_000_000).rate(1_000.0);
    let full = exponential().build().unwrap();
    let of = |name: &str| Profile::named(name).unwrap().policy();
    for (scenario, policy, want) in [
        (
            plain,
            Policy::decorrelated(Duration::from_secs(1), Duration::from_secs(60)).build().unwrap(),
            NotSimulable::Delays,
        ),
        (plain, of("aws-blog"), NotSimulable::Delays),
        (plain, of("reconnecting-websocket"), NotSimulable::Delays),
        (plain, of("polly-v8"), NotSimulable::Delays),
        (plain.retry_after(RetryAfter::Staggered), full, NotSimulable::RetryAfter),
        (plain.one_way(Duration::ZERO, Duration::from_secs(11)), full, NotSimulable::Network),
        (plain, full.to_builder().max_attempts(257).build().unwrap(), NotSimulable::Attempts),
        (plain, full.to_builder().max_elapsed(Duration::from_secs(60)).build().unwrap(), NotSimulable::Elapsed),
    ] {
        assert_eq!(fluid::run(&scenario.build().unwrap(), &policy).err(), Some(want), "{policy}");
    }
}

#[test]
fn a_time_limit_that_no_client_reaches_has_no_effect() {
    let scenario = million().build().unwrap();
    let run = |builder: PolicyBuilder| fluid::run(&scenario, &builder.build().unwrap());
    assert_eq!(run(exponential().max_elapsed(Duration::from_secs(900))), run(exponential()));
}

#[test]
fn figures_do_not_depend_on_the_number_of_clients() {
    let run = |clients: u64| {
        let scenario = ReconnectScenario::builder(clients).rate(clients as f64 / 50.0).backlog((clients / 100) as u32);
        fluid::run(&scenario.build().unwrap(), &exponential().build().unwrap()).unwrap()
    };
    let (few, many) = (run(1_000_000), run(60_000_000));
    assert!((few.attempts_per_client / many.attempts_per_client - 1.0).abs() < 1e-4);
    assert_eq!((few.t50, few.t99), (many.t50, many.t99));
}
