use core::time::Duration;

use stagger_core::{Policy, Seed, profile::Profile};
use stagger_sim::Engine;
use stagger_sim::occ::OccScenario;

#[test]
fn both_engines_give_the_same_figures() {
    for (clients, mean, deviation) in [(1, 10, 2), (20, 10, 2), (60, 3, 3), (30, 1, 0)] {
        let millis = Duration::from_millis;
        let scenario = OccScenario::builder(clients).one_way(millis(mean), millis(deviation)).build().unwrap();
        for policy in [Policy::DEFAULT, Policy::zero().build().unwrap(), Profile::named("aws-blog").unwrap().policy()] {
            let run = |engine| scenario.run_with_engine(engine, &policy, Seed::new(clients));
            assert_eq!(run(Engine::Calendar), run(Engine::Heap), "{clients} clients, {policy}");
        }
    }
}

#[test]
fn clients_without_attempts_give_up_and_all_others_write() {
    let policy = Policy::DEFAULT.to_builder().max_attempts(2).build().unwrap();
    let figures = OccScenario::builder(50).build().unwrap().run(&policy, Seed::new(1));
    assert_eq!(figures.written + figures.gave_up, 50);
    assert!(figures.gave_up > 10 && figures.written > 2, "{figures:?}");
    assert!(figures.calls <= 100, "{figures:?}");
}
