use core::time::Duration;

use stagger_core::budget::Tokens;
use stagger_core::{Policy, Seed, policy};
use stagger_sim::outage::{OutageKind, OutageScenario, OutageScenarioBuilder, ProcessGuards};
use stagger_sim::testing::OverloadTest;

use super::message;

const POLICY: Policy = policy!(exponential(ms(100), secs(2)).max_attempts(4));

fn scenario() -> OutageScenario {
    OutageScenario::builder(700.0).build().unwrap()
}

#[test]
fn a_metastable_system_fails_with_figures_and_a_plot() {
    let unguarded = OverloadTest::run(&scenario(), &POLICY, |_| ProcessGuards::none());
    let text = message(|| unguarded.is_not_metastable());
    assert!(text.starts_with("the system is down at the horizon: it has been down since 20s"), "{text}");
    assert!(text.contains("\n  recovered after       never\n"), "{text}");
    assert!(text.contains("\n  attempts per 100ms, maximum over each 2s; ─ is the capacity: 100\n"), "{text}");
    assert!(text.contains("\n  verdict               has been down since 20s\n"), "{text}");
    let text = message(|| unguarded.recovers_within(Duration::MAX));
    assert!(text.starts_with("recovery takes never; "), "{text}");
}

#[test]
fn each_assertion_holds_up_to_its_limit() {
    let overload = OverloadTest::run(&scenario(), &POLICY, |_| ProcessGuards::none().budget(Tokens::new()));
    let figures = overload.figures();
    let (attempts, success, peak) = (figures.amplification(), figures.success_ratio(), figures.peak_second());
    let took = figures.recovery().unwrap();
    overload
        .is_not_metastable()
        .recovers_within(took)
        .amplification_at_most(attempts)
        .success_at_least(success)
        .peak_second_at_most(peak);
    overload.does_not_relapse();
    for (text, what) in [
        (message(|| overload.never_falls()), "the system fell: it recovered "),
        (message(|| overload.recovers_within(took - Duration::from_nanos(1))), "recovery takes "),
        (message(|| overload.amplification_at_most(0.99 * attempts)), " attempts per request; the limit"),
        (message(|| overload.success_at_least(1.001 * success)), " of the requests succeed; the minimum"),
        (message(|| overload.peak_second_at_most(peak - 1)), " attempts are made in one second; the limit"),
    ] {
        assert!(text.lines().next().unwrap().contains(what), "{text}");
        assert!(text.ends_with(&overload.to_string()), "figures and plot are missing: {text}");
    }
}

#[test]
fn a_healthy_system_never_falls_and_recovers_at_once() {
    let scenario = OutageScenario::builder(50.0).capacity(160.0).horizon(Duration::from_secs(42));
    let scenario = scenario.outage(OutageKind::Stall, Duration::from_secs(10), Duration::from_millis(1));
    let scenario = scenario.timeout(Duration::from_millis(200)).one_way(Duration::ZERO).build().unwrap();
    let policy = Policy::zero().max_attempts(4).build().unwrap();
    OverloadTest::run_with_seed(&scenario, &policy, |_| ProcessGuards::none(), Seed::new(15))
        .never_falls()
        .does_not_relapse()
        .is_not_metastable()
        .recovers_within(Duration::ZERO);
}

#[test]
fn a_report_names_the_seed_and_the_remedy() {
    let text = |scenario: OutageScenarioBuilder, policy: &Policy| {
        OverloadTest::run_with_seed(&scenario.build().unwrap(), policy, |_| ProcessGuards::none(), Seed::new(77))
            .to_string()
    };
    let once = Policy::zero().max_attempts(1).build().unwrap();
    let seconds = Duration::from_secs;
    let down = text(OutageScenario::builder(700.0), &POLICY);
    assert!(down.contains("\n  seed                  77\n"), "{down}");
    assert!(down.contains(" attempts per second at the end, of which the server can handle 1000: fewer"), "{down}");
    let late = OutageScenario::builder(700.0).outage(OutageKind::Stall, seconds(20), seconds(80));
    let [full, short] = [text(OutageScenario::builder(1_100.0), &once), text(late.horizon(seconds(105)), &once)];
    assert!(full.contains("\n  remedy                the requests alone exceed the capacity"), "{full}");
    assert!(short.contains("\n  remedy                a horizon of at least 1m46s"), "{short}");
    let slow = OutageScenario::builder(990.0).outage(OutageKind::Stall, seconds(20), seconds(20));
    let slow = text(slow, &once);
    assert!(slow.contains("\n  remedy                a longer horizon, to see whether the queue drains\n"), "{slow}");
    let up = text(OutageScenario::builder(100.0), &once);
    assert!(up.contains("\n  seed ") && !up.contains("remedy"), "{up}");
}

/// Requests arrive at random, and earlier ones are retried: the load at the end is above three attempts for each of the
/// mean number of requests, though no request is sent more than three times.
#[test]
fn a_load_at_the_end_above_the_attempts_of_the_policy_is_not_called_attempts_per_request() {
    let policy = Policy::zero().max_attempts(3).build().unwrap();
    let scenario = OutageScenario::builder(50.0).capacity(60.0).queue(180).build().unwrap();
    let runs =
        (1..=8).map(|seed| OverloadTest::run_with_seed(&scenario, &policy, |_| ProcessGuards::none(), Seed::new(seed)));
    let above: Vec<_> = runs.filter(|run| run.figures().final_load() > 3.0).collect();
    assert!(!above.is_empty());
    for run in above {
        let (text, load) = (run.to_string(), run.figures().final_load() * 50.0);
        assert!(
            text.contains(&format!("  remedy                {load:.0} attempts per second at the end, of which")),
            "{text}"
        );
        assert!(run.figures().amplification() <= 3.0, "{text}");
    }
}
