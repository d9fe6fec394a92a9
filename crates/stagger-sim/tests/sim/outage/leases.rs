//! A budget that the processes of a fleet share by leases, with faults of its store.

use core::time::Duration;

use stagger_core::{Policy, Ratio, Seed};
use stagger_sim::outage::{
    LeasedTokens, OutageFigures, OutageKind, OutageScenario, OutageScenarioBuilder, ProcessGuards, StoreFaults,
};

const fn at(seconds: u64) -> Duration {
    Duration::from_secs(seconds)
}

fn policy() -> Policy {
    Policy::exponential(Duration::from_millis(100), at(2)).max_attempts(4).build().unwrap()
}

/// 500 tokens, 50 per second, 5 for a retry.
fn tokens() -> LeasedTokens {
    LeasedTokens::builder().capacity(500).refill(50, at(1)).build().unwrap()
}

/// A server that rejects everything for 20 s of 200 calls per second and process.
fn all_fail(processes: u32) -> OutageScenarioBuilder {
    let rate = 200.0 * f64::from(processes);
    let builder = OutageScenario::builder(rate).capacity(1e6).processes(processes).horizon(at(20));
    builder.outage(OutageKind::Reject, Duration::ZERO, at(20))
}

fn run(scenario: OutageScenarioBuilder, tokens: LeasedTokens, seed: u64) -> OutageFigures {
    scenario.build().unwrap().run(&policy(), |_| ProcessGuards::none().leased(tokens), Seed::new(seed))
}

#[test]
fn explore() {
    for (name, faults) in [
        ("none", StoreFaults::none()),
        ("down", StoreFaults::none().down(at(6), at(12))),
        ("lost", StoreFaults::none().lost(at(6), at(12))),
        ("cut", StoreFaults::none().cut(Ratio::percent(50), at(6), at(12))),
        ("never", StoreFaults::none().down(at(0), at(20))),
    ] {
        for processes in [1, 8, 100, 1000] {
            let t = std::time::Instant::now();
            let scenario = OutageScenario::builder(1600.0).capacity(1e6).processes(processes).horizon(at(20)).outage(
                OutageKind::Reject,
                Duration::ZERO,
                at(20),
            );
            let figures = run(scenario.store(faults), tokens(), 1);
            println!("{name} {processes}: retries {} {:?} {:?}", figures.retries, figures.leases, t.elapsed());
        }
    }
    let _ = all_fail(8);
}
