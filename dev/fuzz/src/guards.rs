//! A guard whose answers come from the fuzzer and that counts permits.

use core::sync::atomic::{AtomicI64, AtomicU64, Ordering};
use core::time::Duration;

use stagger_core::guard::{Answer, Ask, End, Now, Permit};
use stagger_core::{FailureKind, Guard, Instant};

/// A guard that answers by the bits of a number, one after another, and counts outstanding permits and places.
#[derive(Debug, Default)]
pub(crate) struct FuzzedGuard {
    answers: AtomicU64,
    outstanding: AtomicI64,
}

impl FuzzedGuard {
    pub(crate) const NAME: &'static str = "fuzzed";

    pub(crate) fn new(answers: u64) -> Self {
        Self { answers: AtomicU64::new(answers), ..Self::default() }
    }

    /// Returns the number of permits that were granted and not settled.
    pub(crate) fn outstanding(&self) -> i64 {
        self.outstanding.load(Ordering::Relaxed)
    }

    fn next_answer(&self) -> bool {
        let answers = self.answers.load(Ordering::Relaxed);
        self.answers.store(answers.rotate_right(1), Ordering::Relaxed);
        answers & 1 == 1
    }

    /// Returns the permit that is held, or a new one.
    fn granted(&self, held: Permit) -> Permit {
        if held != Permit::NONE {
            return held;
        }
        self.outstanding.fetch_add(1, Ordering::Relaxed);
        Permit(1)
    }

    /// Takes a permit back. No permit counts as 0.
    fn take_back(&self, Permit(granted): Permit) {
        self.outstanding.fetch_sub(granted.cast_signed(), Ordering::Relaxed);
    }
}

impl Guard for FuzzedGuard {
    fn name(&self) -> &'static str {
        Self::NAME
    }

    fn ask(&self, _: Ask, held: Permit, now: &dyn Now) -> Answer {
        now.now();
        let (first, second) = (self.next_answer(), self.next_answer());
        match (first, second) {
            (true, _) => Answer::Go(self.granted(held)),
            (false, true) => Answer::Wait { after: Duration::from_secs(1), permit: self.granted(held) },
            (false, false) => {
                self.take_back(held);
                Answer::No { retry_in: Duration::from_secs(1) }
            }
        }
    }

    fn reserve(&self, _: FailureKind, now: &dyn Now) -> Option<Permit> {
        now.now();
        if self.next_answer() { Some(self.granted(Permit::NONE)) } else { None }
    }

    fn would_refuse(&self, _: Duration, _: Option<Instant>, _: &dyn Now) -> bool {
        !self.next_answer()
    }

    fn settle(&self, permit: Permit, _: End<'_>, _: &dyn Now) {
        self.take_back(permit);
    }
}
