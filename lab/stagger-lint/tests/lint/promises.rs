//! Tests that what the rules say is what the simulators compute.

use core::time::Duration;

use stagger_core::text::parse_duration;
use stagger_core::{Policy, Seed};
use stagger_sim::TimeSeries;
use stagger_sim::outage::{
    DefaultGuards, OutageFigures, OutageKind, OutageScenario, OutageScenarioBuilder, ProcessGuards,
};
use stagger_sim::reconnect::{ReconnectFigures, ReconnectScenario};

use super::support::{codes, context, finding, found, policy};

pub(super) const SECOND: Duration = Duration::from_secs(1);

/// Simulates a fleet that loses its connections to a server that is down for a while.
pub(super) fn reconnect(policy: &Policy, clients: u64, capacity: f64, down: Duration) -> ReconnectFigures {
    let scenario = ReconnectScenario::builder(clients).rate(capacity).backlog((capacity / 2.0) as u32).down_for(down);
    scenario.horizon(Duration::from_secs(3_600)).build().unwrap().run(policy, Seed::new(1))
}

/// Returns the arrivals per second between two times.
pub(super) fn arrivals(figures: &ReconnectFigures, from: Duration, until: Duration) -> f64 {
    let bins = figures.arrivals.counts().iter().enumerate();
    let within = bins.filter(|(at, _)| (from..until).contains(&(TimeSeries::BIN_WIDTH * *at as u32)));
    within.map(|(_, count)| f64::from(*count)).sum::<f64>() / (until - from).as_secs_f64()
}

/// Returns the rules whose findings are about the connections of a fleet.
fn fleet_codes(text: &str, words: &str) -> Vec<&'static str> {
    codes(&policy(text), &context(words))
}

/// Runs an outage with a budget that the lint names.
fn outage(rate: f64, capacity: f64, processes: u32, budget: DefaultGuards, policy: &Policy) -> Option<Duration> {
    let scenario = OutageScenario::builder(rate).capacity(capacity).processes(processes).build().unwrap();
    scenario.run(policy, |seed| budget.process(seed), Seed::new(1)).recovery()
}

const CALL: &str = "exponential base=100ms cap=2s max-attempts=4";

/// Returns the guards that S016 recommends.
fn recommended(advice: &str) -> Option<DefaultGuards> {
    DefaultGuards::TRIED.into_iter().find(|budget| advice.ends_with(&format!("--budget={}", budget.name())))
}

/// Returns the share of the calls that is lost in stalls of 2 s, 15 s and a minute, in the mean, if the server
/// recovers.
fn lost(calls: (f64, f64, u32), policy: &Policy, budget: DefaultGuards) -> Option<f64> {
    let (rate, capacity, processes) = calls;
    let mut lost = 0.0;
    for down in [2, 15, 60] {
        let scenario = OutageScenario::builder(rate).capacity(capacity).queue((3.0 * capacity) as u32);
        let scenario = scenario.processes(processes).outage(OutageKind::Stall, 20 * SECOND, down * SECOND);
        let scenario = scenario.horizon(200 * SECOND).build().unwrap();
        let figures = scenario.run(policy, |seed| budget.process(seed), Seed::new(1));
        figures.recovery()?;
        lost += (1.0 - figures.success_ratio()) / 3.0;
    }
    Some(lost)
}

/// In the last case, each of 200 processes has an allowance of a hundred retries: with `Tokens`, a quarter of the calls
/// is lost after the shortest stall, and none of the others loses more than 6 %.
#[test]
fn the_budget_that_loses_least_is_recommended() {
    for (rate, capacity, clients) in [(900.0, 1_000.0, 10), (900.0, 1_000.0, 5_000), (179.0, 300.0, 200)] {
        let words = format!("rps={rate}/s capacity={capacity}/s clients={clients} for=near");
        let finding = finding(CALL, &words, "S016");
        let advice = finding.suggestion().advice().unwrap();
        let said = recommended(advice).unwrap_or_else(|| panic!("{advice}"));
        let of = |budget| lost((rate, capacity, clients), &policy(CALL), budget);
        let least = DefaultGuards::TRIED.into_iter().filter_map(of).fold(1.0, f64::min);
        assert!(of(said).unwrap() < least + 0.005, "{advice}: {least}");
        let facts = finding.facts().join("; ");
        assert!(facts.contains(&format!("{:.1}% lost", 100.0 * of(said).unwrap())), "{facts}");
        assert_eq!(found(CALL, &format!("{words} budget={}", said.name()), "S016"), None, "{words}");
    }
    let tokens = finding(CALL, "rps=179/s capacity=300/s clients=200 for=near budget=tokens", "S016");
    assert!(tokens.facts().join("; ").contains("tokens recovers after 51"), "{tokens:#?}");
}

