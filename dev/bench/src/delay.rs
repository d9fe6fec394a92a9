//! Section A: the next delay.

#[cfg(feature = "peers")]
mod peers;

use core::hint::black_box;
use core::iter::repeat_with;
use core::sync::atomic::{AtomicU64, Ordering};
use core::time::Duration;

use stagger_core::guard::{Answer, Ask, End, Now, Permit, Permits};
use stagger_core::machine::{Decision, RetryMachine, RetryState};
use stagger_core::{FailureKind, Guard, Guards, Instant, Jitter, Outcome, Policy, PolicyBuilder, Seed};

use crate::case::{Case, Role, Table};

/// Returns the rows of the table.
pub(crate) fn cases() -> Vec<Case> {
    [
        floor_cases(),
        stagger_cases(),
        #[cfg(feature = "peers")]
        peers::cases(),
    ]
    .concat()
}

// The lower bound for the cost of a next delay.

/// Returns the hand-written rows.
fn floor_cases() -> Vec<Case> {
    vec![
        Case::work(Table::Delay, Role::Floor, "full jitter, inline wyrand", inline)
            .note("24 bytes of state, multiplier 2"),
        Case::work(Table::Delay, Role::Floor, "full jitter, fastrand's thread-local generator", thread_local)
            .note("multiplier 2"),
    ]
}

/// Full jitter with an integer ceiling and its own generator.
#[derive(Debug)]
pub(crate) struct FullJitter {
    generator: u64,
    ceiling: u64,
    cap: u64,
}

impl FullJitter {
    #[inline]
    pub(crate) const fn new(seed: u64, base: Duration, cap: Duration) -> Self {
        Self { generator: seed, ceiling: base.as_nanos() as u64, cap: cap.as_nanos() as u64 }
    }

    /// Maps `bits` to `[0, ceiling]` and doubles the ceiling.
    #[inline]
    fn step(&mut self, bits: u64) -> Duration {
        let delay = (u128::from(bits) * u128::from(self.ceiling + 1)) >> 64;
        self.ceiling = self.cap.min(self.ceiling << 1);
        Duration::from_nanos(delay as u64)
    }
}

impl Iterator for FullJitter {
    type Item = Duration;

    #[inline]
    fn next(&mut self) -> Option<Duration> {
        let bits = wyrand(&mut self.generator);
        Some(self.step(bits))
    }
}

/// Draws with the generator that fastrand uses: an addition, a multiplication, two exclusive-ors.
#[inline]
fn wyrand(state: &mut u64) -> u64 {
    *state = state.wrapping_add(0x2d35_8dcc_aa6c_78a5);
    let product = u128::from(*state) * u128::from(*state ^ 0x8bb8_4b93_962e_acc9);
    (product >> 64) as u64 ^ product as u64
}

fn inline(iterations: u64) {
    let mut seed = black_box(7);
    sessions(iterations, &(BASE, CAP), |(base, cap)| {
        seed += 1;
        FullJitter::new(seed, *base, *cap)
    });
}

fn thread_local(iterations: u64) {
    sessions(iterations, &(BASE, CAP), |(base, cap)| {
        let mut delays = FullJitter::new(0, *base, *cap);
        repeat_with(move || delays.step(fastrand::u64(..)))
    });
}

// The cost of a next delay and of a complete decision in stagger.

const ANY_MULTIPLIER: &str = "full jitter, multiplier 1.7, policy built at run time";
const CONSTANT: &str = "full jitter, `for delay in POLICY.delays(seed)`";
pub(crate) const GUARDED: &str = "complete decision, budget and breaker";

/// Allows one attempt more than a session has delays.
const POLICY: Policy = stagger_core::policy!(exponential(ms(100), secs(30)).max_attempts(9));

/// Returns the rows of this project.
fn stagger_cases() -> Vec<Case> {
    let row = |name, run| Case::work(Table::Delay, Role::Stagger, name, run);
    vec![
        row(ANY_MULTIPLIER, |n| at_run_time(n, exponential().multiplier(1.7))),
        row("full jitter, multiplier 2, policy built at run time", |n| at_run_time(n, exponential())),
        row(CONSTANT, constant).note("const policy: the ceilings are known at compile time"),
        row("equal jitter, policy built at run time", |n| at_run_time(n, exponential().jitter(Jitter::Equal))),
        row("decorrelated jitter, policy built at run time", |n| at_run_time(n, Policy::decorrelated(BASE, CAP))),
        row("complete decision, no guards", |n| decisions(n, &Guards::none())),
        row(GUARDED, guarded).note("each guard is one atomic, behind `dyn`"),
    ]
}

