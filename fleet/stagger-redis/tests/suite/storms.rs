//! What a budget is for: the store is lost at a bad moment, and processes start again and again while it is away.

use core::time::Duration;
use std::thread::sleep;
use std::time::Instant;

use stagger_kit::{Port, Signal};

use super::worker::{CAPACITY, COST, Calls, Log, REFILL, Redis, Workers};

const EIGHT: [Calls; 8] = [Calls::Fail; 8];

fn millis(millis: u64) {
    // The claim is about a real server: something happens to it in the middle.
    sleep(Duration::from_millis(millis));
}

fn assert_one_bucket(log: &Log, context: &str) {
    println!("{context}");
    log.print();
    assert!(log.overshoot(REFILL) <= 0.0, "{context}: {}", log.overshoot(REFILL));
}

/// Kills the store so many milliseconds after the start of all processes.
fn assert_an_early_loss_costs_nothing(after: u64) {
    let mut redis = Redis::start(&[]);
    let workers = Workers::start(&redis.url(), 6.0, &EIGHT);
    millis(after);
    redis.server.kill();
    assert_one_bucket(&Log::sum(&workers.finish()), &format!("killed after {after} ms"));
}

#[test]
fn a_store_that_is_lost_while_processes_have_their_first_leases_costs_nothing() {
    for after in [60, 120, 200] {
        assert_an_early_loss_costs_nothing(after);
    }
}

#[test]
#[ignore = "takes minutes: cargo nextest run -p stagger-redis --all-features --run-ignored only --no-capture storms"]
fn a_store_that_is_lost_at_any_of_the_first_moments_costs_nothing() {
    for after in [30, 60, 90, 120, 160, 200, 250] {
        for _ in 0..10 {
            assert_an_early_loss_costs_nothing(after);
        }
    }
    for _ in 0..10 {
        let mut redis = Redis::start(&[]);
        let workers = Workers::start(&redis.url(), 10.0, &EIGHT);
        millis(100);
        redis.server.running().unwrap().signal(Signal::STOP).unwrap();
        millis(5_000);
        redis.server.running().unwrap().signal(Signal::CONT).unwrap();
        assert_one_bucket(&Log::sum(&workers.finish()), "stopped from 0.1 s to 5.1 s");
    }
}

/// Replaces all processes every two seconds.
fn crash_loop(workers: &mut Workers, seconds: u64) {
    for _ in 0..seconds / 2 {
        millis(2_000);
        (0..EIGHT.len()).for_each(|index| workers.replace(index));
    }
}

#[test]
fn processes_that_start_again_and_again_without_the_store_have_no_new_budget() {
    let port = Port::reserve().unwrap();
    let begun = Instant::now();
    let mut workers = Workers::start(&format!("redis://{}", port.address()), 5.0, &EIGHT);
    crash_loop(&mut workers, 6);
    let log = Log::sum(&workers.finish());
    assert_one_bucket(&log, "a crash loop");
    // The last ones live for five seconds, of which they have the refill of two. On a busy machine, all take longer.
    let late = begun.elapsed().saturating_sub(Duration::from_secs(6 + 5));
    let refilled = (2.0 + late.as_secs_f64()) * f64::from(REFILL / COST);
    assert!(log.retries.len() as f64 <= refilled.ceil(), "{} of {refilled}", log.retries.len());
}

#[test]
fn a_rolling_restart_without_the_store_has_no_new_budget() {
    let mut redis = Redis::start(&[]);
    let mut workers = Workers::start(&redis.url(), 14.0, &EIGHT);
    millis(2_000);
    redis.server.running().unwrap().signal(Signal::STOP).unwrap();
    for index in 0..EIGHT.len() {
        millis(500);
        workers.replace(index);
    }
    redis.server.running().unwrap().signal(Signal::CONT).unwrap();
    let log = Log::sum(&workers.finish());
    assert_one_bucket(&log, "a rolling restart");
    // It goes on when the store is back.
    assert!(log.between(9.0, 14.0) as u32 >= 5 * REFILL / COST / 2, "{}", log.between(9.0, 14.0));
}

