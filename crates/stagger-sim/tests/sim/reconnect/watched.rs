use core::time::Duration;
use std::thread;

use stagger_core::{Policy, Seed};
use stagger_sim::Watch;
use stagger_sim::reconnect::Scenario;

#[test]
fn a_run_that_is_through_has_told_all_of_its_progress() {
    let scenario = Scenario::builder(1_000).build().unwrap();
    let watch = Watch::new();
    assert!(watch.share() < 1e-9);
    let figures = scenario.watched(&Policy::DEFAULT, Seed::new(1), &watch).unwrap();
    assert!(watch.share() > 1.0 - 1e-9, "{}", watch.share());
    assert_eq!(figures, scenario.run(&Policy::DEFAULT, Seed::new(1)));
}

/// Nobody is ever let in, so without the watch it would go on for three simulated days of a million clients.
#[test]
fn a_run_that_is_underway_can_be_cancelled() {
    let days = Duration::from_secs(3 * 86_400);
    let scenario = Scenario::builder(1_000_000).rate(1e-9).backlog(1).horizon(days).build().unwrap();
    let policy = Policy::constant(Duration::from_millis(1)).unlimited_attempts().build().unwrap();
    let watch = Watch::new();
    thread::scope(|threads| {
        let run = threads.spawn(|| scenario.watched(&policy, Seed::new(1), &watch));
        watch.cancel();
        assert_eq!(run.join().unwrap(), None);
    });
}
