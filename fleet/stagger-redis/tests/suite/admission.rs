//! An admission that several servers share, with a real store.

use core::time::Duration;
use std::sync::Arc;

use stagger::admission::{AdmissionControl as _, Admit, Secret};
use stagger::{Instant, Seed};
use stagger_kit::{Port, Signal};
use stagger_redis::{Fleet, SettingsProblem, SharedAdmission};

use super::sharing::until;
use super::worker::{Redis, documented_user};

const SECRET: Secret = Secret::new(*b"of all servers..");
/// The guard reads its own clock.
const NOW: Instant = Instant::ZERO;

fn servers<const N: usize>(url: &str, rate: u32) -> [(Fleet, SharedAdmission); N] {
    [(); N].map(|()| {
        let fleet = Fleet::builder(url, N as u32).namespace("shop").build().unwrap();
        let admission = fleet.admission("front", rate, SECRET).build().unwrap();
        (fleet, admission)
    })
}

/// Lets clients connect at once through a balancer that chooses at random, and return when they are told to. Returns
/// the attempts of each, and how long all took.
async fn herd(servers: &[(Fleet, SharedAdmission)], clients: u64) -> (Vec<u32>, Duration) {
    let servers: Arc<[_]> = servers.iter().map(|(_, admission)| admission.clone()).collect();
    let begun = tokio::time::Instant::now();
    let client = |id: u64| {
        let (servers, seed) = (Arc::clone(&servers), Seed::new(5).for_call(id));
        async move {
            let (mut attempts, mut token) = (0, None);
            loop {
                let server = &servers[seed.draw(u64::from(attempts)) as usize % servers.len()];
                attempts += 1;
                let answer = token.map_or_else(|| server.try_admit(NOW), |token| server.admit_reserved(&token, NOW));
                match answer {
                    Admit::Now => return attempts,
                    Admit::At(reservation) => {
                        token = Some(reservation.token);
                        tokio::time::sleep(reservation.after).await;
                    }
                    answer => panic!("{answer:?}"),
                }
            }
        }
    };
    let tasks: Vec<_> = (0..clients).map(|id| tokio::spawn(client(id))).collect();
    let mut attempts = Vec::new();
    for task in tasks {
        attempts.push(task.await.unwrap());
    }
    (attempts, begun.elapsed())
}

#[tokio::test]
async fn hundreds_of_clients_are_admitted_by_three_servers_at_their_second_attempt() {
    let redis = Redis::start(&[]);
    let servers = servers::<3>(&redis.url(), 300);
    let shares = |share: f64| servers.iter().all(|(_, server)| (server.snapshot().share - share).abs() < 0.001);
    until(|| servers.iter().all(|(fleet, _)| fleet.snapshot().processes == 3)).await;
    assert!(shares(1.0 / 3.0));
    let (attempts, took) = herd(&servers, 600).await;
    assert!(attempts.iter().all(|attempts| *attempts <= 2), "{:?}", attempts.iter().max());
    // The burst of 30, and 570 at 300 a second.
    assert!((1_800..2_400).contains(&took.as_millis()), "{took:?}");
    for (_, server) in &servers {
        let seen = server.snapshot();
        assert!((160..=240).contains(&seen.admitted) && seen.deferred == 0, "{seen:?}");
    }
    // One leaves: its share goes to the others.
    let [(fleet, admission), (one, first), (two, second)] = servers;
    drop(admission);
    fleet.close().await;
    until(|| [&first, &second].iter().all(|server| (server.snapshot().share - 0.5).abs() < 0.001)).await;
    drop((one, two));
}

#[tokio::test]
async fn a_store_that_is_away_or_stops_rejects_and_delays_no_client() {
    let port = Port::reserve().unwrap();
    let away = servers::<2>(&format!("redis://{}", port.address()), 400);
    let (attempts, took) = herd(&away, 200).await;
    assert!(attempts.iter().all(|attempts| *attempts <= 2), "{:?}", attempts.iter().max());
    assert!(took < Duration::from_millis(900), "{took:?}");
    let mut redis = Redis::start(&[]);
    let stopped = servers::<2>(&redis.url(), 400);
    until(|| stopped.iter().all(|(fleet, _)| fleet.snapshot().processes == 2)).await;
    redis.server.running().unwrap().signal(Signal::STOP).unwrap();
    let (attempts, took) = herd(&stopped, 400).await;
    assert!(attempts.iter().all(|attempts| *attempts <= 2), "{:?}", attempts.iter().max());
    assert!(took < Duration::from_millis(1_400), "{took:?}");
}

#[tokio::test]
async fn a_reservation_is_of_servers_with_one_secret_and_the_secret_is_not_shown() {
    let port = Port::reserve().unwrap();
    let url = format!("redis://{}", port.address());
    let fleet = |secret: &[u8; 16]| {
        let fleet = Fleet::builder(&url, 1).build().unwrap();
        let admission = fleet.admission("front", 1, Secret::new(*secret)).burst(1).build().unwrap();
        (fleet, admission)
    };
    let [(_one, first), (_two, same), (_three, other)] =
        [b"of all servers..", b"of all servers..", b"of another fleet"].map(fleet);
    let Admit::At(reservation) = first.reserve(NOW) else { panic!("there is room") };
    assert!(matches!(same.admit_reserved(&reservation.token, NOW), Admit::At(same) if same.token == reservation.token));
    while other.try_admit(NOW) == Admit::Now {}
    assert!(matches!(other.admit_reserved(&reservation.token, NOW), Admit::Full(_)));
    for text in [format!("{first:?}"), format!("{:?}", _one.admission("front", 1, SECRET))] {
        assert!(!text.contains("servers..") && !text.contains("111, 102"), "{text}");
    }
}

#[tokio::test]
async fn settings_of_an_admission_that_cannot_work_are_rejected() {
    let fleet = Fleet::builder("redis://127.0.0.1:1", 1).build().unwrap();
    let error = fleet.admission("", 0, Secret::new([0; 16])).burst(0).weight(0).build().unwrap_err();
    let want = [
        SettingsProblem::EmptyName,
        SettingsProblem::Rate(0),
        SettingsProblem::Burst,
        SettingsProblem::Weight(0),
        SettingsProblem::Secret,
    ];
    assert_eq!(error.problems(), want);
    let error = fleet.admission("t", 10, SECRET).max_here(0).max_wait(Duration::ZERO).build().unwrap_err();
    assert_eq!(error.problems(), [SettingsProblem::MaxWait(Duration::ZERO), SettingsProblem::MaxHere(0)]);
    let _first = fleet.admission("t", 10, SECRET).build().unwrap();
    let error = fleet.admission("t", 20, SECRET).build().unwrap_err();
    assert_eq!(error.problems(), [SettingsProblem::OtherLimits]);
}

#[tokio::test]
async fn an_admission_needs_the_documented_commands_only_and_its_keys_expire() {
    let redis = Redis::start(&[]);
    let servers = servers::<2>(&documented_user(&redis, "An admission needs "), 100);
    until(|| servers.iter().any(|(fleet, _)| fleet.snapshot().failures > 0 || fleet.snapshot().processes == 2)).await;
    let [(one, first), (two, second)] = servers;
    drop(first);
    one.close().await;
    until(|| second.snapshot().share > 0.9).await;
    assert_eq!(two.snapshot().failures, 0);
    for kind in ["admission", "servers"] {
        let redis::Value::Int(ttl) = redis.run(&format!("PTTL {{stagger:shop}}:front:{kind}")) else {
            panic!("{kind}")
        };
        assert!((3_500_000..=3_600_000).contains(&ttl), "{kind}: {ttl}");
    }
}
