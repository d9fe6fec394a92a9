//! The atomic operations that a guard needs at least.

use core::cell::Cell;
use core::hint::black_box;
use core::sync::atomic::{AtomicU64, Ordering};
use std::time::Instant;

use crate::case::{Case, Role, Table};

/// A counter on cache lines of its own.
#[repr(align(128))]
struct Alone(AtomicU64);

/// Returns the hand-written rows.
pub(super) fn cases() -> Vec<Case> {
    let row = |table, name, run| Case::work(table, Role::Floor, name, run);
    vec![
        row(Table::GuardsSuccess, "full bucket or closed breaker: one load", load),
        row(Table::GuardsSuccess, "one counter for all threads", shared_counter),
        row(Table::GuardsSuccess, "one counter per thread", own_counter),
        row(Table::GuardsFailure, "a reading of the system clock", read_clock),
        row(Table::GuardsFailure, "deduct tokens, compare-and-swap loop", withdraw),
    ]
}

fn load(iterations: u64) {
    static FULL: Alone = Alone(AtomicU64::new(500));
    let full = black_box(&FULL);
    for _ in 0..iterations {
        if full.0.load(Ordering::Relaxed) < 500 {
            black_box(full.0.fetch_add(1, Ordering::Relaxed));
        }
    }
}

fn read_clock(iterations: u64) {
    for _ in 0..iterations {
        black_box(&Instant::now());
    }
}

fn shared_counter(iterations: u64) {
    static COUNTER: Alone = Alone(AtomicU64::new(0));
    let counter = black_box(&COUNTER);
    for _ in 0..iterations {
        counter.0.fetch_add(1, Ordering::Relaxed);
    }
}

/// Adds to a counter per thread. The operation is atomic, because other threads would read the counter.
fn own_counter(iterations: u64) {
    static COUNTERS: [Alone; 8] = [const { Alone(AtomicU64::new(0)) }; 8];
    static THREADS: AtomicU64 = AtomicU64::new(0);
    thread_local! {
        static OWN: Cell<usize> = Cell::new(THREADS.fetch_add(1, Ordering::Relaxed) as usize % COUNTERS.len());
    }
    let counters = black_box(&COUNTERS);
    for _ in 0..iterations {
        counters[OWN.get()].0.fetch_add(1, Ordering::Relaxed);
    }
}

fn withdraw(iterations: u64) {
    static TOKENS: Alone = Alone(AtomicU64::new(1 << 60));
    let tokens = black_box(&TOKENS);
    for _ in 0..iterations {
        let spend = |held: u64| held.checked_sub(black_box(5));
        let spent = tokens.0.fetch_update(Ordering::Relaxed, Ordering::Relaxed, spend);
        black_box(spent.is_ok());
    }
}
