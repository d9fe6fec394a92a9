//! Tests of the guards that are recommended beside the policy.

use core::time::Duration;

use stagger_core::Seed;
use stagger_core::text::Rate;
use stagger_lint::advise::{Advice, Answers, advise};
use stagger_lint::{DeploymentContext, Purpose};
use stagger_sim::Progress;
use stagger_sim::outage::{DefaultGuards, OutageKind, OutageScenario, ProcessGuards};

fn advised(purpose: Purpose, clients: u64, rate: f64) -> Advice {
    let fleet = DeploymentContext::default()
        .purpose(purpose)
        .clients(clients.try_into().unwrap())
        .capacity(Rate::per_second(rate).unwrap())
        .deadline(Duration::from_secs(2));
    let answers = Answers::from_context(fleet).outage(Duration::ZERO);
    advise(&answers, Seed::new(1), &Progress::new()).unwrap()
}

#[test]
fn recommended_guards_let_a_server_recover_that_does_not_without_them() {
    let mut recommended = 0;
    for (purpose, clients, rate) in [(Purpose::Near, 1_001, 1_000.0), (Purpose::Near, 5_000, 1_000.0)] {
        let advice = advised(purpose, clients, rate);
        let trial = advice.guard_trial().unwrap();
        assert_eq!(
            trial.with.recovery.is_some(),
            trial.without.recovery.is_some() || trial.guards != DefaultGuards::None
        );
        if advice.guards() == DefaultGuards::None {
            continue;
        }
        recommended += 1;
        let scenario = OutageScenario::builder(0.8 * rate)
            .capacity(rate)
            .queue((3.0 * rate) as u32)
            .processes(clients as u32)
            .outage(OutageKind::Stall, Duration::from_secs(20), Duration::from_secs(10))
            .horizon(Duration::from_secs(160))
            .build()
            .unwrap();
        let policy = advice.policy().unwrap();
        let with = scenario.run(policy, |seed| advice.guards().process(seed), Seed::new(99));
        let without = scenario.run(policy, |_| ProcessGuards::none(), Seed::new(99));
        let told = [trial.with.success_ratio, trial.without.success_ratio];
        let got = [with.success_ratio(), without.success_ratio()];
        assert!(got[0] > got[1] + 0.1, "{purpose}: {:?} {got:?}", advice.guards());
        assert!((told[0] - got[0]).abs() < 0.05 && (told[1] - got[1]).abs() < 0.05, "{told:?} {got:?}");
    }
    assert!(recommended > 0);
}

#[test]
fn nothing_is_recommended_that_was_not_simulated() {
    let reconnecting = advised(Purpose::Reconnecting, 5_000, 1_000.0);
    assert_eq!((reconnecting.guards(), reconnecting.guard_trial()), (DefaultGuards::None, None));
    let unknown = DeploymentContext::default().purpose(Purpose::Near).clients(5_000.try_into().unwrap());
    let unknown = advise(&Answers::from_context(unknown), Seed::new(1), &Progress::new()).unwrap();
    assert_eq!((unknown.guards(), unknown.guard_trial()), (DefaultGuards::None, None));
    let [warning] = unknown.warnings() else { panic!("{:?}", unknown.warnings()) };
    assert_eq!(warning.rule().name(), "no-budget", "the advice tells what it cannot help");
    let few = advised(Purpose::Near, 1_000, 1_000.0);
    assert_eq!((few.guards(), few.guard_trial().unwrap().tried), (DefaultGuards::None, false), "too few clients");
}

/// Each of 2,000 processes makes a call in two minutes, too few for any guard, but `check` warns of so many clients
/// without one.
#[test]
fn guards_that_change_nothing_are_recommended_only_because_check_wants_one() {
    let advice = advised(Purpose::Near, 2_000, 20.0);
    let trial = advice.guard_trial().unwrap();
    assert!(trial.without.is_recovered() && trial.with.is_recovered(), "{trial:?}");
    assert!(trial.with.success_ratio > trial.without.success_ratio - 0.021, "{trial:?}");
    assert!(advice.guards() != DefaultGuards::None && advice.warnings().is_empty(), "{:?}", advice.warnings());
}

/// The figures of a mass failure, in which each process makes one call, hold with the guards, too.
#[test]
fn a_single_job_makes_all_its_attempts_with_the_recommended_guards() {
    let fleet = DeploymentContext::default().purpose(Purpose::Background).clients(2_000.try_into().unwrap());
    let answers = Answers::from_context(fleet.capacity(Rate::per_second(100.0).unwrap())).outage(Duration::ZERO);
    let advice = advise(&answers, Seed::new(1), &Progress::new()).unwrap();
    assert!(advice.guard_trial().is_some());
    // A call in a hundred seconds, hardly any two of them in the same process.
    let horizon = Duration::from_secs(20_000);
    let scenario = OutageScenario::builder(0.01).processes(20_000).outage(OutageKind::Reject, Duration::ZERO, horizon);
    let scenario = scenario.horizon(horizon).build().unwrap();
    let attempts = |guards: DefaultGuards| {
        scenario.run(advice.policy().unwrap(), |seed| guards.process(seed), Seed::new(1)).amplification()
    };
    let [with, without] = [attempts(advice.guards()), attempts(DefaultGuards::None)];
    assert!(without > 5.0 && (with - without).abs() < 0.02 * without, "{:?}: {with}, {without}", advice.guards());
}
