//! Rare collapse of whole systems. The estimator itself is tested with a chain whose times are known exactly.

use core::time::Duration;

use stagger_core::Seed;
use stagger_sim::Progress;
use stagger_sim::system::{CollapseTime, Edge, RareCollapse, Service, System, SystemPart, Trigger};

use super::one_server::{at_once, budgeted};

const fn seconds(seconds: u64) -> Duration {
    Duration::from_secs(seconds)
}

/// Returns the server of cells 93 and 95: ten requests per second, callers who give up after 3 s and make five attempts.
fn server(rate: f64, backlog: u32) -> System {
    let service = Service::new("server").service_time(Duration::from_millis(100)).backlog(backlog);
    let edge = Edge::from_users("server").one_way(Duration::ZERO).timeout(seconds(3)).policy(at_once(5));
    System::builder(rate).service(service).edge(edge).build().unwrap()
}

fn time(system: &System, how: RareCollapse) -> CollapseTime {
    how.run(system, Seed::new(1), &Progress::new()).unwrap().unwrap()
}

/// Returns the mean in seconds, and half of the width of its interval relative to it.
fn mean(time: CollapseTime) -> (f64, f64) {
    let (mean, low, high) = (time.mean.unwrap(), time.low, time.high.unwrap());
    (mean.as_secs_f64(), (high - low).as_secs_f64() / mean.as_secs_f64() / 2.0)
}

/// Cell 95: the first bad window begins after 517 s, with a standard error of 51 s.
#[test]
fn collapses_by_noise_come_as_often_as_in_the_reference() {
    let (got, width) = mean(time(&server(9.5, 100), RareCollapse::new().replications(8).trials(50)));
    assert!((got - 517.0).abs() < 4.0 * 51.0_f64.hypot(width / 2.0 * got), "{got} s, expected 517 s");
}

#[test]
fn splitting_agrees_with_plain_runs_where_both_work() {
    let system = server(9.0, 100);
    let split = time(&system, RareCollapse::new().replications(8).trials(50));
    let plain = time(&system, RareCollapse::new().replications(8).plain(seconds(40_000)));
    let ((split_mean, split_width), (plain_mean, plain_width)) = (mean(split), mean(plain));
    let chance = 2.0 * split_width.hypot(plain_width);
    assert!(chance < 1.6, "{split}, {plain}");
    assert!((split_mean / plain_mean).ln().abs() < chance, "{split}; in plain runs {plain}");
    assert!(split.levels > 2 && plain.levels == 0, "{split:?} {plain:?}");
}

#[test]
fn collapses_are_rarer_at_a_lower_load() {
    let [low, high] = [7.5, 8.5].map(|rate| time(&server(rate, 100), RareCollapse::new().replications(4).trials(100)));
    assert!(low.low > 5 * high.high.unwrap(), "{low} at 7.5/s, {high} at 8.5/s");
}

/// Checks a queue that is shorter than the time limit of its callers, which has no bad state.
#[test]
fn a_short_queue_does_not_collapse() {
    let time = time(&server(8.5, 25), RareCollapse::new().replications(4).trials(50));
    assert_eq!((time.mean, time.high), (None, None), "{time}");
    assert!(time.low > seconds(86_400), "{time}");
}

#[test]
fn triggers_are_ignored_and_guards_are_reported() {
    let how = RareCollapse::new().replications(2).trials(50);
    let system = server(9.5, 100);
    let stalled = system.to_builder().trigger(Trigger::stall()).build().unwrap();
    assert_eq!(time(&system, how), time(&stalled, how));
    let service = Service::new("server");
    let guarded = System::builder(9.5).service(service).edge(budgeted(Edge::from_users("server"))).build().unwrap();
    let error = how.run(&guarded, Seed::new(1), &Progress::new()).unwrap_err();
    assert_eq!(error.problems()[0].part(), SystemPart::Edge(0), "{error}");
}

#[test]
fn a_cancelled_estimate_returns_nothing() {
    let progress = Progress::new();
    progress.cancel_token().cancel();
    assert_eq!(RareCollapse::new().run(&server(8.0, 100), Seed::new(1), &progress), Ok(None));
}
