//! Loop gains: those of published systems, and the borders that are at a gain of 1. the laws of `stagger-lint` compare
//! them with runs of random systems.

use core::time::Duration;

use stagger_sim::system::{CallOrder, Edge, LoopGain, NestedCalls, Service, StaleWork, System, Trigger};

use super::one_server::{at_once, budgeted};

/// Returns a chain of services of 500 requests per second, with three attempts on each edge.
fn chain(rate: f64, tiers: usize, edges: impl Fn(Edge) -> Edge) -> System {
    let mut system = System::builder(rate);
    let name = |tier: usize| format!("tier {tier}");
    for tier in 0..tiers {
        let edge = if tier == 0 { Edge::from_users(name(0)) } else { Edge::between(name(tier - 1), name(tier)) };
        let service = Service::new(name(tier)).service_time(Duration::from_millis(2)).backlog(1_500);
        system = system.service(service).edge(edges(edge.policy(at_once(3))));
    }
    system.build().unwrap()
}

fn last(system: &System) -> LoopGain {
    *system.loop_gains().last().unwrap()
}

#[test]
fn gains_are_the_load_without_success_over_the_capacity() {
    let multiply = |edge: Edge| edge;
    let stand_down = |edge: Edge| edge.nested(NestedCalls::StandDown);
    let first_only = |edge: Edge| edge.nested(NestedCalls::FirstOnly);
    for (system, attempts) in [
        (chain(50.0, 1, multiply), 3.0),
        (chain(50.0, 2, multiply), 9.0),
        (chain(50.0, 3, multiply), 27.0),
        (chain(50.0, 3, stand_down), 3.0),
        // 1 + 2 at each service.
        (chain(50.0, 3, first_only), 7.0),
    ] {
        let gain = last(&system);
        assert!((gain.gain - attempts * 0.1).abs() < 1e-9 && gain.is_closed, "{gain:?}, expected {attempts} attempts");
    }
}

#[test]
fn budgets_keep_the_gain_near_the_load() {
    let gain = last(&chain(200.0, 3, budgeted));
    // At a failure share below 1, successes pay for a tenth of a retry each, at each of the three edges.
    assert!((0.4..=0.4 * 1.1_f64.powi(3)).contains(&gain.gain), "{gain:?}");
}

#[test]
fn parallel_calls_count_all_and_those_in_sequence_as_far_as_they_are_made() {
    let calls = |order| {
        let system = System::builder(10.0).service(Service::new("front")).service(Service::new("back"));
        let edge = Edge::between("front", "back").calls(4).order(order).policy(at_once(2));
        let gain = last(&system.edge(Edge::from_users("front")).edge(edge).build().unwrap());
        gain.gain * 1_000.0 / 10.0
    };
    assert!((calls(CallOrder::Parallel) - 8.0).abs() < 1e-9, "{}", calls(CallOrder::Parallel));
    // Between the two attempts of a first call that fails and the four calls of which none fails, or is retried in
    // vain.
    assert!((4.0..5.0).contains(&calls(CallOrder::Sequence)), "{}", calls(CallOrder::Sequence));
}

#[test]
fn the_edge_to_mend_first_is_the_one_that_multiplies_most_and_then_the_innermost() {
    assert_eq!(last(&chain(10.0, 3, |edge| edge)).mend_first, Some(2));
    let more = |edge: Edge| if edge.to() == "tier 1" { edge.policy(at_once(4)) } else { edge };
    let gain = last(&chain(10.0, 3, more));
    assert_eq!(gain.mend_first, Some(1));
    assert!((gain.gain_after_mending - gain.gain / 4.0).abs() < 1e-9, "{gain:?}");
    assert_eq!(last(&chain(50.0, 2, |edge| edge.policy(at_once(1)))).mend_first, None);
}

#[test]
fn a_service_passes_on_no_more_than_it_can_serve() {
    // 100 requests per second make 900 attempts at the second service, which serves 500 of them.
    let gain = last(&chain(100.0, 3, |edge| edge));
    assert!((gain.gain - 3.0).abs() < 1e-9, "{gain:?}");
}

#[test]
fn a_queue_that_cannot_be_late_does_not_close_the_cycle() {
    let one = |service: Service| {
        let edge = Edge::from_users("server").policy(at_once(3));
        let service = service.service_time(Duration::from_millis(5));
        last(&System::builder(100.0).service(service).edge(edge).build().unwrap())
    };
    let server = || Service::new("server").backlog(600);
    assert!(one(server()).sustains_overload());
    assert!(!one(server().backlog(190)).is_closed);
    assert!(!one(server().stale_work(StaleWork::DropHopeless)).is_closed);
    assert!(one(server().stale_work(StaleWork::DropExpired)).is_closed);
}

#[test]
fn a_cache_counts_as_cold_if_a_trigger_empties_it() {
    use stagger_sim::system::Cache;
    let system = System::builder(1_000.0).service(Service::new("database").backlog(3_000));
    let system = system.edge(Edge::from_users("database").cache(Cache::new(0.9, 1_000)));
    let warm = last(&system.clone().trigger(Trigger::stall()).build().unwrap());
    let cold = last(&system.trigger(Trigger::cold()).build().unwrap());
    assert!((warm.gain - 0.1).abs() < 1e-9 && (cold.gain - 1.0).abs() < 1e-9, "{warm:?} {cold:?}");
}
