//! The mean field, held against the clients one by one.

use core::time::Duration;

use stagger_core::{Jitter, Policy, PolicyBuilder, Ratio, Seed, profile, profile::Profile};
use stagger_sim::fluid::{self, Unfit};
use stagger_sim::reconnect::{First, Hints, Scenario, ScenarioBuilder};

fn exponential() -> PolicyBuilder {
    Policy::exponential(Duration::from_millis(500), Duration::from_secs(30)).unlimited_attempts()
}

/// A million clients: 50 s of work for the server, and a backlog of half a second.
fn million() -> ScenarioBuilder {
    Scenario::builder(1_000_000).rate(20_000.0).backlog(10_000)
}

#[track_caller]
fn agree(builder: PolicyBuilder, scenario: ScenarioBuilder) {
    let (policy, scenario) = (builder.build().unwrap(), scenario.build().unwrap());
    let (exact, fluid) = (scenario.run(&policy, Seed::new(1)), fluid::run(&scenario, &policy).unwrap());
    let share = |count: u64| count as f64 / exact.clients as f64;
    let seconds = |time: Option<Duration>| time.map_or(0.0, |time| time.as_secs_f64());
    for (what, got, want, tolerance) in [
        ("attempts", fluid.attempts_per_client, exact.attempts_per_client(), 0.005),
        ("t50", seconds(fluid.t50), seconds(exact.t50), 0.01),
        ("t99", seconds(fluid.t99), seconds(exact.t99), 0.01),
        ("took", fluid.took_mean.as_secs_f64(), exact.took_mean.as_secs_f64(), 0.01),
        ("peak", fluid.peak(), share(exact.peak()), 0.01),
        ("connected", fluid.connected, share(exact.connected), 0.002),
        ("gave up", fluid.gave_up, share(exact.gave_up), 0.002),
    ] {
        // What chance does to one bin of arrivals is not in the mean field.
        if what == "took" && exact.connected < exact.clients / 10 * 9 {
            // Who comes in early enough is not as everyone.
            continue;
        }
        let chance = match what {
            "peak" => 4.0 * (want / exact.clients as f64).sqrt(),
            // What the server takes in a step.
            "connected" | "gave up" => exact.rate * 0.005 / exact.clients as f64,
            _ => 1e-5,
        };
        assert!((got - want).abs() <= tolerance * want + chance, "{policy}: {what} {got} is not {want}");
    }
}

#[test]
fn jitters_that_depend_on_the_retry_number_alone_have_a_mean_field() {
    let jitters = [Jitter::Full, Jitter::Equal, Jitter::Factor(Ratio::percent(20)), Jitter::None];
    for jitter in jitters {
        let scenario = if jitter == Jitter::None { million().rate(100_000.0) } else { million() };
        agree(exponential().jitter(jitter), scenario);
    }
}

#[test]
fn answers_from_far_away_come_late() {
    let second = Duration::from_secs(1);
    agree(exponential(), million().one_way(second, second));
}

#[test]
fn caps_multipliers_and_profiles_have_a_mean_field() {
    agree(exponential().multiplier(4.0), million());
    agree(exponential().cap(Duration::from_secs(120)), million().rate(50_000.0));
    agree(profile::CENKALTI.policy().to_builder(), million());
    agree(profile::CENTRIFUGE.policy().to_builder(), million());
    agree(profile::SOCKET_IO.policy().to_builder(), million().rate(50_000.0));
}

/// Every profile that there is: those whose delays depend on the delays before are refused, and no other; what is answered is
/// what happens to a million clients, one by one.
fn profiles_are_answered_or_refused(part: usize) {
    for profile in Profile::all().skip(part).step_by(3) {
        let policy = profile.policy();
        let scenario = million().build().unwrap();
        let refused = ["aws-blog", "polly-v8", "reconnecting-websocket", "background-job"].contains(&profile.name());
        match fluid::run(&scenario, &policy) {
            Err(unfit) => assert!(refused && unfit == Unfit::Delays, "{}: {unfit}", profile.name()),
            Ok(_) => {
                assert!(!refused, "{}", profile.name());
                agree(policy.to_builder(), million());
            }
        }
    }
}

#[test]
fn every_third_profile_is_answered_or_refused() {
    profiles_are_answered_or_refused(0);
}

#[test]
fn every_third_profile_from_the_second_on_is_answered_or_refused() {
    profiles_are_answered_or_refused(1);
}

#[test]
fn every_third_profile_from_the_third_on_is_answered_or_refused() {
    profiles_are_answered_or_refused(2);
}

