//! Tests of parallel runs.

use core::num::NonZeroUsize;
use core::time::Duration;

use stagger_core::{Policy, Seed, profile::Profile};
use stagger_sim::reconnect::ReconnectScenario;
use stagger_sim::{Progress, Sweep};

const SEEDS: [Seed; 3] = [Seed::new(1), Seed::new(2), Seed::new(9)];

fn policies() -> Vec<Policy> {
    Profile::all().take(8).map(Profile::policy).collect()
}

fn scenario() -> ReconnectScenario {
    ReconnectScenario::builder(2_000).rate(300.0).backlog(20).horizon(Duration::from_secs(300)).build().unwrap()
}

#[test]
fn figures_do_not_depend_on_the_number_of_threads() {
    let (scenario, policies) = (scenario(), policies());
    let one_by_one: Vec<Vec<_>> =
        policies.iter().map(|policy| SEEDS.map(|seed| Some(scenario.run(policy, seed))).to_vec()).collect();
    for threads in [1, 2, 3, 64] {
        let runs = Sweep::new().threads(NonZeroUsize::new(threads).unwrap());
        let figures = runs.run(&policies, &SEEDS, &Progress::new(), |policy, seed, progress| {
            scenario.run_with_progress(policy, seed, progress)
        });
        assert!(figures == one_by_one, "{threads} threads");
    }
}

#[test]
fn results_completed_before_a_cancellation_are_kept() {
    let (scenario, policies, progress) = (scenario(), policies(), Progress::new());
    let runs = Sweep::new().threads(NonZeroUsize::MIN);
    let figures = runs.run(&policies, &SEEDS, &progress, |policy, seed, progress| {
        let figures = scenario.run_with_progress(policy, seed, progress);
        if policy == &policies[2] {
            progress.cancel_token().cancel();
        }
        figures
    });
    let finished: Vec<usize> = figures.iter().map(|runs| runs.iter().flatten().count()).collect();
    assert_eq!(finished, [3, 3, 1, 0, 0, 0, 0, 0]);
}

#[test]
fn the_progress_grows_with_every_run_and_ends_at_one() {
    let (scenario, policies, progress) = (scenario(), policies(), Progress::new());
    let shares =
        Sweep::new().threads(NonZeroUsize::MIN).run(&policies, &SEEDS[..1], &progress, |policy, seed, progress| {
            let before = progress.fraction();
            let _ = scenario.run_with_progress(policy, seed, progress);
            Some((before, progress.fraction()))
        });
    for (run, share) in (0_u32..).zip(shares.into_iter().flatten().flatten()) {
        let want = (f64::from(run) / 8.0, f64::from(run + 1) / 8.0);
        assert!((share.0 - want.0).abs() < 1e-6 && (share.1 - want.1).abs() < 1e-6, "{share:?}, expected {want:?}");
    }
}

#[test]
fn without_strategies_or_seeds_there_are_no_runs() {
    let run = |_: &u8, _, _: &Progress| Some(1);
    assert_eq!(Sweep::new().run(&[], &SEEDS, &Progress::new(), run), Vec::<Vec<_>>::new());
    assert_eq!(Sweep::new().run(&[0, 1], &[], &Progress::new(), run), [vec![], vec![]]);
}
