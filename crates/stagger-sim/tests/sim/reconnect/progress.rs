use core::time::Duration;
use std::thread;

use stagger_core::{Policy, Seed};
use stagger_sim::Progress;
use stagger_sim::reconnect::ReconnectScenario;

#[test]
fn a_complete_run_has_reported_all_of_its_progress() {
    let scenario = ReconnectScenario::builder(1_000).build().unwrap();
    let progress = Progress::new();
    assert!(progress.fraction() < 1e-9);
    let figures = scenario.run_with_progress(&Policy::DEFAULT, Seed::new(1), &progress).unwrap();
    assert!(progress.fraction() > 1.0 - 1e-9, "{}", progress.fraction());
    assert_eq!(figures, scenario.run(&Policy::DEFAULT, Seed::new(1)));
}

/// Uses a server that accepts no client, so the run would otherwise simulate three days of a million clients.
#[test]
fn a_run_in_progress_can_be_cancelled() {
    let days = Duration::from_secs(3 * 86_400);
    let scenario = ReconnectScenario::builder(1_000_000).rate(1e-9).backlog(1).horizon(days).build().unwrap();
    let policy = Policy::constant(Duration::from_millis(1)).unlimited_attempts().build().unwrap();
    let progress = Progress::new();
    thread::scope(|threads| {
        let run = threads.spawn(|| scenario.run_with_progress(&policy, Seed::new(1), &progress));
        progress.cancel_token().cancel();
        assert_eq!(run.join().unwrap(), None);
    });
}
