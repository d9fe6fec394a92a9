//! A bulkhead: at most so many attempts to a target are in flight; the others wait in order, or fail after a time.
//!
//! A guard of your own is one file. It works wherever guards work, and nothing of stagger knows of it.

use core::time::Duration;
use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use stagger::Instant;
use stagger::guard::{Answer, Ask, End, Guard, Now, Permit};

/// Lets at most `most` attempts be in flight.
#[derive(Debug)]
pub(crate) struct Bulkhead {
    most: usize,
    longest_wait: Duration,
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    in_flight: usize,
    /// The attempts that wait, by their number, and since when.
    waiting: BTreeMap<u64, Instant>,
    last: u64,
}

/// The permit of an attempt in flight. That of an attempt that waits is its number.
const IN_FLIGHT: Permit = Permit(u64::MAX);

/// A guard cannot wake a call, so one that waits asks again after this time.
const ASK_AGAIN: Duration = Duration::from_millis(10);

impl Bulkhead {
    pub(crate) fn new(most: usize, longest_wait: Duration) -> Self {
        Self { most, longest_wait, state: Mutex::default() }
    }

    pub(crate) fn in_flight(&self) -> usize {
        self.lock().in_flight
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Guard for Bulkhead {
    fn name(&self) -> &'static str {
        "bulkhead"
    }

    fn ask(&self, _: Ask, held: Permit, now: &dyn Now) -> Answer {
        let mut state = self.lock();
        let free = self.most.saturating_sub(state.in_flight);
        let (number, before) = match held {
            Permit::NONE => (None, state.waiting.len()),
            Permit(number) => (Some(number), state.waiting.range(..number).count()),
        };
        if before < free {
            if let Some(number) = number {
                state.waiting.remove(&number);
            }
            state.in_flight += 1;
            return Answer::Go(IN_FLIGHT);
        }
        let now = now.now();
        let number = number.unwrap_or_else(|| {
            state.last += 1;
            state.last
        });
        let since = *state.waiting.entry(number).or_insert(now);
        if now.saturating_since(since) >= self.longest_wait {
            state.waiting.remove(&number);
            return Answer::No { retry_in: ASK_AGAIN };
        }
        Answer::Wait { after: ASK_AGAIN, permit: Permit(number) }
    }

    fn settle(&self, permit: Permit, _: End<'_>, _: &dyn Now) {
        let mut state = self.lock();
        match permit {
            Permit::NONE => {}
            IN_FLIGHT => state.in_flight = state.in_flight.saturating_sub(1),
            Permit(number) => {
                state.waiting.remove(&number);
            }
        }
    }

    /// A client of several targets has one for each.
    fn fresh(&self) -> Option<Self> {
        Some(Self::new(self.most, self.longest_wait))
    }

    fn is_at_rest(&self, _: &dyn Now) -> bool {
        let state = self.lock();
        state.in_flight == 0 && state.waiting.is_empty()
    }
}
