//! Checks the figures in `docs/guide/choosing.md` and the budgets in `docs/guide/guards.md`.

use core::time::Duration;

use stagger::budget::{Adaptive, Concurrent, Lifetime, SuccessRate, Throttle, Tokens, Window};
use stagger::{Guard, Policy, Ratio, Retrier, Seed, policy};
use stagger_sim::occ::OccScenario;
use stagger_sim::outage::{OutageKind, OutageScenario, ProcessGuards};
use stagger_sim::reconnect::{ReconnectFigures, ReconnectScenario};

use super::delays::Numbers;

const PAGE: &str = include_str!("../../../../docs/guide/choosing.md");
const GUARDS: &str = include_str!("../../../../docs/guide/guards.md");

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
    /// Time until 99 % of the clients were connected again, in seconds.
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
        ("full, with spread", "exponential base=500ms cap=30s jitter=full spread=20s"),
    ];
    let rows = strategies.map(|(name, policy)| {
        let fleet = reconnect(&policy.parse().unwrap());
        let (peak, attempts, back) = (fleet.peak * 100.0, fleet.attempts, fleet.nearly_all);
        (name, format!("| {peak:.1} % | {attempts:.1} | {back:.0} s |"))
    });
    let is_on_page = |(name, figures): &(&str, String)| {
        PAGE.lines().any(|line| line.starts_with(&format!("| {name} | ")) && line.contains(figures))
    };
    let missing: Vec<_> = rows.iter().filter(|row| !is_on_page(row)).collect();
    assert!(missing.is_empty(), "{missing:#?}");
}

#[test]
fn full_jitter_needs_fewer_writes_than_decorrelated_in_the_model_of_the_article() {
    let strategies = [
        ("none", "exponential base=10ms cap=2s jitter=none"),
        ("decorrelated", "exponential base=5ms cap=2s jitter=decorrelated"),
        ("equal", "exponential base=10ms cap=2s jitter=equal"),
        ("full", "exponential base=10ms cap=2s jitter=full"),
    ];
    let writes = strategies.map(|(name, policy)| {
        let policy = policy.parse::<Policy>().unwrap().to_builder().unlimited_attempts().build().unwrap();
        let scenario = OccScenario::builder(100).build().unwrap();
        let writes = mean(40, |seed| scenario.run(&policy, seed).calls as f64);
        // The last digit of a mean over so few runs is not significant.
        (name, (writes / 10.0).round() as u32 * 10)
    });
    assert_eq!(writes, [("none", 1860), ("decorrelated", 1000), ("equal", 810), ("full", 800)]);
}

#[test]
fn an_overloaded_server_recovers_with_a_budget_and_not_with_backoff_alone() {
    let full = "exponential base=100ms cap=2s jitter=full max-attempts=4";
    let scenario = OutageScenario::builder(700.0).capacity(1_000.0).queue(3_000).timeout(Duration::from_secs(1));
    let scenario = scenario.one_way(Duration::from_millis(5)).processes(1);
    let stall = (Duration::from_secs(20), Duration::from_secs(2));
    let scenario = scenario.outage(OutageKind::Stall, stall.0, stall.1).horizon(Duration::from_secs(120));
    let scenario = scenario.build().unwrap();
    let run = |policy: &str, guards: &dyn Fn() -> ProcessGuards| {
        scenario.run(&policy.parse().unwrap(), |_| guards(), Seed::new(1))
    };
    let unlimited = [
        "stop",
        "zero max-attempts=4",
        "constant delay=100ms jitter=none max-attempts=4",
        "exponential base=1s cap=20s jitter=full max-attempts=4",
        full,
    ];
    let unlimited = unlimited.map(|policy| run(policy, &ProcessGuards::none));
    let tokens = || ProcessGuards::none().budget(Tokens::new());
    let window = || ProcessGuards::none().budget(Window::builder().min_per_second(0).build().unwrap());
    // Attempts per request, and the share of the requests that were answered in time.
    let after = unlimited.into_iter().chain([run(full, &tokens), run(full, &window)]);
    let after = after.map(|after| format!("{:.1} {:.0} %", after.amplification(), after.success_ratio() * 100.0));
    let want = ["1.0 95 %", "4.0 0 %", "4.0 0 %", "3.9 0 %", "4.0 0 %", "1.0 95 %", "1.0 90 %"];
    assert_eq!(after.collect::<Vec<_>>(), want);
}

/// Returns how many retries 1,000 calls make if all fail at once.
fn retries(budget: impl Guard + 'static) -> u32 {
    const FOUR_AT_ONCE: Policy = policy!(zero().max_attempts(4));
    let (api, mut attempts) = (Retrier::new(FOUR_AT_ONCE).budget(budget), 0);
    for _ in 0..1_000 {
        let _ = api.blocking(|| {
            attempts += 1;
            Err::<(), _>("down")
        });
    }
    attempts - 1_000
}

#[test]
fn the_table_of_budgets_has_the_retries_of_calls_that_all_fail() {
    let on_page = |name: &str| {
        let row = GUARDS.lines().find(|line| line.starts_with(&format!("| `{name}` "))).expect("a row");
        row.trim_end_matches(" |").rsplit("| ").next().unwrap()
    };
    for (name, retries) in [
        ("Tokens", retries(Tokens::new())),
        ("Window", retries(Window::default())),
        ("Lifetime", retries(Lifetime::new())),
        ("Throttle", retries(Throttle::new(10, Ratio::percent(10)).unwrap())),
        ("SuccessRate", retries(SuccessRate::new())),
    ] {
        assert_eq!(on_page(name), retries.to_string(), "{name}");
    }
    let at_a_time = Concurrent::new().available().unwrap();
    assert_eq!(on_page("Concurrent"), format!("{at_a_time} at a time"));
    let adaptive: u32 = (0..100).map(|seed| retries(Adaptive::new(Seed::new(seed)))).sum();
    assert!((900..1_100).contains(&adaptive) && on_page("Adaptive") == "about 10", "{adaptive}");
}

#[test]
fn without_a_cap_the_tenth_retry_waits_up_to_51_s() {
    let policy = Policy::exponential(Duration::from_millis(100), Duration::MAX).build().unwrap();
    assert_eq!(policy.bounds(10), Some((Duration::ZERO, Duration::from_millis(51_200))));
    assert_eq!(policy.bounds(20).unwrap().1.as_secs() / 60, 14 * 60 + 33);
    assert!(PAGE.contains("51 s and the twentieth 15 hours"));
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