/// At 90 % of the capacity, `Window::default()` adds a fifth to the load, which is then above the capacity.
#[test]
fn a_budget_that_does_not_help_is_reported() {
    let rates = "rps=270/s capacity=300/s clients=3 for=near";
    for (budget, applies) in [("window", true), ("tokens", true), ("throttle", false), ("yes", true), ("no", true)] {
        let found = found(CALL, &format!("{rates} budget={budget}"), "S016");
        assert_eq!(found.is_some(), applies, "{budget}: {found:#?}");
    }
    // At a third of the capacity every budget suffices.
    assert_eq!(found(CALL, "rps=90/s capacity=300/s clients=3 for=near budget=yes", "S016"), None);
}

/// Each of 5,000 processes has the initial allowance of its budget, which none of them uses up.
#[test]
fn a_budget_that_never_binds_is_not_recommended() {
    let finding = finding(CALL, "clients=5k for=near", "S016");
    let advice = finding.suggestion().advice().unwrap();
    assert!(advice.contains("--rps") && advice.contains("--capacity"), "{advice}");
    assert!(!advice.contains("Tokens::new()") && !advice.contains("Window::default()"), "{advice}");
}

/// A short queue rejects what it cannot serve in time, with a hint that its callers wait for.
#[test]
fn a_stall_is_simulated_with_the_hint_of_the_server() {
    let scenario = OutageScenario::builder(900.0).capacity(1_000.0).queue(500).horizon(200 * SECOND);
    let scenario = scenario.outage(OutageKind::Stall, 20 * SECOND, 60 * SECOND);
    for (hint, after) in [(None, 0), (Some(20 * SECOND), 25)] {
        let scenario = hint.into_iter().fold(scenario, OutageScenarioBuilder::retry_after).build().unwrap();
        let run = scenario.run(&policy(CALL), |_| ProcessGuards::none(), Seed::new(1));
        assert_eq!(run.recovery(), Some(after * SECOND), "{hint:?}");
        let hint = hint.map_or(String::new(), |hint| format!("hint={}s", hint.as_secs()));
        let words = format!("rps=900/s capacity=1000/s for=near backlog=500 {hint}");
        // Without the hint, the retries cost nothing.
        let found = found(CALL, &words, "S016");
        assert_eq!(found.is_some(), after > 0, "{hint}");
        let Some(found) = found else { continue };
        let facts = found.facts().join("; ");
        assert!(facts.contains("without a budget, it recovers after 0s") && facts.contains("and 25s"), "{facts}");
    }
}

/// Hardly any of a thousand processes fails two calls in a short stall, so that no budget saves a retry.
#[test]
fn where_no_budget_saves_retries_none_is_recommended() {
    assert_eq!(found(CALL, "rps=200/s capacity=1000/s clients=1000 for=near", "S016"), None);
}

#[test]
fn a_load_too_large_to_simulate_is_represented_in_proportion() {
    let facts = finding(CALL, "rps=180k/s capacity=200k/s clients=500 for=near", "S016").facts().join("\n");
    assert!(facts.contains("simulated, in proportion, with 3 processes"), "{facts}");
}

#[test]
fn if_no_budget_helps_the_advice_says_so() {
    let finding = finding(CALL, "rps=199/s capacity=200/s clients=10k for=near", "S016");
    let advice = finding.suggestion().advice().unwrap();
    assert!(advice.contains("no budget") && !advice.contains(".budget("), "{advice}");
}

