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
    without.sample.clear();
    assert_eq!(without, none);
}
