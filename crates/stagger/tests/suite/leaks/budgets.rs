//! The budgets, each with what it says of itself and what it has to say.

use core::fmt::Debug;
use std::sync::Arc;

use stagger::budget::{Adaptive, Concurrent, ControlledBudget, Lifetime, SuccessRate, Throttle, Tokens, Window};
use stagger::{Budget, Instant, Ratio, Seed};

/// What went on, counted where it was made. No call succeeds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Made {
    /// First attempts.
    pub(super) firsts: u64,
    /// All attempts that were begun.
    pub(super) attempts: u64,
    /// Those that failed, and for which the server is to blame.
    pub(super) ailing: u64,
}

impl Made {
    /// A retry that was begun stays paid, whatever became of it.
    const fn retries(self) -> u64 {
        self.attempts - self.firsts
    }
}

/// A budget under watch. They are generous: none of them refuses anything here.
pub(super) struct Watched {
    pub(super) name: &'static str,
    pub(super) budget: Arc<dyn Budget>,
    says: Box<dyn Fn() -> Vec<u64> + Send + Sync>,
    has_to_say: fn(Made) -> Vec<u64>,
}

impl Watched {
    fn new<B: Budget + 'static>(
        name: &'static str,
        budget: B,
        says: fn(&B) -> Vec<u64>,
        has_to_say: fn(Made) -> Vec<u64>,
    ) -> Self {
        let budget = Arc::new(budget);
        let shared = Arc::clone(&budget);
        Self { name, budget: shared, says: Box::new(move || says(&budget)), has_to_say }
    }

    /// It has lent nothing but what was spent.
    pub(super) fn expect(&self, made: Made, what: impl Debug) {
        assert_eq!((self.says)(), (self.has_to_say)(made), "{}, {what:?}, after {made:?}", self.name);
    }
}

/// At the epoch no slot has passed.
const EVER: Instant = Instant::ZERO;

fn places(concurrent: &Concurrent) -> Vec<u64> {
    let seen = concurrent.snapshot();
    vec![seen.firsts, seen.retries]
}

fn no_place(_: Made) -> Vec<u64> {
    vec![0, 0]
}

/// Each of them, new.
pub(super) const EVERY: [fn() -> Watched; 8] = [
    || Watched::new("tokens", Tokens::new(), |b| vec![b.snapshot().tokens], |made| vec![500 - 5 * made.retries()]),
    || Watched::new("window", Window::new(), |b| vec![b.snapshot(EVER).retries], |made| vec![made.retries()]),
    || {
        let says = |b: &Lifetime| vec![b.snapshot().calls, b.snapshot().retries];
        Watched::new("lifetime", Lifetime::new(), says, |made| vec![made.firsts, made.retries()])
    },
    || {
        let throttle = Throttle::new(100, Ratio::ONE).unwrap();
        let says = |b: &Throttle| vec![b.snapshot().milli_tokens.into()];
        Watched::new("throttle", throttle, says, |made| vec![100_000 - 1_000 * made.ailing])
    },
    || {
        let rate = SuccessRate::with(Ratio::percent(50), 64).unwrap();
        let says = |b: &SuccessRate| vec![b.snapshot().succeeded.into()];
        Watched::new("success rate", rate, says, |made| vec![64 - made.ailing])
    },
    || Watched::new("concurrent", Concurrent::new(), places, no_place),
    || {
        let says = |b: &Adaptive| vec![b.snapshot(EVER).requests, b.snapshot(EVER).accepts];
        Watched::new("adaptive", Adaptive::new(Seed::new(1)), says, |made| vec![made.ailing, 0])
    },
    || {
        let says = |b: &ControlledBudget<Concurrent>| [places(b.budget()), vec![b.snapshot().rejected]].concat();
        Watched::new("control", ControlledBudget::new(Concurrent::new()), says, |_| vec![0, 0, 0])
    },
];
