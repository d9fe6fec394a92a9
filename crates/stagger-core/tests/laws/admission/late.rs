//! Clients of an admission that hints have brought back early too often.

use core::time::Duration;

use stagger_core::admission::{Admission, Admit};
use stagger_core::machine::ReconnectStep;
use stagger_core::{Outcome, ServerHint, profile};

use crate::laws::reconnect::link::{Link, connects, waits};
use crate::laws::support::{SECRET, at, secs};

const CLIENTS: u64 = 200;

/// Lets a client, to whom another server has sent this many hints of zero before, come back to a server whose virtual
/// queue is `ahead` long all the time. Returns how many attempts it makes until it is admitted.
fn attempts_until_admitted(seed: u64, hints_before: usize, ahead: Duration) -> u32 {
    const RATE: u32 = 100;
    let admission = Admission::per_second(RATE).burst(1).build(SECRET).unwrap();
    let mut link = Link::new(profile::WEB_SOCKET.policy()).seed(seed);
    connects(link.reconnect_now());
    for _ in 0..hints_before {
        assert_eq!(waits(link.ended(Outcome::throttled(Some(ServerHint::Reserved(Duration::ZERO))))).0, Duration::ZERO);
        link.retry();
    }
    let (mut token, mut attempts) = (None, 0);
    loop {
        attempts += 1;
        // The other clients of the fleet, each of which comes at its time.
        while admission.snapshot(at(link.now)).next_in < ahead {
            let _ = admission.reserve(at(link.now));
        }
        let admitted = match token.take() {
            Some(token) => admission.admit_reserved(&token, at(link.now)),
            None => admission.reserve(at(link.now)),
        };
        let hint = match admitted {
            Admit::Now => return attempts,
            Admit::At(reservation) => {
                token = Some(reservation.token);
                ServerHint::Reserved(reservation.after)
            }
            Admit::Full(after) => ServerHint::AtLeast(after),
            other => panic!("{other:?}"),
        };
        let step = link.ended(Outcome::throttled(Some(hint)));
        assert!(matches!(step, ReconnectStep::Wait { .. }), "{step:?}");
        link.retry();
    }
}

#[test]
fn a_client_that_comes_late_because_of_earlier_hints_keeps_its_next_reservation() {
    for seed in 0..CLIENTS {
        for hints_before in 0..3 {
            assert_eq!(
                attempts_until_admitted(seed, hints_before, secs(3)),
                2,
                "seed {seed}, {hints_before} hints before"
            );
        }
        // Late for its reservation, without it, and with the next one.
        assert!(attempts_until_admitted(seed, 3, secs(3)) <= 4, "seed {seed}");
        // As late as the policy's own delays, of at most 30 s: nothing is shortened.
        assert_eq!(attempts_until_admitted(seed, 3, secs(31)), 2, "seed {seed}");
    }
}
