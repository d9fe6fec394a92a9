//! Eight processes and one store: the budget is that of one bucket, whatever happens to the store.

use core::time::Duration;
use std::thread::sleep;

use stagger_kit::{Port, Signal};

use super::worker::{CAPACITY, COST, Calls, Log, REFILL, Redis, Workers};

const EIGHT: [Calls; 8] = [Calls::Fail; 8];

fn budget(seconds: f64) -> f64 {
    (f64::from(CAPACITY) + f64::from(REFILL) * seconds) / f64::from(COST)
}

fn seconds(seconds: f64) {
    // The claim is about a real server: something happens to it in the middle.
    sleep(Duration::from_secs_f64(seconds));
}

/// No request for a retry waits for anything.
fn assert_no_call_waits(log: &Log) {
    assert!(log.slowest.iter().all(|micros| *micros < 1_000), "{:?}", log.slowest);
}

#[test]
fn f1_the_retries_of_eight_processes_are_those_of_one_bucket() {
    let redis = Redis::start(&[]);
    let log = Log::sum(&Workers::start(&redis.url(), 8.0, &EIGHT).finish());
    log.print();
    let retries = log.retries.len() as f64;
    assert!(retries <= budget(8.0) + 1.0 && retries >= 0.85 * budget(8.0), "{retries} of {}", budget(8.0));
    assert!(log.overshoot(REFILL) <= 0.0, "{}", log.overshoot(REFILL));
    assert!(log.reports.iter().all(|reports| *reports <= 8 + 3), "{:?}", log.reports);
    assert_eq!((log.reports.len(), log.losses.iter().sum::<u64>()), (8, 0));
    assert_no_call_waits(&log);
}

/// Stops the store for so many seconds.
fn assert_a_store_that_hangs_is_replaced(length: f64) {
    let mut redis = Redis::start(&[]);
    let end = 3.0 + length;
    let workers = Workers::start(&redis.url(), end + 4.0, &EIGHT);
    seconds(3.0);
    redis.server.running().unwrap().signal(Signal::STOP).unwrap();
    seconds(length);
    redis.server.running().unwrap().signal(Signal::CONT).unwrap();
    let log = Log::sum(&workers.finish());
    log.print();
    let per_second = f64::from(REFILL) / f64::from(COST);
    assert!(log.overshoot(REFILL) <= 0.02 * f64::from(CAPACITY), "{}", log.overshoot(REFILL));
    // From a second after the end of the leases on, and after the return.
    let (alone, while_alone) = (log.between(7.0, end) as f64, end - 7.0);
    let expected = while_alone * per_second;
    assert!((0.6 * expected..=1.4 * expected).contains(&alone), "{alone} in {while_alone} seconds");
    // The bound of all retries is above. A wave would be the refill and a whole bucket, which is 3.5 times the refill
    // of four seconds. On a busy machine the refill of before, which settling has held back, is granted within them.
    let after = log.between(end, end + 4.0) as f64;
    assert!((0.5 * 4.0 * per_second..=2.0 * 4.0 * per_second).contains(&after), "{after} in four seconds");
    assert_eq!(log.losses, [1; 8]);
    assert_no_call_waits(&log);
}

#[test]
fn f2_a_store_that_hangs_is_replaced_by_local_shares_and_settles_without_a_wave() {
    assert_a_store_that_hangs_is_replaced(6.0);
}

#[test]
#[ignore = "takes half a minute: cargo nextest run -p stagger-redis --all-features --run-ignored only for_20_s"]
fn f2_a_store_that_hangs_for_20_s_settles_without_a_wave() {
    assert_a_store_that_hangs_is_replaced(20.0);
}