#[test]
fn every_jitter_is_answered_or_refused() {
    for jitter in [Jitter::None, Jitter::Full, Jitter::Equal, Jitter::Factor(Ratio::ONE), Jitter::Decorrelated] {
        let policy = exponential().jitter(jitter).build().unwrap();
        let answer = fluid::run(&million().build().unwrap(), &policy);
        let want = if jitter == Jitter::Decorrelated { Err(Unfit::Delays) } else { Ok(()) };
        assert_eq!(answer.map(drop), want, "{jitter}");
    }
}

/// For minutes, or with gigabytes: days of doing nothing are not among them.
#[test]
fn what_would_not_be_answered_at_once_is_refused() {
    let days = Duration::from_secs(76 * 3_600);
    let nobody = Scenario::builder(1_000_000).rate(1e-9).backlog(1).horizon(days);
    let long = Duration::from_secs(3_600);
    for (scenario, builder, want) in [
        (nobody, exponential().cap(Duration::from_secs(86_400)).multiplier(1.05), Err(Unfit::Work)),
        (nobody, Policy::exponential(long, Duration::MAX).unlimited_attempts(), Err(Unfit::Work)),
        (nobody.horizon(Duration::from_secs(86_400)), exponential().cap(Duration::MAX).jitter(Jitter::None), Ok(())),
        (nobody, Policy::constant(Duration::MAX).unlimited_attempts(), Ok(())),
    ] {
        let policy = builder.build().unwrap();
        assert_eq!(fluid::run(&scenario.build().unwrap(), &policy).map(drop), want, "{policy}");
    }
}

/// Times behind the horizon are not told, as they are not for clients one by one.
#[test]
fn who_hears_of_it_after_the_horizon_is_not_connected() {
    let scenario = million().rate(20_000.0).backlog(1_000_000).horizon(Duration::from_secs(20));
    agree(exponential(), scenario);
    let figures = fluid::run(&scenario.build().unwrap(), &exponential().build().unwrap()).unwrap();
    assert!((figures.connected - 0.4).abs() < 0.01 && figures.t50.is_none(), "{figures:?}");
}

#[test]
fn spreads_limits_and_downtime_have_a_mean_field() {
    agree(exponential().spread(Duration::from_secs(10)), million());
    agree(exponential().max_attempts(4), million());
    agree(exponential(), million().first(First::AtOnce));
    agree(exponential(), million().down_for(Duration::from_secs(7)));
    agree(exponential(), million().hits_within(Duration::from_secs(30)));
}

#[test]
fn what_has_no_mean_field_is_refused_with_the_reason() {
    let plain = Scenario::builder(1_000_000).rate(1_000.0);
    let full = exponential().build().unwrap();
    let of = |name: &str| Profile::named(name).unwrap().policy();
    for (scenario, policy, want) in [
        (plain, Policy::decorrelated(Duration::from_secs(1), Duration::from_secs(60)).build().unwrap(), Unfit::Delays),
        (plain, of("aws-blog"), Unfit::Delays),
        (plain, of("reconnecting-websocket"), Unfit::Delays),
        (plain, of("polly-v8"), Unfit::Delays),
        (plain.hints(Hints::Slots), full, Unfit::Hints),
        (plain.one_way(Duration::ZERO, Duration::from_secs(11)), full, Unfit::Network),
        (plain, full.to_builder().max_attempts(257).build().unwrap(), Unfit::Attempts),
        (plain, full.to_builder().max_elapsed(Duration::from_secs(60)).build().unwrap(), Unfit::Elapsed),
    ] {
        assert_eq!(fluid::run(&scenario.build().unwrap(), &policy).err(), Some(want), "{policy}");
    }
}

#[test]
fn a_limit_of_time_that_nobody_reaches_changes_nothing() {
    let scenario = million().build().unwrap();
    let run = |builder: PolicyBuilder| fluid::run(&scenario, &builder.build().unwrap());
    assert_eq!(run(exponential().max_elapsed(Duration::from_secs(900))), run(exponential()));
}

#[test]
fn it_does_not_matter_how_many_clients_there_are() {
    let run = |clients: u64| {
        let scenario = Scenario::builder(clients).rate(clients as f64 / 50.0).backlog((clients / 100) as u32);
        fluid::run(&scenario.build().unwrap(), &exponential().build().unwrap()).unwrap()
    };
    let (few, many) = (run(1_000_000), run(60_000_000));
    assert!((few.attempts_per_client / many.attempts_per_client - 1.0).abs() < 1e-4);
    assert_eq!((few.t50, few.t99), (many.t50, many.t99));
}
