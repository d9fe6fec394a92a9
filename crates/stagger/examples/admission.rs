//! Admission control: a fleet loses its connection at one instant. It reconnects to a server that assigns reservations,
//! and to one that only rejects. On virtual time.
//!
//! ```sh
//! cargo run -p stagger --example admission
//! ```

use core::cmp::Reverse;
use core::time::Duration;
use std::collections::BinaryHeap;

use stagger::admission::{Admission, AdmissionError, Admit, ReservationToken, random_secret};
use stagger::{Instant, Policy, Seed, policy};

const CLIENTS: u64 = 5_000;
/// Clients that the server admits per second.
const RATE: u32 = 500;
const BACKOFF: Policy = policy!(exponential(ms(500), secs(30)).unlimited_attempts());

struct Return {
    attempts: u64,
    after: Duration,
}

/// Simulates the clients: each is admitted, or rejected and tries again later.
fn come_back(
    server: impl Fn(u64, u32, Option<ReservationToken>, Instant) -> Result<(), (Duration, Option<ReservationToken>)>,
) -> Return {
    let start = Instant::from_nanos(1_000_000_000);
    let mut arrivals: BinaryHeap<_> = (0..CLIENTS).map(|id| Reverse((start, id, 0))).collect();
    let (mut attempts, mut last) = (0, start);
    let mut tokens = vec![None; CLIENTS as usize];
    while let Some(Reverse((now, id, rejections))) = arrivals.pop() {
        attempts += 1;
        match server(id, rejections, tokens[id as usize].take(), now) {
            Ok(()) => last = last.max(now),
            Err((wait, token)) => {
                tokens[id as usize] = token;
                arrivals.push(Reverse((now.saturating_add(wait), id, rejections + 1)));
            }
        }
    }
    Return { attempts, after: last.saturating_since(start) }
}

fn main() -> Result<(), AdmissionError> {
    // A rejected client backs off on its own. The server admits any client while it has capacity.
    let capacity = Admission::per_second(RATE).burst(1).build(random_secret())?;
    let backoff = come_back(|id, rejections, _, now| match capacity.try_admit(now) {
        Admit::Now => Ok(()),
        _ => Err((BACKOFF.delay(rejections + 1, Seed::new(1).for_call(id)).unwrap_or_default(), None)),
    });

    // A client that is not admitted gets a reservation, and returns at that time.
    let admission = Admission::per_second(RATE).burst(1).build(random_secret())?;
    let reserved = come_back(|_, _, token, now| {
        let answer = match token {
            Some(token) => admission.admit_reserved(&token, now),
            None => admission.try_admit(now),
        };
        match answer {
            Admit::At(reservation) => Err((reservation.after, Some(reservation.token))),
            Admit::Full(after) => Err((after, None)),
            _ => Ok(()),
        }
    });

    println!("{CLIENTS} clients, {RATE} per second: {} s at best", CLIENTS / u64::from(RATE));
    for (name, fleet) in [("backoff only", &backoff), ("reservations", &reserved)] {
        println!(
            "{name:12}  {:5.2} attempts per client, all admitted after {:.1?}",
            fleet.attempts as f64 / CLIENTS as f64,
            fleet.after
        );
    }
    assert!(reserved.attempts <= 2 * CLIENTS);
    assert!(reserved.after <= Duration::from_secs(10));
    assert!(backoff.attempts > 3 * CLIENTS && backoff.after > 2 * reserved.after);
    Ok(())
}
