//! A budget that the processes of a fleet share by leases, with faults of its store. The limits, the faults and the
//! criteria are those of the tests of `stagger-redis` with real processes and a real store.

use core::time::Duration;
use std::thread;

use stagger_core::{Policy, Ratio, Seed};
use stagger_lease::sim::{LeasedTokens, LeasedTokensBuilder};
use stagger_sim::Progress;
use stagger_sim::outage::{
    LeaseFigures, OutageFigures, OutageKind, OutageScenario, OutageScenarioBuilder, ProcessGuards, StoreFaults,
};
use stagger_sim::reconnect::ReconnectScenario;

const COST: f64 = 5.0;
const CAPACITY: f64 = 500.0;
const REFILL: f64 = 50.0;

const fn at(seconds: u64) -> Duration {
    Duration::from_secs(seconds)
}

const fn tokens() -> LeasedTokensBuilder {
    LeasedTokens::builder().capacity(CAPACITY as u32).refill(REFILL as u32, at(1)).cost(COST as u32)
}

/// A server that rejects all calls of this many processes, 200 a second of each and 1,600 at most, for 20 s.
fn all_fail(processes: u32) -> OutageScenarioBuilder {
    let rate = (200.0 * f64::from(processes)).min(1_600.0);
    let builder = OutageScenario::builder(rate).capacity(1e6).processes(processes).horizon(at(20));
    builder.outage(OutageKind::Reject, Duration::ZERO, at(20))
}

fn run(scenario: OutageScenarioBuilder, tokens: LeasedTokensBuilder, seed: u64) -> (OutageFigures, LeaseFigures) {
    let policy = Policy::exponential(Duration::from_millis(100), at(2)).max_attempts(4).build().unwrap();
    let tokens = tokens.build().unwrap();
    let figures = scenario.build().unwrap().run(&policy, |_| ProcessGuards::none().shared(tokens), Seed::new(seed));
    let leases = figures.leases.unwrap();
    (figures, leases)
}

/// Returns how many retries one bucket allows in so many seconds.
fn bound(seconds: f64, successes: f64) -> f64 {
    (CAPACITY + REFILL * seconds + successes) / COST
}

#[test]
fn f1_the_retries_of_a_fleet_are_those_of_one_bucket() {
    for processes in [1, 8, 500] {
        let (figures, leases) = run(all_fail(processes), tokens(), 1);
        let context = format!("{processes} processes: {} retries, {leases:?}", figures.retries);
        // A bucket that is granted in whole retries to many processes is not used to the last token.
        assert!((270..=300).contains(&figures.retries), "{context}");
        assert!(leases.overshoot == 0.0 && leases.overshoot_bound == 0.0, "{context}");
        assert!(leases.reports_max <= 23 && leases.local_max == 0, "{context}");
        assert_eq!((leases.processes, leases.restored), (processes, None), "{context}");
    }
}

#[test]
fn f2_while_the_store_is_away_the_local_shares_are_the_budget_and_it_returns_without_a_wave() {
    for processes in [8, 1_000] {
        for faults in [StoreFaults::none().down(at(6), at(12)), StoreFaults::none().lost(at(6), at(12))] {
            let (figures, leases) = run(all_fail(processes).store(faults), tokens(), 2);
            let context = format!("{processes} processes, {faults:?}: {} retries, {leases:?}", figures.retries);
            assert!(figures.retries as f64 <= bound(20.0, 0.0) && figures.retries >= 200, "{context}");
            assert!(leases.overshoot <= 0.02 && leases.overshoot_bound == 0.0, "{context}");
            assert_eq!(leases.local_max, processes, "{context}");
            assert!(leases.restored.is_some_and(|after| after <= Duration::from_millis(2_500)), "{context}");
        }
    }
}

#[test]
fn a_store_that_was_down_has_its_tokens_and_one_that_was_lost_has_none() {
    // All calls fail for four seconds, long after the store is back, and nothing refills the bucket.
    let scenario = OutageScenario::builder(200.0).capacity(1e6).processes(8).horizon(at(20));
    let scenario = scenario.outage(OutageKind::Reject, at(10), at(4));
    let retries = |faults| run(scenario.store(faults), tokens().refill(0, at(1)).reward(0), 7).0.retries;
    let [down, lost] = [StoreFaults::none().down(at(2), at(6)), StoreFaults::none().lost(at(2), at(6))].map(retries);
    assert!((95..=100).contains(&down), "{down}");
    // What the processes held meanwhile.
    assert!((1..=40).contains(&lost), "{lost}");
}

#[test]
fn f3_without_a_store_the_local_shares_are_the_budget() {
    let never = StoreFaults::none().down(at(0), at(20));
    for processes in [1, 8, 50] {
        let (figures, leases) = run(all_fail(processes).store(never), tokens(), 3);
        let context = format!("{processes} processes: {} retries, {leases:?}", figures.retries);
        assert!((150..=300).contains(&figures.retries), "{context}");
        assert!(leases.overshoot == 0.0 && leases.overshoot_bound == 0.0 && leases.restored.is_none(), "{context}");
    }
}

