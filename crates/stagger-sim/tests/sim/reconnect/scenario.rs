//! What cannot be built, what a run reports of its progress, and what it records of a sample of the clients.

use core::time::Duration;
use std::thread;

use stagger_core::{Jitter, Policy, Seed};
use stagger_sim::reconnect::{ReconnectFigures, ReconnectScenario, ReconnectScenarioBuilder, RetryAfter};
use stagger_sim::{Progress, ScenarioProblem};

fn problems(builder: ReconnectScenarioBuilder) -> Vec<ScenarioProblem> {
    builder.build().err().map_or(Vec::new(), |error| error.problems().collect())
}

#[test]
fn an_invalid_scenario_cannot_be_built() {
    let plain = ReconnectScenario::builder(10);
    let (zero, second, day) = (Duration::ZERO, Duration::from_secs(1), Duration::from_secs(86_400));
    for (builder, want) in [
        (plain, None),
        (ReconnectScenario::builder(1 << 26), None),
        (ReconnectScenario::builder(0), Some(ScenarioProblem::Clients)),
        (ReconnectScenario::builder((1 << 26) + 1), Some(ScenarioProblem::Clients)),
        (ReconnectScenario::builder(10_000_000_000), Some(ScenarioProblem::Clients)),
        (plain.rate(0.0), Some(ScenarioProblem::Rate)),
        (plain.rate(-1.0), Some(ScenarioProblem::Rate)),
        (plain.rate(f64::NAN), Some(ScenarioProblem::Rate)),
        (plain.rate(f64::INFINITY), Some(ScenarioProblem::Rate)),
        (plain.rate(0.001), None),
        (plain.rate(0.001).retry_after(RetryAfter::Reservations), Some(ScenarioProblem::ReservationRate)),
        (plain.backlog(0), Some(ScenarioProblem::Backlog)),
        (plain.one_way(second, zero), Some(ScenarioProblem::Network)),
        (plain.one_way(second, second), None),
        (plain.one_way(zero, day), Some(ScenarioProblem::Network)),
        (plain.one_way(zero, Duration::MAX), Some(ScenarioProblem::Network)),
        (plain.disconnect_window(day * 2), Some(ScenarioProblem::BeyondHorizon)),
        (plain.down_for(day * 2), Some(ScenarioProblem::BeyondHorizon)),
        (plain.horizon(zero).disconnect_window(zero), Some(ScenarioProblem::Horizon)),
        (plain.horizon(day * 4), Some(ScenarioProblem::Horizon)),
        (plain.horizon(Duration::MAX), Some(ScenarioProblem::Horizon)),
    ] {
        assert_eq!(problems(builder), Vec::from_iter(want), "{builder:?}");
    }
}

#[test]
fn every_problem_is_reported_with_a_fix() {
    let error = ReconnectScenario::builder(0).rate(f64::NAN).backlog(0).build().unwrap_err();
    let want = [ScenarioProblem::Clients, ScenarioProblem::Rate, ScenarioProblem::Backlog];
    assert_eq!(error.problems().collect::<Vec<_>>(), want);
    let text = error.to_string();
    for part in ["1 and 67,108,864", "use the capacity of the server", "use a value between 1"] {
        assert!(text.contains(part), "{text}");
    }
}

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

fn sampled(clients: u32) -> ReconnectFigures {
    let second = Policy::constant(Duration::from_secs(1)).jitter(Jitter::None).max_attempts(5).build().unwrap();
    let scenario = ReconnectScenario::builder(300).rate(10.0).backlog(5).sample(clients).build().unwrap();
    scenario.run(&second, Seed::new(1))
}

#[test]
fn all_attempts_of_sampled_clients_are_recorded_in_order() {
    let figures = sampled(300);
    assert_eq!(figures.sample.iter().map(Vec::len).sum::<usize>() as u64, figures.attempts);
    for attempts in &figures.sample {
        for pair in attempts.windows(2) {
            // A second plus a round trip.
            let apart = pair[1] - pair[0];
            assert!((Duration::from_millis(1_020)..=Duration::from_millis(1_080)).contains(&apart), "{apart:?}");
        }
    }
}

#[test]
fn sampling_does_not_change_other_figures() {
    let (some, none) = (sampled(7), sampled(0));
    assert_eq!((some.sample.len(), none.sample.len()), (7, 0));
    assert_eq!(ReconnectFigures::default().sample, none.sample);
    let mut without = some;
    for times in [&mut without.sample, &mut without.sample_losses, &mut without.sample_connects] {
        times.clear();
    }
    assert_eq!(without, none);
}

/// Asserts that a client loses its connection, knocks, and is connected again, as often as the server crashes.
fn assert_in_turn(figures: &ReconnectFigures) {
    for (client, losses) in figures.sample_losses.iter().enumerate() {
        let connects = figures.sample_connects.get(client).map_or(&[][..], Vec::as_slice);
        let turns = connects.len();
        assert!(losses.len() == turns || losses.len() == turns + 1, "client {client}: {losses:?} {connects:?}");
        for (nth, connect) in connects.iter().enumerate() {
            assert!(losses[nth] < *connect, "client {client}: {losses:?} {connects:?}");
            let knocks = figures.sample[client].iter().filter(|&at| (losses[nth]..=*connect).contains(at)).count();
            assert!(knocks > 0, "client {client}: connected without an attempt");
            assert!(losses.get(nth + 1).is_none_or(|loss| connect <= loss), "client {client}: {losses:?} {connects:?}");
        }
    }
}

#[test]
fn losses_and_connections_of_sampled_clients_are_recorded_in_turn() {
    let figures = sampled(300);
    assert_eq!(figures.sample_losses.len(), 300);
    assert_eq!(figures.sample_connects.iter().map(Vec::len).sum::<usize>() as u64, figures.connected);
    assert!(figures.connected > 0 && figures.gave_up > 0, "{figures:?}");
    assert_in_turn(&figures);
}

#[test]
fn a_crash_of_the_server_is_a_further_loss_of_sampled_clients() {
    let scenario = ReconnectScenario::builder(400).rate(100.0).crash_loop(3, 120.0).sample(400).build().unwrap();
    let policy = Policy::exponential(Duration::from_secs(1), Duration::from_secs(9)).unlimited_attempts();
    let figures = scenario.run(&policy.build().unwrap(), Seed::new(1));
    assert!(figures.crashes > 0);
    let losses = figures.sample_losses.iter().map(Vec::len).sum::<usize>();
    assert!(losses > 400, "{losses} losses with {} crashes", figures.crashes);
    assert_in_turn(&figures);
    assert_eq!(figures.connected, 400);
    assert!(figures.sample_losses.iter().zip(&figures.sample_connects).all(|(lost, back)| lost.len() == back.len()));
}

#[test]
fn clients_with_guards_are_sampled_as_those_without() {
    use stagger_sim::outage::ProcessGuards;
    let scenario = ReconnectScenario::builder(300).rate(10.0).backlog(5).build().unwrap().with_sample(300);
    let policy = Policy::constant(Duration::from_secs(1)).max_attempts(5).build().unwrap();
    let none = Progress::new();
    let guarded = scenario.run_with_guards(&policy, |_| ProcessGuards::none(), Seed::new(1), &none).unwrap().unwrap();
    let plain = scenario.run(&policy, Seed::new(1));
    assert_eq!(guarded.sample_losses, plain.sample_losses);
    assert_eq!(guarded.sample_connects.iter().map(Vec::len).sum::<usize>() as u64, guarded.connected);
    assert_in_turn(&guarded);
}
