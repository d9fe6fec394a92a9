//! What the models share.

use ::loom::sync::Arc;
use ::loom::thread;
use stagger_core::Instant;

pub(super) const NOW: Instant = Instant::from_nanos(7_000_000_000);

/// Every interleaving with at most three preemptions, which is where bugs of two words and two threads are.
pub(super) fn model(body: impl Fn() + Sync + Send + 'static) {
    model_with(3, body);
}

/// Every interleaving with at most so many preemptions.
pub(super) fn model_with(preemptions: usize, body: impl Fn() + Sync + Send + 'static) {
    let mut builder = ::loom::model::Builder::new();
    builder.preemption_bound = Some(preemptions);
    builder.check(body);
}

/// All of them at once; the sum of what they give.
pub(super) fn together<B: Send + Sync + 'static>(budget: &Arc<B>, work: &[fn(&B) -> u64]) -> u64 {
    let (here, others) = work.split_first().expect("somebody works");
    let others: Vec<_> = others
        .iter()
        .map(|&work| {
            let budget = Arc::clone(budget);
            thread::spawn(move || work(&budget))
        })
        .collect();
    here(budget) + others.into_iter().map(|thread| thread.join().expect("it does not panic")).sum::<u64>()
}
