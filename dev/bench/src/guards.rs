//! Section E: budgets, breakers and hedging, on one thread and shared by two.

#[cfg(feature = "peers")]
mod peers;

use core::cell::Cell;
use core::hint::black_box;
use core::sync::atomic::{AtomicU64, Ordering};
use core::time::Duration;
use std::sync::LazyLock;

use stagger::admission::{Admission, Admit, Secret};
use stagger::breaker::{CircuitBreaker, CircuitBreakerBuilder, Window};
use stagger::budget::{self, Adaptive, Concurrent, Controlled, Lifetime, RetryControl, SuccessRate, Throttle, Tokens};
use stagger::guard::{Answer, Ask, End, Keyed, Now, Pacer, Permit, QuietPeriod};
use stagger::hedge::{Hedge, HedgeState, Latencies};
use stagger::time::{Clock as _, SystemClock};
use stagger::{FailureKind, Guard, Instant, Outcome, Policy, Ratio, Retrier, Seed, policy};
use stagger_lease::claim::Limits;
use stagger_lease::ledger::{Counted, Ledger};

use crate::case::{Case, Role, Table};
use crate::operation::{SUCCESS, repeat};

/// Returns the rows of the two tables.
pub(crate) fn cases() -> Vec<Case> {
    [
        floor_cases(),
        stagger_cases(),
        admission_cases(),
        #[cfg(feature = "peers")]
        peers::cases(),
    ]
    .concat()
}

// The atomic operations that a guard needs at least.

/// A counter on cache lines of its own.
#[repr(align(128))]
struct Alone(AtomicU64);