#[test]
fn a_load_above_the_capacity_is_beyond_every_policy() {
    for text in [CALL, "stop"] {
        let finding = finding(text, "rps=1200/s capacity=1000/s for=near", "S021");
        assert!(finding.suggestion().advice().unwrap().contains("no retry policy"), "{finding:?}");
    }
    assert_eq!(found(CALL, "rps=1200/s capacity=1000/s for=near", "S016"), None, "no budget helps, either");
    assert_eq!(found(CALL, "rps=999/s capacity=1000/s for=near", "S021"), None);
    for budget in DefaultGuards::TRIED {
        assert_eq!(outage(120.0, 100.0, 10, budget, &policy(CALL)), None, "{budget:?}");
    }
}

#[test]
fn knocking_above_twice_the_capacity_is_found_and_fixed() {
    for (text, words, down) in [
        ("constant base=1s spread=50s max-attempts=inf", "clients=100k capacity=2000/s", 120),
        ("exponential base=500ms cap=5s spread=50s max-attempts=inf", "clients=100k capacity=2000/s", 120),
        ("list delays=1s,2s,5s jitter=full spread=20s max-attempts=inf", "clients=10k capacity=500/s", 60),
        ("linear base=1s step=1s cap=4s spread=20s max-attempts=inf", "clients=10k capacity=500/s", 60),
        ("uniform range=1s..3s spread=20s max-attempts=inf", "clients=10k capacity=500/s", 60),
        ("zero spread=20s max-attempts=inf", "clients=2k capacity=100/s", 60),
    ] {
        let words = &format!("{words} for=reconnecting");
        let known = context(words);
        let window = known.min_recovery_time().unwrap().as_secs_f64();
        let clients: u64 = if words.contains("100k") {
            100_000
        } else if words.contains("10k") {
            10_000
        } else {
            2_000
        };
        let capacity = clients as f64 / window;
        let found = finding(text, words, "S022");
        let helped = *found.suggestion().policy().unwrap_or_else(|| panic!("{text}: {found:#?}"));
        let down = Duration::from_secs(down);
        let knocks = |policy: &Policy| {
            let figures = reconnect(policy, clients, capacity, down);
            arrivals(&figures, down - 10 * SECOND, down - SECOND) / capacity
        };
        let (before, after) = (knocks(&policy(text)), knocks(&helped));
        assert!(before > 2.0 && after < 2.0, "{text}: {before}; {helped}: {after}");
    }
}

#[test]
fn the_rate_of_knocking_is_that_of_the_simulator() {
    let text = "exponential base=1s cap=5s spread=20s max-attempts=inf";
    let finding = finding(text, "clients=10k capacity=500/s for=reconnecting", "S022");
    let facts = finding.facts().join("; ");
    assert!(facts.contains("4,000 attempts per second") && facts.contains("8.0 times"), "{facts}");
    let figures = reconnect(&policy(text), 10_000, 500.0, Duration::from_secs(100));
    let knocks = arrivals(&figures, 60 * SECOND, 99 * SECOND);
    // An attempt takes a round trip of 50 ms in addition.
    assert!((3_800.0..4_050.0).contains(&knocks), "{knocks}");
}

#[test]
fn a_jitter_too_narrow_to_spread_the_first_wave_counts_as_none() {
    for base in ["1s", "2s"] {
        let peak = |jitter: &str| {
            let text = format!("exponential base={base} cap=30s max-attempts=inf jitter={jitter}");
            let scenario = ReconnectScenario::builder(10_000).rate(500.0).disconnect_window(Duration::from_millis(50));
            scenario.build().unwrap().run(&policy(&text), Seed::new(1)).peak() as f64
        };
        for (jitter, narrow) in [("±1%", true), ("±2%", true), ("±20%", false), ("equal", false), ("full", false)] {
            let text = format!("exponential base={base} cap=30s jitter={jitter}");
            assert_eq!(fleet_codes(&text, "").contains(&"S003"), narrow, "{text}");
            let share = peak(jitter) / peak("none");
            assert!(if narrow { share > 0.75 } else { share < 0.7 }, "{base} {jitter}: {share}");
        }
    }
    assert_eq!(found("exponential base=1s jitter=±1% spread=10s", "", "S003"), None);
    assert_eq!(found("exponential base=1s jitter=±1%", "clients=1", "S003"), None);
}

