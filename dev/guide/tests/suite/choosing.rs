//! Checks the figures in `docs/guide/choosing.md`.

use core::time::Duration;

use stagger::budget::{Tokens, Window};
use stagger::{Policy, Seed};
use stagger_sim::occ::OccScenario;
use stagger_sim::outage::{OutageKind, OutageScenario, ProcessGuards};
use stagger_sim::reconnect::{ReconnectFigures, ReconnectScenario};

use super::delays::Numbers;

const PAGE: &str = include_str!("../../../../docs/guide/choosing.md");

/// Asserts that the page has rows that begin with these cells. The failure message has the missing rows.
#[track_caller]
fn assert_rows<const N: usize>(rows: impl IntoIterator<Item = [String; N]>) {
    let rows = rows.into_iter().map(|cells| format!("| {} |", cells.join(" | ")));
    let missing: Vec<_> = rows.filter(|row| !PAGE.contains(row)).collect();
    assert!(missing.is_empty(), "the page has no rows that begin with\n{}", missing.join("\n"));
}

/// Returns the mean of a figure over several seeds.
fn mean(seeds: u64, figure: impl Fn(Seed) -> f64) -> f64 {
    (0..seeds).map(|seed| figure(Seed::new(seed))).sum::<f64>() / seeds as f64
}

/// How a fleet reconnected, as the mean of several runs.
struct Fleet {
    /// Attempts per client.
    attempts: f64,
    /// The largest share of the fleet with an attempt in the same 100 ms.
    peak: f64,
    /// Time until half, and 99 %, of the clients were connected again, in seconds.
    half: f64,
    nearly_all: f64,
}

/// Simulates 10,000 clients that lose their connections to a server of 500 connections per second, with a backlog of
/// half a second.
fn reconnect(policy: &Policy) -> Fleet {
    let scenario = ReconnectScenario::builder(10_000).rate(500.0).backlog(250).build().unwrap();
    let policy = policy.to_builder().unlimited_attempts().build().unwrap();
    let runs: Vec<_> = (0..3).map(|seed| scenario.run(&policy, Seed::new(seed))).collect();
    let mean = |figure: fn(&ReconnectFigures) -> f64| runs.iter().map(figure).sum::<f64>() / runs.len() as f64;
    Fleet {
        attempts: mean(ReconnectFigures::attempts_per_client),
        peak: mean(|run| run.peak() as f64 / run.clients as f64),
        half: mean(|run| run.t50.unwrap().as_secs_f64()),
        nearly_all: mean(|run| run.t99.unwrap().as_secs_f64()),
    }
}

#[test]
fn the_strategy_table_has_the_figures_of_the_model() {
    let strategies = [
        ("none", "exponential base=500ms cap=30s jitter=none"),
        ("equal", "exponential base=500ms cap=30s jitter=equal"),
        ("±50 %", "exponential base=500ms cap=30s jitter=±50%"),
        ("full", "exponential base=500ms cap=30s jitter=full"),
        ("decorrelated", "exponential base=500ms cap=30s jitter=decorrelated"),
        ("full, linear", "linear base=500ms step=500ms cap=30s jitter=full"),
        ("none, constant", "constant delay=1s jitter=none"),
        ("equal, constant", "constant delay=1s jitter=equal"),
        ("full, with spread", "exponential base=500ms cap=30s jitter=full spread=20s"),
    ];
    let measured = strategies.map(|(name, policy)| {
        let policy: Policy = policy.parse().unwrap();
        (name, policy, reconnect(&policy))
    });
    assert_rows(measured.each_ref().map(|(name, policy, fleet)| {
        let seconds = |length: Option<Duration>| format!("{:.1}", length.unwrap().as_secs_f64());
        [
            (*name).to_owned(),
            format!("{:.1} %", fleet.peak * 100.0),
            format!("{:.1}", fleet.attempts),
            format!("{:.0} s", fleet.nearly_all),
            format!("{:.1}", fleet.nearly_all / fleet.half),
            format!("{}–{} s", seconds(policy.quantile(4, 0.1)), seconds(policy.quantile(4, 0.9))),
            format!("{} s", seconds(policy.elapsed_mean(4))),
        ]
    }));

    let [none, _, _, full, _, _, constant, _, spread] = measured.map(|(_, _, fleet)| fleet);
    let percent = |share: f64| format!("{:.1} %", share * 100.0);
    for sentence in [
        format!(
            "contain {} of the fleet with full jitter and {} without jitter",
            percent(full.peak),
            percent(none.peak)
        ),
        format!("A spread reduces the share to {}.", percent(spread.peak)),
        format!("{:.1} attempts per client, the same as with a constant delay of one second", none.attempts),
        format!("{:.0} times as long", none.nearly_all / constant.nearly_all),
    ] {
        assert!(PAGE.contains(&sentence), "the page does not contain {sentence:?}");
    }
}

