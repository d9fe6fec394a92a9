//! The cost of admission control, with an arrival a millisecond and as many admissions.

use core::hint::black_box;
use core::sync::atomic::{AtomicU64, Ordering};
use core::time::Duration;
use std::sync::LazyLock;

use stagger::Instant;
use stagger::admission::{Admission, Admit, Secret};

use crate::case::{Case, Role, Table};

/// The times of arrivals, in milliseconds: those of all runs and threads, so that no two are the same.
static ARRIVALS: AtomicU64 = AtomicU64::new(1_000_000);

/// Returns the rows of admission control.
pub(super) fn cases() -> Vec<Case> {
    let row = |name, run| Case::work(Table::GuardsFailure, Role::Stagger, name, run);
    vec![
        row("Admission: a newcomer is admitted", |n| {
            static QUEUE: LazyLock<Admission> = LazyLock::new(queue);
            for now in arrivals(n) {
                black_box(&QUEUE.try_admit(now));
            }
        }),
        row("Admission: a newcomer while the queue is full", |n| {
            static FULL: LazyLock<Admission> = LazyLock::new(full);
            for _ in 0..n {
                black_box(&FULL.try_admit(START));
            }
        }),
        row("Admission: a reservation is given and redeemed", |n| {
            static QUEUE: LazyLock<Admission> = LazyLock::new(queue);
            for now in arrivals(n) {
                if let Admit::At(reservation) = QUEUE.reserve(now) {
                    let token = black_box(&reservation.token);
                    black_box(&QUEUE.admit_reserved(token, now.saturating_add(reservation.after)));
                }
            }
        })
        .note("with two seals, SipHash-2-4 of 126 instructions each"),
    ]
}

const START: Instant = Instant::from_nanos(1_000_000_000_000);

fn arrivals(count: u64) -> impl Iterator<Item = Instant> {
    let first = ARRIVALS.fetch_add(count, Ordering::Relaxed);
    (first..first + count).map(|ms| Instant::ZERO.saturating_add(Duration::from_millis(ms)))
}

fn queue() -> Admission {
    // A valid rate and a secret that is not zero.
    Admission::per_second(1_000).build(Secret::new([1; 16])).expect("valid settings")
}

/// Creates a queue in which every reservation up to the longest wait is taken.
fn full() -> Admission {
    let queue = queue();
    while !matches!(queue.reserve(START), Admit::Full(_)) {}
    queue
}