#[test]
fn a_kept_up_connection_that_gives_up_is_found_with_the_time() {
    let text = "exponential base=500ms cap=30s spread=10s max-attempts=10 stable-after=10s";
    let finding = finding(text, "for=reconnecting", "S023");
    assert_eq!(finding.suggestion().settings().as_deref(), Some("max-attempts=inf"));
    // The times at which clients give up, by the simulator.
    let lost = |down: u64| reconnect(&policy(text), 1_000, 100.0, Duration::from_secs(down)).gave_up as f64 / 1_000.0;
    let words: Vec<&str> = finding.facts()[0].split([' ', ',']).collect();
    let about = words.iter().position(|word| *word == "about").unwrap();
    let said = parse_duration(words[about + 1]).unwrap().unwrap().as_secs();
    assert!(lost(said * 2) > 0.99 && lost(said / 3) < 0.01, "{said}");
    assert_eq!(reconnect(finding.suggestion().policy().unwrap(), 1_000, 100.0, 600 * SECOND).gave_up, 0);
    let limited = "exponential base=500ms cap=30s max-attempts=inf max-elapsed=2m stable-after=10s";
    let helped = super::support::finding(limited, "for=reconnecting", "S023");
    assert_eq!(helped.suggestion().settings().as_deref(), Some("max-elapsed=none"));
    for (text, words) in [(limited, "for=background"), ("exponential max-attempts=2000 cap=30s", "for=reconnecting")] {
        assert_eq!(found(text, words, "S023"), None, "{text}");
    }
}

#[test]
fn a_shorter_cap_is_not_suggested_if_the_clients_would_make_more_attempts() {
    let fleet = "clients=60k capacity=1000/s for=reconnecting";
    let text = "exponential base=10s cap=5m spread=60s max-attempts=inf";
    let finding = finding(text, fleet, "S007");
    let advice = finding.suggestion().advice().unwrap();
    assert!(finding.suggestion().policy().is_none() && advice.contains("recovery worse"), "{advice}");
    let down = Duration::from_secs(600);
    let attempts = |cap: &str| {
        let policy = policy(&format!("exponential base=10s cap={cap} spread=60s max-attempts=inf"));
        reconnect(&policy, 60_000, 1_000.0, down).attempts_per_client()
    };
    assert!(attempts("2m") > 1.1 * attempts("5m"));
    let peak = |policy: &Policy| {
        let figures = reconnect(policy, 60_000, 1_000.0, down);
        arrivals(&figures, down, down + 10 * SECOND) / 1_000.0
    };
    // A cap of one minute doubles the load on the server that returns.
    assert!(peak(&policy("exponential base=10s cap=60s spread=60s max-attempts=inf")) > 1.5);
    assert_eq!(found("exponential base=10s cap=2m spread=60s max-attempts=inf", fleet, "S007"), None);
    assert!(found("exponential base=10s cap=2m spread=60s max-attempts=inf", "", "S007").is_some());
}

#[test]
fn hints_count_toward_the_worst_case() {
    for (text, words) in [
        ("interactive max-hint=5m", "for=interactive deadline=2s hint=60s"),
        ("serverless max-hint=5m", "for=serverless invocation=10s hint=60s"),
        ("exponential base=10ms cap=100ms hint=exact", "lease=30s hint=20s"),
    ] {
        let finding = finding(text, words, "S012");
        assert!(finding.facts().iter().any(|fact| fact.contains("the server asks for")), "{:#?}", finding.facts());
        let helped = finding.suggestion().policy().unwrap();
        assert_eq!(codes(helped, &context(words)).iter().filter(|code| **code != "S020").count(), 0, "{helped}");
    }
    // A hint that ends the call, and a clamped one.
    for text in ["exponential base=10ms cap=100ms max-hint=1s", "exponential base=10ms cap=100ms hint=clamp:0s"] {
        assert_eq!(found(text, "deadline=2s hint=60s", "S012"), None, "{text}");
    }
}

