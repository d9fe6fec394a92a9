use stagger_core::{Policy, Seed};
use stagger_sim::occ::OccScenario;

#[test]
fn clients_without_attempts_give_up_and_all_others_write() {
    let policy = Policy::DEFAULT.to_builder().max_attempts(2).build().unwrap();
    let figures = OccScenario::builder(50).build().unwrap().run(&policy, Seed::new(1));
    assert_eq!(figures.written + figures.gave_up, 50);
    assert!(figures.gave_up > 10 && figures.written > 2, "{figures:?}");
    assert!(figures.calls <= 100, "{figures:?}");
}
