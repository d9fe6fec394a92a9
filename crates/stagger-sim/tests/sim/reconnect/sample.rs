use core::time::Duration;

use stagger_core::{Jitter, Policy, Seed};
use stagger_sim::reconnect::{ReconnectFigures, ReconnectScenario};

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
    let none = stagger_sim::Progress::new();
    let guarded = scenario.run_with_guards(&policy, |_| ProcessGuards::none(), Seed::new(1), &none).unwrap().unwrap();
    let plain = scenario.run(&policy, Seed::new(1));
    assert_eq!(guarded.sample_losses, plain.sample_losses);
    assert_eq!(guarded.sample_connects.iter().map(Vec::len).sum::<usize>() as u64, guarded.connected);
    assert_in_turn(&guarded);
}