#[test]
fn full_jitter_needs_fewer_writes_than_decorrelated_in_the_model_of_the_article() {
    let strategies = [
        ("none", "exponential base=10ms cap=2s jitter=none"),
        ("decorrelated", "exponential base=5ms cap=2s jitter=decorrelated"),
        ("equal", "exponential base=10ms cap=2s jitter=equal"),
        ("full", "exponential base=10ms cap=2s jitter=full"),
    ];
    assert_rows(strategies.map(|(name, policy)| {
        let policy = policy.parse::<Policy>().unwrap().to_builder().unlimited_attempts().build().unwrap();
        let scenario = OccScenario::builder(100).build().unwrap();
        let writes = mean(40, |seed| scenario.run(&policy, seed).calls as f64);
        // The last digit of a mean over so few runs is not significant.
        [name.to_owned(), format!("{:.0}", (writes / 10.0).round() * 10.0)]
    }));
}

#[test]
fn an_overloaded_server_recovers_with_a_budget_and_not_with_backoff_alone() {
    let policies = [
        ("none", "stop"),
        ("3, at once", "zero max-attempts=4"),
        ("3, every 100 ms", "constant delay=100ms jitter=none max-attempts=4"),
        ("3, full jitter from 1 s, cap 20 s", "exponential base=1s cap=20s jitter=full max-attempts=4"),
        ("3, full jitter from 100 ms, cap 2 s", "exponential base=100ms cap=2s jitter=full max-attempts=4"),
    ];
    let scenario = OutageScenario::builder(700.0).capacity(1_000.0).queue(3_000).timeout(Duration::from_secs(1));
    let scenario = scenario.one_way(Duration::from_millis(5)).processes(1);
    let stall = (Duration::from_secs(20), Duration::from_secs(2));
    let scenario = scenario.outage(OutageKind::Stall, stall.0, stall.1).horizon(Duration::from_secs(120));
    let scenario = scenario.build().unwrap();
    let run = |policy: &str, guards: &dyn Fn() -> ProcessGuards| {
        scenario.run(&policy.parse().unwrap(), |_| guards(), Seed::new(1))
    };
    let after = policies.map(|(name, policy)| (name, run(policy, &ProcessGuards::none)));
    let tokens = || ProcessGuards::none().budget(Tokens::new());
    let window = || ProcessGuards::none().budget(Window::builder().min_per_second(0).build().unwrap());
    let bounded = [
        ("the same, with a budget of 500 tokens", run(policies[4].1, &tokens)),
        ("the same, with a budget of 20 % of the calls", run(policies[4].1, &window)),
    ];
    assert_rows(after.into_iter().chain(bounded).map(|(name, after)| {
        [name.to_owned(), format!("{:.1}", after.amplification()), format!("{:.0} %", after.success_ratio() * 100.0)]
    }));
}

#[test]
fn without_a_cap_the_tenth_retry_waits_up_to_51_s() {
    let policy = Policy::exponential(Duration::from_millis(100), Duration::MAX).build().unwrap();
    assert_eq!(policy.bounds(10), Some((Duration::ZERO, Duration::from_millis(51_200))));
    assert!(PAGE.contains("51 s"));
}

#[test]
fn the_first_delay_is_within_the_base_with_any_jitter() {
    let base = Duration::from_secs(1);
    for jitter in ["full", "equal", "none"] {
        let policy: Policy = format!("exponential base=1s cap=30s jitter={jitter}").parse().unwrap();
        assert!((0..10_000).all(|id| policy.delay(1, Seed::new(id)).is_some_and(|delay| delay <= base)), "{jitter}");
    }
    let spread: Policy = "exponential base=1s cap=30s spread=20s".parse().unwrap();
    let within = (0..10_000).filter(|&id| spread.first_spread(Seed::new(id)) <= base).count();
    assert!((450..550).contains(&within), "1 s of a spread of 20 s has a twentieth of the fleet, not {within}");
}

/// Returns the share of 10,000 clients that wait exactly the cap of this policy at retry `n`.
fn share_on_the_cap(policy: &str, n: u32) -> f64 {
    let policy: Policy = policy.parse().unwrap();
    let on_the_cap = (0..10_000).filter(|&id| policy.delay(n, Seed::new(id)) == policy.cap()).count();
    on_the_cap as f64 / 10_000.0
}

#[test]
fn published_decorrelated_jitter_puts_31_percent_on_the_cap_and_ours_none() {
    let mut numbers = Numbers::new(Seed::new(1));
    let mut last = || (0..12).fold(1.0_f64, |previous, _| numbers.between(1.0, 3.0 * previous).min(50.0));
    let formula = (0..10_000).map(|_| last()).filter(|last| *last >= 50.0).count() as f64 / 10_000.0;
    let profile = share_on_the_cap("exponential base=1s cap=50s jitter=aws-blog", 12);
    assert!((formula - 0.31).abs() < 0.015 && (profile - 0.31).abs() < 0.015, "{formula}, {profile}");
    assert!(PAGE.contains("31 %"));

    let ours = share_on_the_cap("exponential base=1s cap=50s jitter=decorrelated", 12);
    assert!(ours < 0.001, "{ours}");
}

#[test]
fn jitter_before_the_cap_is_lost_at_the_cap() {
    for (jitter, lost) in [("tenacity", true), ("polly-v8", true), ("resilience4j", true), ("full", false)] {
        let share = share_on_the_cap(&format!("exponential base=500ms cap=30s jitter={jitter}"), 20);
        assert!(if lost { share > 0.999 } else { share < 0.001 }, "{jitter}: {share}");
    }
}
