//! Published thresholds, found by a search: its interval is within 1 % of them.

use core::time::Duration;

use stagger_core::policy;
use stagger_sim::Progress;
use stagger_sim::system::{
    Arrivals, Cache, Edge, NestedCalls, Search, Service, ServiceTimes, StaleWork, System, SystemBuilder, Trigger,
};

use super::noise::{four_workers, moonpool};
use super::one_server::{at_once, budgeted};
use super::table::runs;

const fn seconds(seconds: u64) -> Duration {
    Duration::from_secs(seconds)
}

fn server(rate: f64, capacity: f64, backlog: u32, edge: Edge, trigger: Trigger) -> SystemBuilder {
    let service = Service::new("server").service_time(Duration::from_secs_f64(1.0 / capacity)).backlog(backlog);
    System::builder(rate).service(service).edge(edge).trigger(trigger).horizon(seconds(1_220))
}

fn edge() -> Edge {
    Edge::from_users("server").policy(at_once(3))
}

/// Returns the chain of a published threshold, with these settings of all edges and services.
fn chain(rate: f64, names: &[&str], edges: impl Fn(Edge) -> Edge, stale: StaleWork) -> System {
    let mut system = System::builder(rate).trigger(Trigger::stall()).horizon(seconds(320));
    for (nth, &name) in names.iter().enumerate() {
        let from = if nth == 0 { Edge::from_users(name) } else { Edge::between(names[nth - 1], name) };
        let service = Service::new(name).service_time(Duration::from_millis(2)).backlog(1_500).stale_work(stale);
        system = system.service(service).edge(edges(from.policy(at_once(3))));
    }
    system.build().unwrap()
}

/// Checks that one border lies within 1 % of the published pair of values, or within the chance of these few seeds.
fn check(name: &str, [low, high]: [f64; 2], tolerance: f64, at: impl Fn(f64) -> System) {
    let found = Search::between(0.8 * low, 1.2 * high).intervals(4).seeds(6);
    let found = found.run(|value| Ok(at(value)), &Progress::new()).unwrap().unwrap();
    assert_eq!(found.borders.len(), 1, "{name}: {found:?}");
    let border = found.borders[0];
    assert!(border.is_worse_above, "{name}");
    let is_near = border.half.high >= low * (1.0 - tolerance) && border.half.low <= high * (1.0 + tolerance);
    assert!(is_near, "{name}: {:?}, expected {low} to {high}", border.half);
}

/// Checks the share of runs that stay down at a published value, of 16 seeds each, where it changes slowly with the
/// value.
fn check_share(name: &str, system: &System, want: f64) {
    let (got, seeds) =
        (runs(system, 16).iter().filter(|run| run.state_at_horizon().is_down()).count() as f64 / 16.0, 16.0);
    let both = f64::midpoint(got, want);
    let chance = 4.0 * (both * (1.0 - both) * 2.0 / seeds).sqrt() + 1.0 / seeds;
    assert!((got - want).abs() <= chance && got > 0.0 && got < 1.0, "{name}: {got} are down, expected {want}");
}

#[test]
fn thresholds_of_one_server_match_the_reference() {
    let stall = Trigger::stall;
    // T1: Bronson et al., HotOS 2021.
    let hotos = |rate| server(rate, 300.0, 3_000, edge().policy(at_once(2)), stall()).horizon(seconds(1_820)).build();
    check("T1", [149.22, 149.61], 0.01, |rate| hotos(rate).unwrap());
    let full = policy!(exponential(secs(1), secs(20)).max_attempts(3));
    check("T3", [67.246, 67.539], 0.01, |rate| server(rate, 200.0, 600, edge().policy(full), stall()).build().unwrap());
    let spike = Trigger::spike(3.0).lasting(seconds(5));
    check_share("T5", &server(80.723, 200.0, 600, edge(), spike).build().unwrap(), 0.44);
    check("T11", [208.48, 208.85], 0.01, |rate| server(rate, 200.0, 190, edge(), stall()).build().unwrap());
    check("T7", [199.2, 199.52], 0.01, |rate| server(rate, 200.0, 600, budgeted(edge()), stall()).build().unwrap());
}

#[test]
fn thresholds_of_caches_match_the_reference() {
    // T13: the look-aside cache of Bronson et al., HotOS 2021.
    for (name, keys, want) in [("T13", 10_000_000, [301.56, 302.15]), ("T15", 10_000, [372.07, 373.29])] {
        check(name, want, 0.01, |rate| {
            let edge = Edge::from_users("server").cache(Cache::new(0.9, keys));
            server(rate, 300.0, 3_000, edge, Trigger::cold()).build().unwrap()
        });
    }
}

