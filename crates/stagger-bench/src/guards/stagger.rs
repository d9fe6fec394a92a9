//! What the guards of this project cost, asked as a call asks them: behind `dyn`.

use core::hint::black_box;
use core::time::Duration;
use std::sync::LazyLock;

use stagger::breaker::{CircuitBreaker, CircuitBreakerBuilder, Window};
use stagger::budget::{self, Adaptive, Concurrent, ControlledBudget, Lifetime, SuccessRate, Throttle, Tokens};
use stagger::{
    Breaker, Budget, FailureKind, Instant, Outcome, Policy, Ratio, Seed, guard::Now, hedge::Hedge, hedge::HedgeState,
    hedge::Latencies, policy, time::Clock as _, time::SystemClock,
};

use crate::case::{Case, Role, Table};

/// The rows that the goals for a success are about: guards that count, and need no clock for it.
pub(crate) const COUNTING: [&str; 5] =
    ["Tokens", "Lifetime", "Throttle", "Concurrent", "CircuitBreaker, failures in a row"];
/// The rows that the goal for withdrawals is about.
pub(crate) const WITHDRAWALS: [&str; 4] = ["Tokens: lend", "Lifetime: lend", "Throttle: lend", "Concurrent: lend"];

const CLOCK: &str = "reads the clock";
const SEED: Seed = Seed::new(7);
const OPEN: Policy = policy!(exponential(mins(60), mins(60)).jitter(Jitter::Equal));
/// More than is measured.
const PLENTY: u32 = u32::MAX;

/// A guard that every run of a case shares, and so do its threads.
macro_rules! shared {
    ($guard:ty, $made:expr) => {{
        static GUARD: LazyLock<$guard> = LazyLock::new(|| $made);
        &*GUARD
    }};
}

/// Rows of this project.
pub(super) fn cases() -> Vec<Case> {
    let row = |table, name, run| Case::work(table, Role::Stagger, name, run);
    let success = |name, run| row(Table::GuardsSuccess, name, run);
    let failure = |name, run| row(Table::GuardsFailure, name, run);
    vec![
        success(COUNTING[0], |n| call(n, shared!(Tokens, Tokens::new()), &Outcome::Success)),
        success(COUNTING[1], |n| call(n, shared!(Lifetime, Lifetime::new()), &Outcome::Success)),
        success(COUNTING[2], |n| call(n, shared!(Throttle, throttle()), &Outcome::Success)),
        success(COUNTING[3], |n| call(n, shared!(Concurrent, Concurrent::new()), &Outcome::Success)),
        success("SuccessRate", |n| call(n, shared!(SuccessRate, SuccessRate::new()), &Outcome::Success)),
        success("ControlledBudget around Tokens", |n| {
            call(n, shared!(ControlledBudget<Tokens>, ControlledBudget::new(Tokens::new())), &Outcome::Success)
        }),
        success("Window", |n| call(n, shared!(budget::Window, budget::Window::new()), &Outcome::Success)).note(CLOCK),
        success("Adaptive", |n| call(n, shared!(Adaptive, Adaptive::new(SEED)), &Outcome::Success)).note(CLOCK),
        success(COUNTING[4], |n| pass(n, shared!(CircuitBreaker, in_a_row(5)), &Outcome::Success)),
        success("CircuitBreaker, the last 100 calls", |n| {
            pass(n, shared!(CircuitBreaker, ratio(Window::Calls(100))), &Outcome::Success);
        }),
        success("CircuitBreaker, the last 10 s", |n| {
            pass(n, shared!(CircuitBreaker, ratio(LAST_10_S)), &Outcome::Success);
        })
        .note(CLOCK),
        success("hedge after a fixed delay", |n| hedged(n, Hedge::after(Duration::from_millis(200)))),
        success("hedge at the 95th percentile", |n| hedged(n, at_p95())),
        failure(WITHDRAWALS[0], |n| lend(n, shared!(Tokens, plenty()))),
        failure(WITHDRAWALS[1], |n| lend(n, shared!(Lifetime, sensible(Lifetime::with(Ratio::percent(10), PLENTY))))),
        failure(WITHDRAWALS[2], |n| lend(n, shared!(Throttle, throttle()))).note("takes nothing"),
        failure(WITHDRAWALS[3], |n| lend(n, shared!(Concurrent, sensible(Concurrent::with(Ratio::ZERO, PLENTY))))),
        failure("SuccessRate: lend", |n| lend(n, shared!(SuccessRate, SuccessRate::new()))).note("takes nothing"),
        failure("ControlledBudget around Tokens: lend", |n| {
            lend(n, shared!(ControlledBudget<Tokens>, ControlledBudget::new(plenty())))
        }),
        failure("Window: lend", |n| lend(n, shared!(budget::Window, window()))).note(CLOCK),
        failure("Adaptive: lend", |n| lend(n, shared!(Adaptive, Adaptive::new(SEED)))).note("reads the clock; refuses"),
        failure("CircuitBreaker, failures in a row: a failure", |n| {
            pass(n, shared!(CircuitBreaker, in_a_row(PLENTY)), &Outcome::TRANSIENT);
        }),
        failure("CircuitBreaker, open: a refusal", |n| refused(n, shared!(CircuitBreaker, open()))).note(CLOCK),
    ]
}