const fn exponential() -> PolicyBuilder {
    Policy::exponential(BASE, CAP)
}

fn build(builder: PolicyBuilder) -> Policy {
    // Only invalid settings are rejected, and these are valid.
    builder.unlimited_attempts().build().expect("a valid policy")
}

fn at_run_time(iterations: u64, builder: PolicyBuilder) {
    let mut seed = black_box(7);
    sessions(iterations, &build(builder), |policy| {
        seed += 1;
        policy.schedule(Seed::new(seed))
    });
}

/// Draws delays in a loop as a user would write it.
fn constant(iterations: u64) {
    let mut seed = black_box(7);
    for _ in 0..iterations / LENGTH {
        seed += 1;
        for delay in POLICY.delays(Seed::new(seed)) {
            black_box(&delay);
        }
    }
}

/// Runs `begin` and `decide` for [`LENGTH`] attempts of a call that keeps failing.
fn decisions(iterations: u64, guards: &Guards<'_>) {
    let policy = build(exponential());
    let now = || Instant::ZERO;
    for seed in 0..iterations / LENGTH {
        let mut state = RetryState::new();
        let mut retry = RetryMachine::new(black_box(&policy), &mut state, Seed::new(seed));
        let mut permit = Permits::NONE;
        for _ in 0..black_box(LENGTH) {
            let Ok(granted) = retry.begin(permit, now, guards) else {
                return;
            };
            let outcome = Outcome::Failed { kind: black_box(FailureKind::Transient), hint: None };
            let decision = retry.decide(outcome, granted, now, guards);
            black_box(&decision);
            let Decision::Retry { permit: granted, .. } = decision else {
                return;
            };
            permit = granted;
        }
    }
}

fn guarded(iterations: u64) {
    let budget = CounterBudget(AtomicU64::new(1 << 40));
    let breaker = Closed(AtomicU64::new(0));
    let list: [&dyn Guard; 2] = [&breaker, &budget];
    decisions(iterations, black_box(&Guards::of(&list)));
}

/// A budget that grants one retry per token and consists of a counter only.
#[derive(Debug)]
struct CounterBudget(AtomicU64);

impl Guard for CounterBudget {
    fn name(&self) -> &'static str {
        "budget"
    }

    fn reserve(&self, _kind: FailureKind, _now: &dyn Now) -> Option<Permit> {
        self.0.fetch_sub(1, Ordering::Relaxed);
        Some(Permit(1))
    }

    fn settle(&self, permit: Permit, end: End<'_>, _now: &dyn Now) {
        if end == End::NeverMade {
            self.0.fetch_add(permit.0, Ordering::Relaxed);
        }
    }
}

/// A breaker that checks whether it is open, and never is.
#[derive(Debug)]
struct Closed(AtomicU64);

impl Closed {
    fn is_open(&self) -> bool {
        self.0.load(Ordering::Relaxed) != 0
    }
}

impl Guard for Closed {
    fn name(&self) -> &'static str {
        "breaker"
    }

    fn ask(&self, _ask: Ask, held: Permit, _now: &dyn Now) -> Answer {
        if self.is_open() { Answer::No { retry_in: Duration::ZERO } } else { Answer::Go(held) }
    }

    fn would_refuse(&self, _after: Duration, _latest: Option<Instant>, _now: &dyn Now) -> bool {
        self.is_open()
    }

    fn settle(&self, _permit: Permit, _end: End<'_>, _now: &dyn Now) {}
}

// The loop that every row of section A runs.

/// The ceiling of the first retry.
const BASE: Duration = Duration::from_millis(100);

/// The limit of all ceilings.
const CAP: Duration = Duration::from_secs(30);

/// The number of delays drawn from one state before the next is set up, as for a call that fails this many times.
const LENGTH: u64 = 8;

/// Draws `iterations` delays in sessions of [`LENGTH`], setting up each session with `begin`.
///
/// The configuration and the length of a session are hidden from the optimizer. Otherwise it would compute the ceilings
/// once for all sessions, which it cannot do for the retries of a real call. `iterations` must be a multiple of
/// [`LENGTH`], as it is in all measurements.
#[inline]
fn sessions<'a, C, I: Iterator>(iterations: u64, configuration: &'a C, mut begin: impl FnMut(&'a C) -> I) {
    for _ in 0..iterations / LENGTH {
        let mut delays = begin(black_box(configuration));
        for _ in 0..black_box(LENGTH) {
            black_box(&delays.next());
        }
    }
}