#[test]
fn thresholds_of_chains_match_the_reference() {
    let tiers = ["gateway", "orders", "database"];
    let first_only = |edge: Edge| edge.nested(NestedCalls::FirstOnly);
    check_share("T17", &chain(27.094, &tiers, |edge| edge, StaleWork::Done), 0.38);
    check("T19", [71.422, 72.383], 0.02, |rate| chain(rate, &tiers, first_only, StaleWork::Done));
    check("T21", [226.25, 228.09], 0.02, |rate| chain(rate, &tiers, |edge| edge, StaleWork::DropHopeless));
    check("T23", [56.914, 57.266], 0.02, |rate| chain(rate, &tiers[..2], |edge| edge, StaleWork::Done));
}

#[test]
fn a_server_that_drops_hopeless_work_stays_up_beyond_its_capacity() {
    // T9: nothing up to 205/s was down, for a capacity of 200/s.
    for rate in [195.0, 205.0] {
        let service = Service::new("server").service_time(Duration::from_millis(5)).backlog(600);
        let service = service.stale_work(StaleWork::DropHopeless);
        let system = System::builder(rate).service(service).edge(edge()).trigger(Trigger::stall());
        let runs = runs(&system.horizon(seconds(1_220)).build().unwrap(), 4);
        let down = runs.iter().filter(|run| run.state_at_horizon().is_down()).count();
        assert_eq!(down, 0, "T9 at {rate}/s");
    }
}

#[test]
fn thresholds_of_the_example_of_moonpool_match_the_reference() {
    // T25: counted at the start of service. Counted on arrival, the example tips between 640 and 650 ms.
    check("T25", [0.840_53, 0.841_85], 0.01, |length| {
        let trigger = Trigger::slow_from_start(4.0).at(seconds(10)).lasting(Duration::from_secs_f64(length));
        moonpool(four_workers(), trigger).build().unwrap()
    });
}

/// Returns the retry experiment of Huang et al., OSDI 2022, with a capacity of 1000 requests per second.
fn capacity_loss(rate: f64, times: ServiceTimes, share: f64, length: u64) -> SystemBuilder {
    let service = Service::new("server").service_time(Duration::from_millis(1)).backlog(Service::MAX_BACKLOG);
    let trigger = Trigger::share(share).at(seconds(60)).lasting(seconds(length));
    let edge = edge().one_way(Duration::ZERO).timeout(seconds(3)).policy(at_once(5));
    let system = System::builder(rate).service(service.service_times(times)).edge(edge).trigger(trigger);
    system.horizon(seconds(360))
}

#[test]
fn thresholds_of_a_capacity_loss_match_the_reference() {
    // Nothing is random: one seed is enough, and the tolerance is that of the printed figures.
    for (name, length, [up, down]) in [("T27", 10, [0.3630, 0.3636]), ("T29", 9, [0.3940, 0.3946])] {
        for (load, is_down) in [(up - 0.0003, false), (down + 0.0003, true)] {
            let system = capacity_loss(1_000.0 * load, ServiceTimes::Fixed, 0.2, length);
            let run = runs(&system.arrivals(Arrivals::Fixed).build().unwrap(), 1);
            assert_eq!(run[0].state_at_horizon().is_down(), is_down, "{name} at {load}");
        }
    }
    check_share("T31", &capacity_loss(391.3, ServiceTimes::Exponential, 0.225, 10).build().unwrap(), 0.44);
}

/// Checks that a longer stall is survived where a shorter one is not, if only expired work is dropped.
#[test]
fn a_search_does_not_assume_that_a_longer_stall_is_worse() {
    let at = |length| {
        let service = Service::new("server").service_time(Duration::from_millis(5)).backlog(600);
        let service = service.stale_work(StaleWork::DropExpired);
        let stall = Trigger::stall().lasting(Duration::from_secs_f64(length));
        System::builder(190.0).service(service).edge(edge()).trigger(stall).horizon(seconds(120)).build()
    };
    let found = Search::between(0.1, 10.1).seeds(4).intervals(10).precision(0.05).run(at, &Progress::new());
    let borders = found.unwrap().unwrap().borders;
    assert_eq!(borders.iter().map(|border| border.is_worse_above).collect::<Vec<_>>(), [true, false], "{borders:?}");
}
