//! Breakers that advise each other: a quorum lets the others open earlier, and opens none.

use std::sync::{Arc, Mutex};

use stagger::breaker::{BreakerState, Evidence};
use stagger::guard::{Answer, Ask, End, Guard as _, Permit};
use stagger::{Instant, Outcome};
use stagger_redis::{Fleet, FleetEvent, SharedBreaker};

use super::sharing::until;
use super::worker::{Redis, documented_user};

const NOW: Instant = Instant::ZERO;

fn fail(breaker: &SharedBreaker, times: usize) {
    for _ in 0..times {
        let Answer::Go(permit) = breaker.ask(Ask::FIRST, Permit::NONE, &NOW) else { panic!("the breaker is closed") };
        breaker.settle(permit, End::Made(&Outcome::TRANSIENT), &NOW);
    }
}

#[tokio::test]
async fn a_quorum_of_open_breakers_lets_the_others_open_on_half_of_the_evidence() {
    let mut redis = Redis::start(&[]);
    let events = Arc::new(Mutex::new(Vec::new()));
    let told = Arc::clone(&events);
    let url = redis.url();
    let third =
        Fleet::builder(&url, 3).on_event(move |event| told.lock().unwrap().push(event.clone())).build().unwrap();
    let [first, second] = [(); 2].map(|()| Fleet::builder(&url, 3).build().unwrap());
    let fleets = [first, second, third];
    let breakers: Vec<_> = fleets.iter().map(|fleet| fleet.breaker("t").build().unwrap()).collect();
    until(|| fleets.iter().all(|fleet| fleet.snapshot().processes == 3)).await;
    fail(&breakers[0], 5);
    until(|| breakers[2].snapshot().open == 1).await;
    assert!(!breakers[2].snapshot().is_advised, "one is not enough");
    fail(&breakers[1], 5);
    until(|| breakers[2].snapshot().is_advised).await;
    assert_eq!((breakers[2].local().evidence(), breakers[2].local().state()), (Evidence::Half, BreakerState::Closed));
    fail(&breakers[2], 3);
    assert_eq!(breakers[2].local().state(), BreakerState::Open);
    // It does not count, because it has opened on advice.
    let reports = fleets[2].snapshot().answered;
    until(|| fleets[2].snapshot().answered >= reports + 2).await;
    assert_eq!(breakers[2].snapshot().open, 2);
    breakers[1].local().reset(&NOW);
    until(|| !breakers[2].snapshot().is_advised).await;
    assert_eq!(breakers[2].local().evidence(), Evidence::Full);
    // Without the store there is no advice.
    breakers[2].local().reset(&NOW);
    fail(&breakers[1], 5);
    until(|| breakers[2].snapshot().is_advised).await;
    redis.server.kill();
    until(|| fleets[2].snapshot().losses == 1).await;
    assert_eq!((breakers[2].snapshot().is_advised, breakers[2].local().evidence()), (false, Evidence::Full));
    let advised = |event: &FleetEvent| matches!(event, FleetEvent::BreakerAdvised { target, open: 2 } if target == "t");
    assert_eq!(events.lock().unwrap().iter().filter(|event| advised(event)).count(), 2);
}

#[tokio::test]
async fn a_breaker_needs_the_documented_commands_only_and_its_key_expires() {
    let redis = Redis::start(&[]);
    let url = documented_user(&redis, "A breaker needs ");
    let fleets = [(); 2].map(|()| Fleet::builder(&url, 2).namespace("shop").build().unwrap());
    let breakers = [&fleets[0], &fleets[1]].map(|fleet| fleet.breaker("t").build().unwrap());
    fail(&breakers[0], 5);
    until(|| breakers[1].snapshot().open == 1 || fleets.iter().any(|fleet| fleet.snapshot().failures > 0)).await;
    let redis::Value::Int(ttl) = redis.run("PTTL {stagger:shop}:t:open") else { panic!("no number") };
    assert!((3_500_000..=3_600_000).contains(&ttl), "{ttl}");
    // One that closes, and a process that leaves.
    breakers[0].local().reset(&NOW);
    until(|| breakers[1].snapshot().open == 0).await;
    assert!(fleets.iter().all(|fleet| fleet.snapshot().failures == 0));
}
