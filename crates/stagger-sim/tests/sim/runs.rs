//! Runs side by side.

use core::num::NonZeroUsize;
use core::time::Duration;

use stagger_core::{Policy, Seed, profile::Profile};
use stagger_sim::reconnect::Scenario;
use stagger_sim::{Runs, Watch};

const SEEDS: [Seed; 3] = [Seed::new(1), Seed::new(2), Seed::new(9)];

fn policies() -> Vec<Policy> {
    Profile::all().take(8).map(Profile::policy).collect()
}

fn scenario() -> Scenario {
    Scenario::builder(2_000).rate(300.0).backlog(20).horizon(Duration::from_secs(300)).build().unwrap()
}

#[test]
fn figures_do_not_depend_on_the_number_of_threads() {
    let (scenario, policies) = (scenario(), policies());
    let one_by_one: Vec<Vec<_>> =
        policies.iter().map(|policy| SEEDS.map(|seed| Some(scenario.run(policy, seed))).to_vec()).collect();
    for threads in [1, 2, 3, 64] {
        let runs = Runs::new().threads(NonZeroUsize::new(threads).unwrap());
        let figures =
            runs.each(&policies, &SEEDS, &Watch::new(), |policy, seed, watch| scenario.watched(policy, seed, watch));
        assert!(figures == one_by_one, "{threads} threads");
    }
}

#[test]
fn what_was_finished_before_it_was_cancelled_is_kept() {
    let (scenario, policies, watch) = (scenario(), policies(), Watch::new());
    let runs = Runs::new().threads(NonZeroUsize::MIN);
    let figures = runs.each(&policies, &SEEDS, &watch, |policy, seed, watch| {
        let figures = scenario.watched(policy, seed, watch);
        if policy == &policies[2] {
            watch.cancel();
        }
        figures
    });
    let finished: Vec<usize> = figures.iter().map(|runs| runs.iter().flatten().count()).collect();
    assert_eq!(finished, [3, 3, 1, 0, 0, 0, 0, 0]);
}

#[test]
fn the_share_grows_with_every_run_and_ends_at_one() {
    let (scenario, policies, watch) = (scenario(), policies(), Watch::new());
    let shares = Runs::new().threads(NonZeroUsize::MIN).each(&policies, &SEEDS[..1], &watch, |policy, seed, watch| {
        let before = watch.share();
        let _ = scenario.watched(policy, seed, watch);
        Some((before, watch.share()))
    });
    for (run, share) in (0_u32..).zip(shares.into_iter().flatten().flatten()) {
        let want = (f64::from(run) / 8.0, f64::from(run + 1) / 8.0);
        assert!((share.0 - want.0).abs() < 1e-6 && (share.1 - want.1).abs() < 1e-6, "{share:?} is not {want:?}");
    }
}

#[test]
fn no_strategy_and_no_seed_are_no_runs() {
    let run = |_: &u8, _, _: &Watch| Some(1);
    assert_eq!(Runs::new().each(&[], &SEEDS, &Watch::new(), run), Vec::<Vec<_>>::new());
    assert_eq!(Runs::new().each(&[0, 1], &[], &Watch::new(), run), [vec![], vec![]]);
}