#[test]
fn f3_without_a_store_the_local_shares_are_the_budget() {
    let port = Port::reserve().unwrap();
    let log = Log::sum(&Workers::start(&format!("redis://{}", port.address()), 7.0, &EIGHT).finish());
    log.print();
    // Each begins with nothing, and with its share of the refill after the length of a lease.
    let (retries, refilled) = (log.retries.len() as f64, 4.0 * f64::from(REFILL) / f64::from(COST));
    assert!(retries <= refilled && retries >= 0.7 * refilled, "{retries} of {refilled}");
    assert!(log.overshoot(REFILL) <= 0.0, "{}", log.overshoot(REFILL));
    assert_eq!((log.losses, log.reports), (vec![1; 8], vec![0; 8]));
    assert_no_call_waits(&Log { retries: vec![], reports: vec![], losses: vec![], slowest: log.slowest });
}

#[test]
fn f5_a_single_process_that_fails_has_nearly_the_whole_budget() {
    let redis = Redis::start(&[]);
    let mut calls = [Calls::Succeed; 8];
    calls[0] = Calls::Fail;
    let log = Log::sum(&Workers::start(&redis.url(), 8.0, &calls).finish());
    log.print();
    let retries = log.retries.len() as f64;
    assert!(retries >= 0.75 * budget(8.0) && retries <= budget(8.0), "{retries} of {}", budget(8.0));
}

/// Kills a process, and stops another for so many seconds.
fn assert_a_process_that_stops_leaves_its_room(length: f64) {
    let redis = Redis::start(&[]);
    let end = 2.0 + length;
    let mut workers = Workers::start(&redis.url(), end + 4.0, &EIGHT);
    seconds(2.0);
    workers.process(0).signal(Signal::KILL).unwrap();
    workers.process(1).signal(Signal::STOP).unwrap();
    seconds(length);
    workers.process(1).signal(Signal::CONT).unwrap();
    let logs = workers.finish();
    let log = Log::sum(&logs);
    log.print();
    // The stopped one may spend what it held, when the others have the room for it; the killed one took it along.
    assert!(log.overshoot(REFILL) <= f64::from(CAPACITY) / 4.0, "{}", log.overshoot(REFILL));
    // The others have the whole refill once the leases have ended.
    let per_second = f64::from(REFILL) / f64::from(COST);
    let (others, without) = (Log::sum(&logs[2..]).between(6.0, end) as f64, end - 6.0);
    assert!(others >= 0.75 * without * per_second, "{others} in {without} seconds");
    // The stopped process is back among them, without a wave.
    let later = logs[2].retries[0] + ((end + 1.0) * 1e6) as u64;
    assert!(logs[1].retries.iter().any(|at| *at > later));
    let after = log.between(end, end + 4.0) as f64;
    assert!(after <= 2.0 * 4.0 * per_second, "{after} in four seconds");
    // What the stopped process was asked for while it was stopped is late, and nothing else is.
    let slowest: Vec<_> = logs[2..].iter().flat_map(|log| &log.slowest).copied().collect();
    assert!(slowest.iter().all(|micros| *micros < 1_000), "{slowest:?}");
}

#[test]
fn a_killed_process_leaves_its_room_to_the_others_and_a_stopped_one_spends_what_it_held() {
    assert_a_process_that_stops_leaves_its_room(6.0);
}

#[test]
#[ignore = "takes half a minute: cargo nextest run -p stagger-redis --all-features --run-ignored only for_20_s"]
fn a_process_that_is_stopped_for_20_s_leaves_its_room_and_spends_what_it_held() {
    assert_a_process_that_stops_leaves_its_room(20.0);
}

#[test]
fn a_store_that_restarts_empty_or_is_flushed_grants_nothing_twice() {
    let mut redis = Redis::start(&[]);
    let workers = Workers::start(&redis.url(), 12.0, &EIGHT);
    seconds(3.0);
    redis.server.restart().unwrap();
    seconds(4.0);
    redis.run("FLUSHALL");
    let log = Log::sum(&workers.finish());
    log.print();
    assert!(log.overshoot(REFILL) <= 0.02 * f64::from(CAPACITY), "{}", log.overshoot(REFILL));
    let per_second = f64::from(REFILL) / f64::from(COST);
    let after = log.between(9.0, 12.0) as f64;
    assert!(after >= 0.5 * 3.0 * per_second, "{after} in three seconds");
    assert_eq!(log.losses, [0; 8], "the leases outlive both");
}