/// Returns the hand-written rows.
fn floor_cases() -> Vec<Case> {
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
        black_box(&std::time::Instant::now());
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

// The cost of the guards of this project, behind `dyn` as in a call.

const COUNTING: [&str; 5] = ["Tokens", "Lifetime", "Throttle", "Concurrent", "CircuitBreaker, consecutive failures"];
const PERMITS: [&str; 4] = ["Tokens: reserve", "Lifetime: reserve", "Throttle: reserve", "Concurrent: reserve"];

const CLOCK: &str = "reads the clock";
const SEED: Seed = Seed::new(7);
const OPEN: Policy = policy!(exponential(mins(60), mins(60)).jitter(Jitter::Equal));
/// More than any measurement uses.
const PLENTY: u32 = u32::MAX;

/// Creates a guard that all runs and threads of a case share.
macro_rules! shared {
    ($guard:ty, $made:expr) => {{
        static GUARD: LazyLock<$guard> = LazyLock::new(|| $made);
        &*GUARD
    }};
}

/// Returns the rows of this project.
fn stagger_cases() -> Vec<Case> {
    let row = |table, name, run| Case::work(table, Role::Stagger, name, run);
    let success = |name, run| row(Table::GuardsSuccess, name, run);
    let failure = |name, run| row(Table::GuardsFailure, name, run);
    vec![
        success(COUNTING[0], |n| attempt(n, shared!(Tokens, Tokens::new()), &Outcome::Success)),
        success(COUNTING[1], |n| attempt(n, shared!(Lifetime, Lifetime::new()), &Outcome::Success)),
        success(COUNTING[2], |n| attempt(n, shared!(Throttle, throttle()), &Outcome::Success)),
        success(COUNTING[3], |n| attempt(n, shared!(Concurrent, Concurrent::new()), &Outcome::Success)),
        success("SuccessRate", |n| attempt(n, shared!(SuccessRate, SuccessRate::new()), &Outcome::Success)),
        success("Controlled around Tokens", |n| {
            attempt(n, shared!(ControlledTokens, controlled(Tokens::new())), &Outcome::Success);
        }),
        success("Window", |n| attempt(n, shared!(budget::Window, budget::Window::new()), &Outcome::Success))
            .note(CLOCK),
        success("Adaptive", |n| attempt(n, shared!(Adaptive, Adaptive::new(SEED)), &Outcome::Success)).note(CLOCK),
        success(COUNTING[4], |n| attempt(n, shared!(CircuitBreaker, consecutive(5)), &Outcome::Success)),
        success("CircuitBreaker, the last 100 calls", |n| {
            attempt(n, shared!(CircuitBreaker, ratio(Window::Calls(100))), &Outcome::Success);
        }),
        success("CircuitBreaker, the last 10 s", |n| {
            attempt(n, shared!(CircuitBreaker, ratio(LAST_10_S)), &Outcome::Success);
        })
        .note(CLOCK),
        success("QuietPeriod, open", |n| attempt(n, shared!(QuietPeriod, QuietPeriod::new()), &Outcome::Success))
            .note("reads the clock once in 32"),
        success("Pacer, passive", |n| attempt(n, shared!(Pacer, Pacer::new()), &Outcome::Success)),
        success("a call of a Retrier without guards", |n| call_with(n, shared!(Retrier, Retrier::new(CALLS)))),
        success("a call of a Retrier with a QuietPeriod, open", |n| {
            call_with(n, shared!(Retrier, Retrier::new(CALLS).guard(QuietPeriod::new())));
        })
        .note("reads the clock once a second more"),
        success("a call of a Retrier with Tokens", |n| {
            call_with(n, shared!(Retrier, Retrier::new(CALLS).budget(Tokens::new())));
        }),
        success("a call of a Retrier with a QuietPeriod, open, and Tokens", |n| {
            call_with(n, shared!(Retrier, Retrier::new(CALLS).guard(QuietPeriod::new()).budget(Tokens::new())));
        })
        .note("reads the clock once a second more"),
        success("a call of a Retrier with a Pacer, passive, and Tokens", |n| {
            call_with(n, shared!(Retrier, Retrier::new(CALLS).guard(Pacer::new()).budget(Tokens::new())));
        }),
        success("hedge after a fixed delay", |n| hedged(n, Hedge::after(Duration::from_millis(200)))),
        success("hedge at the 95th percentile", |n| hedged(n, at_p95())),
        failure(PERMITS[0], |n| reserve(n, shared!(Tokens, plenty()))),
        failure(PERMITS[1], |n| reserve(n, shared!(Lifetime, valid(Lifetime::with(Ratio::percent(10), PLENTY))))),
        failure(PERMITS[2], |n| reserve(n, shared!(Throttle, throttle()))).note("deducts nothing"),
        failure(PERMITS[3], |n| reserve(n, shared!(Concurrent, valid(Concurrent::with(Ratio::ZERO, PLENTY))))),
        failure("SuccessRate: reserve", |n| reserve(n, shared!(SuccessRate, SuccessRate::new())))
            .note("deducts nothing"),
        failure("Controlled around Tokens: reserve", |n| {
            reserve(n, shared!(ControlledTokens, controlled(plenty())));
        }),
        failure("Window: reserve", |n| reserve(n, shared!(budget::Window, window()))).note(CLOCK),
        failure("Adaptive: reserve", |n| reserve(n, shared!(Adaptive, Adaptive::new(SEED))))
            .note("reads the clock; rejects"),
        failure("CircuitBreaker, consecutive failures: a failure", |n| {
            attempt(n, shared!(CircuitBreaker, consecutive(PLENTY)), &Outcome::TRANSIENT);
        }),
        failure("the tokens of a fleet, with a lease in hand: reserve", |n| {
            let ledger = shared!(Ledger, in_hand());
            for _ in 0..n {
                black_box(&FLEET.reserve(black_box(ledger), || ()));
            }
        })
        .note("what `SharedTokens` does in a process"),
        failure("Keyed, a key that it has: of alone, the time is known", |n| {
            let hosts = black_box(shared!(Hosts, hosts()));
            for _ in 0..n {
                black_box(&hosts.of(black_box(&7), Instant::ZERO));
            }
        })
        .note("one of 1,000 keys"),
        failure("Keyed, a key that it has: of and Tokens::reserve", |n| keyed(n, shared!(Hosts, hosts()), |_| 7))
            .note("one of 1,000 keys; reads the clock"),
        failure("Keyed, a new key: of and Tokens::reserve", |n| keyed(n, shared!(Hosts, hosts()), |n| 1_000 + n))
            .note("replaces the least recently used of 32 of 1,000; reads the clock"),
        failure("CircuitBreaker, open: a rejection", |n| rejected(n, shared!(CircuitBreaker, open()))).note(CLOCK),
    ]
}

/// The policy of the retriers.
const CALLS: Policy = policy!(exponential(ms(100), secs(30)).max_attempts(4));
const FLEET: Limits = Limits { capacity: u64::MAX, refill: 0, initial: 0, cost: 5_000_000, reward: 1_000_000 };

/// Creates the tokens of a process with a large lease.
fn in_hand() -> Ledger {
    Ledger::with(Counted { held: u64::MAX / 2, spent: 0, earned: 0 })
}

/// Makes calls that succeed.
fn call_with(iterations: u64, retrier: &Retrier) {
    let retrier = black_box(retrier);
    repeat(iterations, &SUCCESS, |script| retrier.blocking(|| script.attempt()));
}

const LAST_10_S: Window = Window::Time(Duration::from_secs(10));

/// The system clock, read each time a guard needs it.
#[derive(Clone, Copy)]
struct Present;

impl Now for Present {
    fn now(&self) -> Instant {
        SystemClock.now()
    }
}

/// Unwraps a guard. Only invalid settings are rejected, and those of the cases are valid.
fn valid<G, E: core::fmt::Debug>(guard: Result<G, E>) -> G {
    guard.expect("valid settings")
}

type ControlledTokens = Controlled<Box<Tokens>, RetryControl>;

fn controlled(tokens: Tokens) -> ControlledTokens {
    Controlled::new(Box::new(tokens), RetryControl::new())
}

fn throttle() -> Throttle {
    valid(Throttle::new(10, Ratio::percent(10)))
}

fn plenty() -> Tokens {
    valid(Tokens::builder().capacity(PLENTY).cost(1).build())
}

/// Creates a window with slots of 100 ms, so that the count of a slot does not saturate.
fn window() -> budget::Window {
    valid(budget::Window::builder().ttl(Duration::from_secs(1)).min_per_second(PLENTY).build())
}

fn breaker(rules: impl FnOnce(CircuitBreakerBuilder) -> CircuitBreakerBuilder) -> CircuitBreaker {
    valid(rules(CircuitBreaker::builder(SEED).open(OPEN)).build())
}

fn consecutive(failures: u32) -> CircuitBreaker {
    breaker(|rules| rules.consecutive(failures))
}

fn ratio(window: Window) -> CircuitBreaker {
    breaker(|rules| rules.failure_ratio(Ratio::percent(50)).window(window))
}

fn at_p95() -> Hedge {
    Hedge::at_quantile(Ratio::percent(95), Duration::from_millis(200))
}

fn open() -> CircuitBreaker {
    let breaker = consecutive(1);
    attempt(1, &breaker, &Outcome::TRANSIENT);
    breaker
}

/// Runs a guard's operations of a first attempt with this outcome.
fn attempt(iterations: u64, guard: &dyn Guard, outcome: &Outcome) {
    let guard = black_box(guard);
    for _ in 0..iterations {
        if let Answer::Go(permit) = guard.ask(Ask::FIRST, Permit::NONE, &Present) {
            guard.settle(permit, End::Made(outcome), &Present);
        }
    }
}

/// Runs a guard's operation of a retry.
fn reserve(iterations: u64, guard: &dyn Guard) {
    let guard = black_box(guard);
    for _ in 0..iterations {
        black_box(&guard.reserve(FailureKind::Transient, &Present));
    }
}

type Hosts = Keyed<u64, Tokens>;

/// Creates a collection that is full, with 1,000 keys.
fn hosts() -> Hosts {
    let hosts = Keyed::guards(Tokens::new);
    for key in 0..1_000 {
        let _ = hosts.of(&key, Instant::ZERO);
    }
    hosts
}

/// Looks up the guard of a key for each of these calls, and runs the budget operation of a retry.
fn keyed(iterations: u64, hosts: &Hosts, key: fn(u64) -> u64) {
    /// Calls of all runs and threads, so that no two have the same number.
    static CALLS: AtomicU64 = AtomicU64::new(0);
    let (hosts, first) = (black_box(hosts), CALLS.fetch_add(iterations, Ordering::Relaxed));
    for number in first..first + iterations {
        let budget = hosts.of(&key(number), Present.now());
        black_box(&budget.reserve(FailureKind::Transient, &Present));
    }
}

/// Asks a guard that rejects.
fn rejected(iterations: u64, guard: &dyn Guard) {
    let guard = black_box(guard);
    for _ in 0..iterations {
        black_box(&guard.ask(Ask::FIRST, Permit::NONE, &Present));
    }
}

/// Runs the hedging operations of a call whose first attempt is fast: it computes when a copy would be due, and records
/// the duration of the attempt.
fn hedged(iterations: u64, hedge: Hedge) {
    static SEEN: LazyLock<Latencies> = LazyLock::new(Latencies::default);
    let (hedge, seen) = black_box((&hedge, &*SEEN));
    for taken in (0..iterations).map(|n| Duration::from_micros(n % 1024)) {
        black_box(&HedgeState::new(hedge, hedge.delay_now(Some(seen)), Instant::ZERO));
        seen.record(taken);
    }
}

// The cost of admission control, with an arrival a millisecond and as many admissions.

/// The times of arrivals, in milliseconds: those of all runs and threads, so that no two are the same.
static ARRIVALS: AtomicU64 = AtomicU64::new(1_000_000);

/// Returns the rows of admission control.
fn admission_cases() -> Vec<Case> {
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
