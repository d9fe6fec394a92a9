//! Shared support for the models.

use ::loom::sync::Arc;
use ::loom::thread;
use stagger_core::guard::{Answer, Ask, Permit};
use stagger_core::{Guard, Instant};

pub(super) const NOW: Instant = Instant::from_nanos(7_000_000_000);

/// Checks every interleaving with at most three preemptions, which suffice for bugs of two words and two threads.
pub(super) fn model(body: impl Fn() + Sync + Send + 'static) {
    model_with(3, body);
}

/// Checks every interleaving with at most `preemptions` preemptions.
pub(super) fn model_with(preemptions: usize, body: impl Fn() + Sync + Send + 'static) {
    let mut builder = ::loom::model::Builder::new();
    builder.preemption_bound = Some(preemptions);
    builder.check(body);
}

/// Runs all of `work` concurrently and returns the sum of the results.
pub(super) fn together<B: Send + Sync + 'static>(budget: &Arc<B>, work: &[fn(&B) -> u64]) -> u64 {
    let (here, others) = work.split_first().expect("at least one function");
    let others: Vec<_> = others
        .iter()
        .map(|&work| {
            let budget = Arc::clone(budget);
            thread::spawn(move || work(&budget))
        })
        .collect();
    here(budget) + others.into_iter().map(|thread| thread.join().expect("the thread does not panic")).sum::<u64>()
}

/// Starts first attempts without a limit.
pub(super) trait Start: Guard {
    /// Returns the permit of an attempt that starts now.
    fn try_start(&self, now: &Instant) -> Option<Permit> {
        match self.ask(Ask::FIRST, Permit::NONE, now) {
            Answer::Go(permit) => Some(permit),
            _ => None,
        }
    }

    fn start(&self, now: &Instant) -> Permit {
        self.try_start(now).expect("the attempt starts")
    }
}

impl<G: Guard + ?Sized> Start for G {}