/// Beyond the deadline the only choice is to give up, which is what `max-hint` does.
#[test]
fn a_hint_above_the_deadline_may_end_the_call() {
    assert_eq!(found("exponential max-hint=2s base=10ms cap=100ms", "deadline=2s hint=60s", "S014"), None);
    assert!(found("exponential max-hint=2s base=10ms cap=100ms", "deadline=2m hint=60s", "S014").is_some());
}

#[test]
fn the_help_for_a_lease_leaves_room_for_one_attempt() {
    for what in ["lease", "invocation"] {
        let words = format!("{what}=30s");
        let finding = finding("exponential base=1s cap=30s max-attempts=9", &words, "S012");
        let limit = finding.suggestion().policy().unwrap().max_elapsed().unwrap();
        assert!(limit <= Duration::from_secs(27), "{what}: {limit:?}");
        assert!(found("exponential base=1s cap=30s max-attempts=9 max-elapsed=30s", &words, "S012").is_some());
    }
}

/// The mean over many single losses, each of one client.
#[test]
fn a_suggested_spread_says_how_long_it_delays_a_single_loss() {
    let fleet = "clients=10k capacity=500/s for=reconnecting";
    for (text, code) in [("exponential base=1s cap=40s max-attempts=inf", "S004"), ("signalr", "S003")] {
        let finding = finding(text, fleet, code);
        let advice = finding.suggestion().advice().unwrap_or_default();
        assert!(advice.contains("delays every single loss too: by 10s on average"), "{advice}");
        let helped = *finding.suggestion().policy().unwrap();
        assert_eq!(helped.spread(), Duration::from_secs(20));
        let scenario = ReconnectScenario::builder(1).disconnect_window(Duration::ZERO).build().unwrap();
        let mean = |policy: &Policy| {
            let times = (0..2_000).map(|seed| scenario.run(policy, Seed::new(seed)).recovered_mean.as_secs_f64());
            times.sum::<f64>() / 2_000.0
        };
        assert!((mean(&helped) - 10.0).abs() < 0.5, "{}", mean(&helped));
    }
}

/// Compares the rate at the end of the spread, while the server is down, with that of the simulator.
#[test]
fn a_first_ceiling_below_the_spread_multiplies_the_first_wave() {
    let fleet = "clients=20k capacity=1000/s for=reconnecting";
    for (base, most, applies) in [
        ("20s", 2.4, false),
        ("10s", 3.0, false),
        ("8s", 3.4, true),
        ("5s", 4.0, true),
        ("1s", 6.3, true),
        ("500ms", 7.4, true),
    ] {
        let text = format!("exponential base={base} cap=60s spread=20s max-attempts=inf stable-after=10s");
        let first = found(&text, fleet, "S024");
        assert_eq!(first.is_some(), applies, "{text}");
        let end = 20 * SECOND;
        let times = arrivals(&reconnect(&policy(&text), 20_000, 1_000.0, 4 * end), end - SECOND, end) / 1_000.0;
        assert!((most - 0.5..most).contains(&times), "{text}: {times}");
        let Some(found) = first else { continue };
        let facts = found.facts().join("; ");
        let said = facts.split(' ').filter_map(|word| word.parse::<f64>().ok()).next_back().unwrap();
        assert!((said / times - 1.0).abs() < 0.1, "{facts}: {times}");
        let helped = *found.suggestion().policy().unwrap();
        let times = arrivals(&reconnect(&helped, 20_000, 1_000.0, 4 * end), end - SECOND, end) / 1_000.0;
        assert!(times < 2.5, "{helped}: {times}");
    }
    for words in ["for=near clients=20k capacity=1000/s", "for=reconnecting clients=1", ""] {
        assert_eq!(found("exponential base=1s cap=60s spread=20s", words, "S024"), None, "{words}");
    }
    // If the fleet is unknown, the spread is taken to be as long as it needs.
    assert!(found("exponential base=1s cap=60s spread=20s", "for=reconnecting", "S024").is_some());
}

