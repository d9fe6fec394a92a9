//! Calls that come and end in any order.

use proptest::prelude::*;
use stagger_core::{Budget, FailureKind, Instant, Outcome, guard::BudgetPermit};

/// What happens next, among the calls that are under way.
#[derive(Clone, Copy, Debug)]
pub(super) enum Step {
    /// A call begins.
    Begin,
    /// An attempt fails, its call asks for a retry.
    Fail(usize),
    /// An attempt succeeds.
    Succeed(usize),
    /// A call is dropped in its attempt.
    Abandon(usize),
    /// A call is dropped in its sleep.
    GiveUp(usize),
    /// A sleeper wakes up and makes its attempt.
    Wake(usize),
    /// Time passes, in milliseconds.
    Pass(u64),
}

pub(super) fn steps() -> impl Strategy<Value = Vec<Step>> {
    let step = prop_oneof![
        6 => Just(Step::Begin),
        8 => any::<usize>().prop_map(Step::Fail),
        1 => any::<usize>().prop_map(Step::Succeed),
        1 => any::<usize>().prop_map(Step::Abandon),
        1 => any::<usize>().prop_map(Step::GiveUp),
        6 => any::<usize>().prop_map(Step::Wake),
        2 => (0_u64..400).prop_map(Step::Pass),
    ];
    prop::collection::vec(step, 1..200)
}

/// What went on, counted.
#[derive(Debug, Default)]
pub(super) struct Book {
    pub(super) calls: u64,
    /// Retries that were lent and not given back.
    pub(super) retries: u64,
    pub(super) successes: u64,
    /// Calls in an attempt or in a sleep.
    pub(super) active: u64,
    /// Of these, in a retry or in a sleep.
    pub(super) retrying: u64,
    pub(super) now: u64,
    /// When each of the calls began.
    pub(super) calls_at: Vec<u64>,
    /// When each of the retries was lent.
    pub(super) retries_at: Vec<u64>,
}

impl Book {
    /// Calls and retries since then.
    pub(super) fn since(&self, then: u64) -> (u64, u64) {
        let count = |times: &[u64]| times.iter().filter(|&&time| time >= then).count() as u64;
        (count(&self.calls_at), count(&self.retries_at))
    }
}

/// Plays the steps, and has `check` look at the book after each grant.
pub(super) fn play(
    budget: &dyn Budget,
    steps: &[Step],
    mut check: impl FnMut(&Book) -> Result<(), TestCaseError>,
) -> Result<Book, TestCaseError> {
    let (mut book, mut attempting, mut sleeping) =
        (Book::default(), Vec::<(BudgetPermit, bool)>::new(), Vec::<(BudgetPermit, u64)>::new());
    for &step in steps {
        let now = Instant::from_nanos(book.now);
        let pick = |len: usize, n: usize| (len > 0).then(|| n % len);
        match step {
            Step::Begin => {
                book.calls += 1;
                book.calls_at.push(book.now);
                attempting.push((budget.on_first_attempt(&now), false));
            }
            Step::Fail(n) => {
                let Some(at) = pick(attempting.len(), n) else { continue };
                let (loan, _) = attempting.swap_remove(at);
                budget.record(loan, &Outcome::TRANSIENT, &now);
                if let Some(loan) = budget.try_acquire(FailureKind::Transient, &now) {
                    sleeping.push((loan, book.now));
                    book.retries += 1;
                    book.retries_at.push(book.now);
                    book.active = (attempting.len() + sleeping.len()) as u64;
                    book.retrying = (attempting.iter().filter(|attempt| attempt.1).count() + sleeping.len()) as u64;
                    check(&book)?;
                }
            }
            Step::Succeed(n) => {
                let Some(at) = pick(attempting.len(), n) else { continue };
                budget.record(attempting.swap_remove(at).0, &Outcome::Success, &now);
                book.successes += 1;
            }
            Step::Abandon(n) => {
                let Some(at) = pick(attempting.len(), n) else { continue };
                budget.record(attempting.swap_remove(at).0, &Outcome::Cancelled, &now);
            }
            Step::GiveUp(n) => {
                let Some(at) = pick(sleeping.len(), n) else { continue };
                match sleeping.swap_remove(at) {
                    // It gives nothing back, so it was lent for good.
                    (BudgetPermit::NONE, _) => {}
                    (loan, lent_at) => {
                        budget.release(loan);
                        book.retries -= 1;
                        let lent = book.retries_at.iter().position(|&time| time == lent_at);
                        book.retries_at.swap_remove(lent.expect("it was lent"));
                    }
                }
            }
            Step::Wake(n) => {
                let Some(at) = pick(sleeping.len(), n) else { continue };
                attempting.push((sleeping.swap_remove(at).0, true));
            }
            Step::Pass(ms) => book.now += ms * 1_000_000,
        }
    }
    Ok(book)
}
