//! Admission: a fleet that loses its connection in one instant, before a server that gives appointments, and before one
//! that only refuses. On virtual time.
//!
//! ```sh
//! cargo run -p stagger --example admission
//! ```

use core::cmp::Reverse;
use core::time::Duration;
use std::collections::BinaryHeap;

use stagger::{
    Instant, Policy, Seed, admission::Admission, admission::AdmissionError, admission::Admit,
    admission::ReservationToken, policy,
};

const CLIENTS: u64 = 5_000;
/// What the server takes a second.
const RATE: u32 = 500;
const BACKOFF: Policy = policy!(exponential(ms(500), secs(30)).unlimited_attempts());

struct Return {
    attempts: u64,
    after: Duration,
}

/// The clients come, are let in or sent away, and come again.
fn come_back(
    answers: impl Fn(u64, u32, Option<ReservationToken>, Instant) -> Result<(), (Duration, Option<ReservationToken>)>,
) -> Return {
    let start = Instant::from_nanos(1_000_000_000);
    let mut line: BinaryHeap<_> = (0..CLIENTS).map(|id| Reverse((start, id, 0))).collect();
    let (mut attempts, mut last) = (0, start);
    let mut tickets = vec![None; CLIENTS as usize];
    while let Some(Reverse((now, id, refusals))) = line.pop() {
        attempts += 1;
        match answers(id, refusals, tickets[id as usize].take(), now) {
            Ok(()) => last = last.max(now),
            Err((wait, ticket)) => {
                tickets[id as usize] = ticket;
                line.push(Reverse((now.saturating_add(wait), id, refusals + 1)));
            }
        }
    }
    Return { attempts, after: last.saturating_since(start) }
}

fn main() -> Result<(), AdmissionError> {
    // Who is refused backs off by itself. The server takes whoever comes while it has room.
    let room = Admission::per_second(RATE).burst(1).build()?;
    let alone = come_back(|id, refusals, _, now| match room.try_admit(now) {
        Admit::Now => Ok(()),
        _ => Err((BACKOFF.delay(refusals + 1, Seed::new(1).for_call(id)).unwrap_or_default(), None)),
    });

    // Who is refused is told when to come, and comes then.
    let admission = Admission::per_second(RATE).burst(1).build()?;
    let appointed = come_back(|_, _, ticket, now| {
        let answer = match ticket {
            Some(ticket) => admission.admit_reserved(&ticket, now),
            None => admission.try_admit(now),
        };
        match answer {
            Admit::At(appointment) => Err((appointment.after, Some(appointment.token))),
            Admit::Full(after) => Err((after, None)),
            _ => Ok(()),
        }
    });

    println!("{CLIENTS} clients, {RATE} a second: {} s at best", CLIENTS / u64::from(RATE));
    for (name, fleet) in [("backoff alone", &alone), ("appointments", &appointed)] {
        println!(
            "{name:13}  {:5.2} attempts per client, all in after {:.1?}",
            fleet.attempts as f64 / CLIENTS as f64,
            fleet.after
        );
    }
    assert!(appointed.attempts <= 2 * CLIENTS);
    assert!(appointed.after <= Duration::from_secs(10));
    assert!(alone.attempts > 3 * CLIENTS && alone.after > 2 * appointed.after);
    Ok(())
}