#[test]
fn a_connection_that_never_retries_gives_up_too() {
    let fleet = "clients=2k capacity=200/s for=reconnecting";
    for text in ["exponential base=20s cap=60s max-attempts=1", "constant base=20s spread=10s max-attempts=1", "stop"] {
        let found = finding(text, fleet, "S023");
        assert_eq!(reconnect(&policy(text), 2_000, 200.0, 60 * SECOND).gave_up, 2_000, "{text}");
        let helped = *found.suggestion().policy().unwrap();
        assert_eq!(reconnect(&helped, 2_000, 200.0, 60 * SECOND).gave_up, 0, "{text}: {helped}");
    }
    let spread = "exponential base=1s cap=60s spread=1s max-attempts=1";
    assert!(found(spread, fleet, "S004").is_some(), "it has a first wave");
    assert_eq!(found("exponential base=1s cap=60s max-attempts=1", fleet, "S004"), None, "it makes no attempt");
}

/// A short stall does not use up the allowance of so many processes; a longer one does.
#[test]
fn a_budget_that_suffices_only_for_a_short_stall_is_reported() {
    let text = "exponential base=1s cap=60s jitter=±50% max-attempts=4 max-elapsed=12s";
    let rates = "rps=11/s capacity=17/s clients=150 timeout=2s for=far";
    let recovery = |budget: DefaultGuards, down: u64| {
        let scenario = OutageScenario::builder(11.0).capacity(17.0).queue(51).processes(150).timeout(2 * SECOND);
        let scenario = scenario.outage(OutageKind::Stall, 20 * SECOND, Duration::from_secs(down));
        let scenario = scenario.horizon(400 * SECOND).build().unwrap();
        scenario.run(&policy(text), |seed| budget.process(seed), Seed::new(1)).recovery()
    };
    assert!(recovery(DefaultGuards::Tokens, 2).is_some() && recovery(DefaultGuards::Tokens, 60).is_none());
    let found = finding(text, &format!("{rates} budget=tokens"), "S016");
    let facts = found.facts().join("; ");
    assert!(facts.contains("tokens recovers after 0s from the first and never recovers from the second"), "{facts}");
    let advice = found.suggestion().advice().unwrap();
    let said = recommended(advice).unwrap();
    assert!(recovery(said, 60).is_some() && recovery(said, 2).is_some(), "{advice}");
}

const SLOW: &str = "exponential base=1s cap=75s max-attempts=3 spread=3s";
const SLOW_RATES: &str = "rps=22.2/s capacity=33.4/s clients=4 timeout=157ms for=near";

/// Simulates a short stall of the server with these rates, in several runs.
fn slow(text: &str, timeout: Duration, queue: u32, (down, budget): (Duration, DefaultGuards)) -> Vec<OutageFigures> {
    let scenario = OutageScenario::builder(22.2).capacity(33.4).queue(queue).processes(4).timeout(timeout);
    let scenario = scenario.outage(OutageKind::Stall, 20 * SECOND, down).horizon(200 * SECOND).build().unwrap();
    (1..=20).map(|seed| scenario.run(&policy(text), |seed| budget.process(seed), Seed::new(seed))).collect()
}

/// With seed 1 the server recovers, with most others it does not.
#[test]
fn a_budget_with_which_only_some_runs_recover_is_reported() {
    let runs = slow(SLOW, Duration::from_millis(157), 101, (2 * SECOND, DefaultGuards::Tokens));
    let recovered = runs.iter().filter(|run| run.recovery().is_some()).count();
    assert!(runs[0].recovery().is_some() && recovered < 10, "{recovered} of {}", runs.len());
    let found = finding(SLOW, &format!("{SLOW_RATES} budget=tokens"), "S016");
    assert!(found.facts().join("; ").contains("of 5 runs"), "{found:#?}");
}