const LAST_10_S: Window = Window::Time(Duration::from_secs(10));

/// The system's clock, read whenever a guard asks.
#[derive(Clone, Copy)]
struct Present;

impl Now for Present {
    fn now(&self) -> Instant {
        SystemClock.now()
    }
}

/// Guards refuse senseless settings, and these are not.
fn sensible<G, E: core::fmt::Debug>(guard: Result<G, E>) -> G {
    guard.expect("sensible settings")
}

fn throttle() -> Throttle {
    sensible(Throttle::new(10, Ratio::percent(10)))
}

fn plenty() -> Tokens {
    sensible(Tokens::builder().capacity(PLENTY).cost(1).build())
}

/// Slots of a tenth of a second, so that no count of one slot runs full.
fn window() -> budget::Window {
    sensible(budget::Window::builder().ttl(Duration::from_secs(1)).min_per_second(PLENTY).build())
}

fn breaker(rules: impl FnOnce(CircuitBreakerBuilder) -> CircuitBreakerBuilder) -> CircuitBreaker {
    sensible(rules(CircuitBreaker::builder(SEED).open(OPEN)).build())
}

fn in_a_row(failures: u32) -> CircuitBreaker {
    breaker(|rules| rules.consecutive(failures))
}

fn ratio(window: Window) -> CircuitBreaker {
    breaker(|rules| rules.failure_ratio(Ratio::percent(50)).window(window))
}

fn at_p95() -> Hedge {
    Hedge::at_quantile(Ratio::percent(95), Duration::from_millis(200))
}

fn open() -> CircuitBreaker {
    let breaker = in_a_row(1);
    pass(1, &breaker, &Outcome::TRANSIENT);
    breaker
}

/// What a first attempt that comes to this end asks a budget.
fn call(iterations: u64, budget: &dyn Budget, outcome: &Outcome) {
    let budget = black_box(budget);
    for _ in 0..iterations {
        let loan = budget.on_first_attempt(&Present);
        budget.record(loan, outcome, &Present);
    }
}

/// What a retry asks.
fn lend(iterations: u64, budget: &dyn Budget) {
    let budget = black_box(budget);
    for _ in 0..iterations {
        black_box(&budget.try_acquire(FailureKind::Transient, &Present));
    }
}

/// One attempt that passes a breaker, and comes to this end.
fn pass(iterations: u64, breaker: &dyn Breaker, outcome: &Outcome) {
    let breaker = black_box(breaker);
    for _ in 0..iterations {
        if let Ok(pass) = breaker.admit(&Present) {
            breaker.record(pass, outcome, &Present);
        }
    }
}

fn refused(iterations: u64, breaker: &dyn Breaker) {
    let breaker = black_box(breaker);
    for _ in 0..iterations {
        black_box(&breaker.admit(&Present));
    }
}

/// What a hedged call whose first attempt is quick does besides it: it finds out when a copy would be due, and counts
/// how long the attempt took.
fn hedged(iterations: u64, hedge: Hedge) {
    static SEEN: LazyLock<Latencies> = LazyLock::new(Latencies::default);
    let (hedge, seen) = black_box((&hedge, &*SEEN));
    for taken in (0..iterations).map(|n| Duration::from_micros(n % 1024)) {
        black_box(&HedgeState::new(hedge, hedge.delay_now(Some(seen)), Instant::ZERO));
        seen.record(taken);
    }
}
