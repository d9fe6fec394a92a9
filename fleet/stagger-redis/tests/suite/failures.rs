//! Failures of the way to the store: a cut network, and a failover to a replica.

use core::time::Duration;
use std::thread::sleep;

use stagger_redis::Fleet;

use super::proxy::{Proxy, Way};
use super::sharing::until;
use super::worker::{CAPACITY, COST, Calls, Log, REFILL, Redis, Workers};

const EIGHT: [Calls; 8] = [Calls::Fail; 8];

fn seconds(seconds: f64) {
    // The claim is about a real server: something happens to it in the middle.
    sleep(Duration::from_secs_f64(seconds));
}

#[test]
fn a_network_cut_leaves_the_budget_of_one_bucket() {
    let redis = Redis::start(&[]);
    let proxy = Proxy::start(redis.port.address());
    let workers = Workers::start(&proxy.url(), 13.0, &EIGHT);
    seconds(3.0);
    proxy.lead(Way::Nowhere);
    seconds(6.0);
    proxy.lead(Way::To(redis.port.address()));
    proxy.close();
    let log = Log::sum(&workers.finish());
    log.print();
    assert!(log.overshoot(REFILL) <= 0.02 * f64::from(CAPACITY), "{}", log.overshoot(REFILL));
    let per_second = f64::from(REFILL) / f64::from(COST);
    let alone = log.between(7.0, 9.0) as f64;
    assert!((0.6 * 2.0 * per_second..=1.4 * 2.0 * per_second).contains(&alone), "{alone} in two seconds");
    assert_eq!(log.losses, [1; 8]);
    assert!(log.slowest.iter().all(|micros| *micros < 1_000), "{:?}", log.slowest);
}

#[test]
fn a_failover_to_a_replica_keeps_the_balance() {
    let mut primary = Redis::start(&[]);
    let port = primary.port.number().to_string();
    let replica = Redis::start(&["--replicaof", "127.0.0.1", &port, "--repl-diskless-sync-delay", "0"]);
    let proxy = Proxy::start(primary.port.address());
    let workers = Workers::start(&proxy.url(), 10.0, &EIGHT);
    seconds(4.0);
    primary.server.kill();
    replica.run("REPLICAOF NO ONE");
    proxy.lead(Way::To(replica.port.address()));
    proxy.close();
    let log = Log::sum(&workers.finish());
    log.print();
    assert!(log.overshoot(REFILL) <= 0.02 * f64::from(CAPACITY), "{}", log.overshoot(REFILL));
    let per_second = f64::from(REFILL) / f64::from(COST);
    let after = log.between(6.0, 10.0) as f64;
    // 24 were measured, and 23 beside other tests.
    assert!(after >= 0.4 * 4.0 * per_second, "{after} in four seconds");
    assert_eq!(log.losses, [0; 8], "the leases outlive the failover");
}

/// The task of a process whose store is in another region.
#[tokio::test]
async fn a_store_that_is_far_away_is_reached_with_a_longer_limit_for_its_replies() {
    let redis = Redis::start(&[]);
    let proxy = Proxy::start(redis.port.address());
    // A round trip of 300 ms.
    proxy.lead(Way::Far(redis.port.address(), Duration::from_millis(150)));
    let url = proxy.url();
    let build = || Fleet::builder(&url, 1).patience(Duration::from_secs(3));
    let (near, far) = (build().build().unwrap(), build().reply_limit(Duration::from_millis(900)).build().unwrap());
    let tokens = [&near, &far].map(|fleet| fleet.tokens("t").build().unwrap());
    until(|| far.snapshot().answered >= 5).await;
    assert_eq!((far.snapshot().losses, far.snapshot().failures), (0, 0));
    assert!(!near.snapshot().is_leased && near.snapshot().failures > 3, "{:?}", near.snapshot());
    drop(tokens);
}
