//! Calls on a virtual clock, and the lengths that tests are written in.

use core::time::Duration;

use stagger_core::admission::Secret;
use stagger_core::guard::{Guard, Permit, Permits};
use stagger_core::machine::{Decision, RetryMachine, RetryState};
use stagger_core::{DelaySource, Guards, Instant, Outcome, Policy, Seed, StopReason};

/// One call, run on a virtual clock by the loop that the core's documentation prescribes.
pub(crate) struct Call<'a> {
    pub(crate) policy: &'a Policy,
    pub(crate) seed: Seed,
    pub(crate) guards: Guards<'a>,
    /// Duration of every attempt.
    pub(crate) took: Duration,
    pub(crate) deadline: Option<Instant>,
}

/// The record of a finished call.
#[derive(Debug, PartialEq)]
pub(crate) struct Trace {
    pub(crate) attempts: u32,
    /// Number of times the operation ran, including transparent retries.
    pub(crate) runs: u32,
    pub(crate) spread: Duration,
    pub(crate) waits: Vec<Duration>,
    pub(crate) sources: Vec<DelaySource>,
    /// `None` if the call succeeded.
    pub(crate) stop: Option<StopReason>,
    /// Time from the start of the call to the start of its last attempt.
    pub(crate) last_start: Duration,
}

impl<'a> Call<'a> {
    /// The start of every call. It is not zero, so that a test notices if an elapsed time and an instant are confused.
    pub(crate) const START: Instant = Instant::from_nanos(5_000_000_000);

    pub(crate) const fn new(policy: &'a Policy) -> Self {
        Self { policy, seed: Seed::new(1), guards: Guards::none(), took: Duration::ZERO, deadline: None }
    }

    pub(crate) const fn seed(mut self, seed: u64) -> Self {
        self.seed = Seed::new(seed);
        self
    }

    pub(crate) fn guards(mut self, list: &'a [&'a dyn Guard]) -> Self {
        self.guards = Guards::of(list);
        self
    }

    pub(crate) const fn took(mut self, took: Duration) -> Self {
        self.took = took;
        self
    }

    pub(crate) const fn deadline(mut self, deadline: Instant) -> Self {
        self.deadline = Some(deadline);
        self
    }

    /// Runs the call with attempts that all fail.
    pub(crate) fn failing(self) -> Trace {
        self.run(core::iter::repeat(Outcome::TRANSIENT))
    }

    /// Runs the call with these outcomes; attempts after the last of them succeed.
    pub(crate) fn run(self, outcomes: impl IntoIterator<Item = Outcome>) -> Trace {
        let mut outcomes = outcomes.into_iter();
        let mut state = RetryState::new();
        let mut retry = RetryMachine::new(self.policy, &mut state, self.seed).deadline(self.deadline);
        let mut now = Self::START;
        let mut trace = Trace {
            attempts: 0,
            runs: 0,
            spread: retry.spread(|| now),
            waits: Vec::new(),
            sources: Vec::new(),
            stop: None,
            last_start: Duration::ZERO,
        };
        now = now.saturating_add(trace.spread);
        let mut permit = Permits::NONE;
        loop {
            permit = match retry.begin(permit, || now, &self.guards) {
                Ok(permit) => permit,
                Err(stop) => {
                    trace.stop = Some(stop);
                    return trace;
                }
            };
            trace.attempts = retry.attempt();
            trace.runs += 1;
            assert!(trace.runs < 100_000, "the call does not end");
            trace.last_start = now.saturating_since(Self::START);
            now = now.saturating_add(self.took);
            let outcome = outcomes.next().unwrap_or(Outcome::Success);
            match retry.decide(outcome, permit, || now, &self.guards) {
                Decision::Retry { after, source, permit: granted } => {
                    trace.waits.push(after);
                    trace.sources.push(source);
                    now = now.saturating_add(after);
                    permit = granted;
                }
                Decision::Stop(stop) => {
                    trace.stop = Some(stop);
                    return trace;
                }
                _ => return trace,
            }
        }
    }
}

/// The secret of admissions in tests.
pub(crate) const SECRET: Secret = Secret::new([7; 16]);

pub(crate) const fn ms(n: u64) -> Duration {
    Duration::from_millis(n)
}

pub(crate) const fn secs(n: u64) -> Duration {
    Duration::from_secs(n)
}

/// Returns the instant `length` after the clock's epoch.
pub(crate) const fn at(length: Duration) -> Instant {
    Instant::ZERO.saturating_add(length)
}

/// Returns the bits for a sample `r` in `[0, 1]`, the form in which other libraries' test tables give it.
pub(crate) fn bits_of(r: f64) -> u64 {
    // 2^64 saturates to `u64::MAX`, so `r = 1` is the upper end.
    (r * 18_446_744_073_709_551_616.0) as u64
}

/// One step of a random history of calls that a limiter holds.
#[derive(Clone, Debug)]
pub(crate) enum Step {
    /// Lets milliseconds pass.
    Pass(u64),
    Ask,
    AskAgain(usize),
    Cancel(usize),
    Answer(usize, Outcome),
}

/// Takes one of the permits out, if there is any.
pub(crate) fn take(permits: &mut Vec<Permit>, n: usize) -> Option<Permit> {
    (!permits.is_empty()).then(|| permits.swap_remove(n % permits.len()))
}