#[test]
fn processes_that_are_cut_off_spend_their_leases_and_their_share_of_the_refill() {
    let mut highest: f64 = 0.0;
    for processes in [8, 200] {
        for percent in [25, 50, 100] {
            let faults = StoreFaults::none().cut(Ratio::percent(percent), at(6), at(12));
            let (figures, leases) = run(all_fail(processes).store(faults), tokens(), 4);
            let context = format!("{processes} processes, {percent} %: {} retries, {leases:?}", figures.retries);
            assert!(leases.overshoot_bound > 0.0 && leases.overshoot <= leases.overshoot_bound, "{context}");
            assert_eq!(leases.local_max, processes * percent / 100, "{context}");
            highest = highest.max(leases.overshoot);
        }
    }
    assert!(highest > 0.1, "the bound is needed: {highest}");
}

#[test]
fn more_processes_than_expected_exceed_the_budget_only_if_the_store_was_never_there() {
    let expected = tokens().expected(10);
    let never = StoreFaults::none().down(at(0), at(20));
    let (_, leases) = run(all_fail(40).store(never), expected, 5);
    assert!(leases.overshoot > 1.0 && leases.overshoot <= leases.overshoot_bound, "{leases:?}");
    let later = StoreFaults::none().down(at(6), at(12));
    let (_, leases) = run(all_fail(40).store(later), expected, 5);
    assert!(leases.overshoot <= 0.02 && leases.overshoot_bound == 0.0, "{leases:?}");
}

#[test]
fn successes_add_to_the_budget_of_the_fleet() {
    let scenario = OutageScenario::builder(1_000.0).capacity(1e6).processes(20).horizon(at(30));
    let scenario = scenario.outage(OutageKind::Reject, at(10), at(10));
    let (figures, leases) = run(scenario, tokens().reward(1), 6);
    let successes = figures.successes.total() as f64;
    assert!(
        figures.retries as f64 <= bound(30.0, successes) && figures.retries > 150,
        "{} {leases:?}",
        figures.retries
    );
    assert!(leases.overshoot <= leases.overshoot_bound, "{leases:?}");
}

/// A large fleet whose store is lost in the middle of an outage, and which is cut in half afterwards. The command
/// with 10,000 processes is in the guide.
#[test]
fn a_store_that_is_lost_in_the_middle_of_an_outage_costs_nothing_beyond_the_bound() {
    let scenario = OutageScenario::builder(500.0).capacity(1_000.0).queue(1_000).processes(1_000).horizon(at(90));
    let scenario = scenario.outage(OutageKind::Reject, at(20), at(20));
    let faults = StoreFaults::none().lost(at(25), at(35)).cut(Ratio::percent(50), at(37), at(45));
    let (figures, leases) = run(scenario.store(faults), tokens().capacity(5_000).refill(500, at(1)), 1);
    let context = format!("{} retries, {leases:?}, {}", figures.retries, figures.verdict());
    let bound = (5_000.0 * (1.0 + leases.overshoot_bound) + 500.0 * 90.0 + figures.successes.total() as f64) / COST;
    assert!(figures.retries as f64 <= bound, "{context}");
    assert!(leases.overshoot <= leases.overshoot_bound, "{context}");
    assert!(leases.reports_max <= 93, "{context}");
    assert!(leases.restored.is_some_and(|after| after <= Duration::from_millis(2_500)), "{context}");
    assert!(figures.recovery().is_some_and(|after| after <= at(5)), "{context}");
}

#[test]
fn a_leased_budget_bounds_the_retries_of_clients_that_reconnect() {
    let policy = Policy::exponential(Duration::from_millis(500), at(10)).unlimited_attempts().build().unwrap();
    let tokens = tokens().reward(0).build().unwrap();
    for faults in [StoreFaults::none(), StoreFaults::none().lost(at(1), at(4))] {
        let scenario = ReconnectScenario::builder(3_000).rate(300.0).backlog(150).horizon(at(600));
        let scenario = scenario.down_for(at(20)).processes(30).store(faults).build().unwrap();
        let guards = |_| ProcessGuards::none().shared(tokens);
        let figures = scenario.run_with_guards(&policy, guards, Seed::new(1), &Progress::new()).unwrap().unwrap();
        let leases = figures.leases.unwrap();
        // Without a spread, the loss is the first failure: the budget pays for every attempt.
        let attempts = figures.attempts as f64;
        assert!(attempts >= 90.0 && attempts <= bound(20.0, 0.0), "{attempts} attempts, {leases:?}");
        assert!(leases.overshoot <= 0.02, "{leases:?}");
    }
}

#[test]
fn the_same_seed_gives_the_same_figures_on_every_thread() {
    let figures = || {
        let scenario = OutageScenario::builder(800.0).capacity(600.0).processes(7).horizon(at(60));
        run(scenario.outage(OutageKind::Stall, at(20), at(2)), tokens(), 9)
    };
    let first = figures();
    assert!(first.1.reports > 200, "{:?}", first.1);
    let others: Vec<_> = thread::scope(|scope| {
        let threads: Vec<_> = (0..2).map(|_| scope.spawn(figures)).collect();
        threads.into_iter().map(|thread| thread.join().unwrap()).collect()
    });
    assert!(others.iter().all(|other| *other == first));
}