/// No stall and no retry is needed: calls that arrive at random queue for longer than their callers wait.
#[test]
fn a_timeout_that_random_arrivals_exceed_is_reported_with_one_that_suffices() {
    let share = |timeout: Duration| {
        let runs = slow("stop", timeout, 3_000, (Duration::ZERO, DefaultGuards::None));
        1.0 - runs.iter().map(OutageFigures::success_ratio).sum::<f64>() / runs.len() as f64
    };
    for text in ["stop", SLOW] {
        let found = finding(text, SLOW_RATES, "S025");
        let facts = found.facts().join("; ");
        assert!(
            facts.contains("4% of the attempts") && facts.contains("simulated by: stagger simulate outage"),
            "{facts}"
        );
        let advice = found.suggestion().advice().unwrap();
        let (_, longer) = advice.split_once("a timeout of at least ").unwrap();
        let longer = parse_duration(longer.split([';', ',', ' ']).next().unwrap()).unwrap().unwrap();
        let (before, after) = (share(Duration::from_millis(157)), share(longer));
        assert!((0.02..0.06).contains(&before) && after < 0.003, "{before}, {after} with {longer:?}");
    }
    for words in ["timeout=320ms", "for=reconnecting timeout=157ms", ""] {
        assert_eq!(
            found(SLOW, &format!("rps=22.2/s capacity=33.4/s clients=4 for=near {words}"), "S025"),
            None,
            "{words}"
        );
    }
}

/// On both sides of the threshold, in the rule and in the simulation.
#[test]
fn timeouts_in_the_queue_are_reported_from_one_percent_of_the_attempts_on() {
    for (timeout, is_reported) in [(199, true), (218, false)] {
        let words = format!("rps=22.2/s capacity=33.4/s clients=4 for=near timeout={timeout}ms");
        assert_eq!(found(SLOW, &words, "S025").is_some(), is_reported, "{timeout} ms");
        let runs = slow("stop", Duration::from_millis(timeout), 3_000, (Duration::ZERO, DefaultGuards::None));
        let late = 1.0 - runs.iter().map(OutageFigures::success_ratio).sum::<f64>() / runs.len() as f64;
        assert!((late > 0.01) == is_reported && (0.006..0.017).contains(&late), "{timeout} ms: {late}");
    }
}

#[test]
fn a_queue_that_outlives_its_callers_is_reported_with_one_that_does_not() {
    let (text, timeout) = ("exponential base=1s cap=75s max-attempts=3", SECOND);
    let rates = "rps=22.2/s capacity=33.4/s clients=4 timeout=1s for=near";
    let found = finding(text, &format!("{rates} backlog=101"), "S026");
    let facts = found.facts().join("; ");
    // (101 - 33.4 · 1) / (33.4 - 22.2)
    assert!(facts.contains("3.02s of work") && facts.contains("for 6.04s"), "{facts}");
    // The stall of the command fills the queue, so that it shows that time, within a window of 4.5 s.
    assert!(facts.contains("--down 7s --sweep backlog=101,33 -p stop"), "{facts}");
    let advice = found.suggestion().advice().unwrap();
    assert!(advice.contains("at most 33 requests"), "{advice}");
    let after = |down: Duration, text: &str, queue: u32| {
        let runs = slow(text, timeout, queue, (down, DefaultGuards::None));
        let recoveries: Vec<f64> =
            runs.iter().map(|run| run.recovery().map_or(f64::INFINITY, |time| time.as_secs_f64())).collect();
        recoveries.iter().sum::<f64>() / recoveries.len() as f64
    };
    let recoveries = |text: &str, queue: u32| after(2 * SECOND, text, queue);
    assert!((after(7 * SECOND, "stop", 101) - 6.04).abs() < 4.5, "{}", after(7 * SECOND, "stop", 101));
    // The resolution is a window of 4.5 s; the stall of 2 s leaves 44 requests, so that it takes a second.
    assert!(recoveries(text, 101).is_infinite(), "the retries keep the queue full");
    assert!(recoveries(text, 33) < 5.0, "{}", recoveries(text, 33));
    for words in ["backlog=33", ""] {
        assert_eq!(self::found(text, &format!("{rates} {words}"), "S026"), None, "{words}");
    }
    // With a short queue, any budget suffices.
    assert!(self::found(text, &format!("{rates} budget=yes"), "S016").is_some());
    assert_eq!(self::found(text, &format!("{rates} budget=yes backlog=33"), "S016"), None);
}
