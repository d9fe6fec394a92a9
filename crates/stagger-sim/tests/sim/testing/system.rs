use core::panic::AssertUnwindSafe;
use core::time::Duration;
use std::panic::catch_unwind;

use stagger_core::policy;
use stagger_sim::system::{Edge, Service, System, Trigger};
use stagger_sim::testing::SystemTest;

use super::message;

fn system(rate: f64) -> System {
    let service = Service::new("server").service_time(Duration::from_millis(5)).backlog(600);
    let edge = Edge::from_users("server").policy(policy!(zero().max_attempts(3)));
    System::builder(rate).service(service).edge(edge).build().unwrap()
}

#[test]
fn a_claim_that_holds_does_not_panic() {
    let test = SystemTest::recovers_from(&system(40.0), Trigger::stall()).unwrap();
    test.within(Duration::from_secs(10)).amplification_at_most(1.2).success_at_least(0.9);
}

#[test]
fn a_claim_that_fails_panics_with_the_figures() {
    let text = message(|| SystemTest::recovers_from(&system(150.0), Trigger::stall()));
    assert!(text.starts_with("the system is down at the horizon: it has been down since 20s"), "{text}");
    assert!(text.contains("edge to server: 3.000 attempts per request"), "{text}");
    let test = SystemTest::recovers_from(&system(40.0), Trigger::stall()).unwrap();
    let too_strict: [fn(&SystemTest); 3] = [
        |test| _ = test.within(Duration::ZERO).success_at_least(1.0),
        |test| _ = test.amplification_at_most(1.0),
        |test| _ = test.success_at_least(0.99),
    ];
    for claim in too_strict {
        assert!(catch_unwind(AssertUnwindSafe(|| claim(&test))).is_err());
    }
}