#[test]
#[ignore = "takes minutes: cargo nextest run -p stagger-redis --all-features --run-ignored only --no-capture storms"]
fn a_crash_loop_of_half_a_minute_without_the_store_has_no_new_budget() {
    let mut redis = Redis::start(&[]);
    let mut workers = Workers::start(&redis.url(), 6.0, &EIGHT);
    millis(1_000);
    redis.server.running().unwrap().signal(Signal::STOP).unwrap();
    crash_loop(&mut workers, 30);
    redis.server.running().unwrap().signal(Signal::CONT).unwrap();
    let log = Log::sum(&workers.finish());
    assert_one_bucket(&log, "a crash loop with the store away for 30 s");
    let allowed = (CAPACITY + REFILL * 36) / COST;
    println!("{} of {allowed} retries", log.retries.len());
}

/// Returns which part was used of what one bucket allows in 20 s.
fn used_in_20_s(happens: impl FnOnce(&Redis)) -> f64 {
    let redis = Redis::start(&[]);
    let workers = Workers::start(&redis.url(), 20.0, &EIGHT);
    millis(10_000);
    happens(&redis);
    let log = Log::sum(&workers.finish());
    log.print();
    log.retries.len() as f64 * f64::from(COST) / f64::from(CAPACITY + REFILL * 20)
}

#[test]
#[ignore = "takes minutes: cargo nextest run -p stagger-redis --all-features --run-ignored only --no-capture storms"]
fn what_is_allowed_is_used_also_if_the_data_are_lost() {
    for _ in 0..3 {
        let (calm, flushed) = (used_in_20_s(|_| {}), used_in_20_s(|redis| _ = redis.run("FLUSHALL")));
        println!("{:.1} % used, {:.1} % with a FLUSHALL", calm * 100.0, flushed * 100.0);
        assert!(calm >= 0.9 && flushed >= 0.85, "{calm}, {flushed}");
    }
}

/// Jain's index of fairness: 1 if all have the same, 1/n if one has all.
fn fairness(counts: &[f64]) -> f64 {
    let (sum, squares) = (counts.iter().sum::<f64>(), counts.iter().map(|count| count * count).sum::<f64>());
    sum * sum / (counts.len() as f64 * squares)
}

/// Lets so many processes make 20 calls a second that fail.
fn assert_a_fair_share(processes: usize, seconds: f64) {
    let redis = Redis::start(&[]);
    let calls = vec![Calls::Fail; processes];
    let logs = Workers::start_with(&redis.url(), seconds, &calls, &[("FLEET_RATE", "20")]).finish();
    let log = Log::sum(&logs);
    assert_one_bucket(&log, &format!("{processes} processes"));
    let counts: Vec<_> = logs.iter().map(|log| log.retries.len() as f64).collect();
    let used = log.retries.len() as f64 * f64::from(COST) / (f64::from(CAPACITY) + f64::from(REFILL) * seconds);
    let none = counts.iter().filter(|count| **count == 0.0).count();
    println!("Jain {:.3}, {none} with none, {:.1} % used", fairness(&counts), 100.0 * used);
    println!("at most {:?} reports", log.reports.iter().max());
    assert_eq!(none, 0, "{counts:?}");
    assert!(fairness(&counts) >= 0.9, "{} of {counts:?}", fairness(&counts));
    assert!(used >= 0.95, "{used}");
    assert!(log.reports.iter().all(|reports| *reports as f64 <= seconds + 3.0), "{:?}", log.reports);
}

#[test]
#[ignore = "takes minutes: cargo nextest run -p stagger-redis --all-features --run-ignored only --no-capture storms"]
fn every_process_of_a_large_fleet_has_its_share() {
    for processes in [64, 16, 8, 32] {
        assert_a_fair_share(processes, 60.0);
    }
}
