//! Calls that start and end in any order.

use proptest::prelude::*;
use stagger_core::guard::{End, Permit};
use stagger_core::{FailureKind, Guard, Instant, Outcome};

use crate::laws::support::Start;

/// The next event among the calls in flight.
#[derive(Clone, Copy, Debug)]
pub(super) enum Step {
    /// A call starts.
    Begin,
    /// An attempt fails, and its call requests a retry.
    Fail(usize),
    /// An attempt succeeds.
    Succeed(usize),
    /// A call is dropped during an attempt.
    Abandon(usize),
    /// A call is dropped during a backoff.
    Release(usize),
    /// A backoff ends, and the call makes its attempt.
    Wake(usize),
    /// Time passes, in milliseconds.
    Advance(u64),
}

pub(super) fn steps() -> impl Strategy<Value = Vec<Step>> {
    let step = prop_oneof![
        6 => Just(Step::Begin),
        8 => any::<usize>().prop_map(Step::Fail),
        1 => any::<usize>().prop_map(Step::Succeed),
        1 => any::<usize>().prop_map(Step::Abandon),
        1 => any::<usize>().prop_map(Step::Release),
        6 => any::<usize>().prop_map(Step::Wake),
        2 => (0_u64..400).prop_map(Step::Advance),
    ];
    prop::collection::vec(step, 1..200)
}

/// Counts of what happened.
#[derive(Debug, Default)]
pub(super) struct Tally {
    pub(super) calls: u64,
    /// Retries that were granted and not released.
    pub(super) retries: u64,
    pub(super) successes: u64,
    /// Calls in an attempt or a backoff.
    pub(super) active: u64,
    /// Active calls in a retry or a backoff.
    pub(super) retrying: u64,
    pub(super) now: u64,
    /// The start of each call.
    pub(super) calls_at: Vec<u64>,
    /// The time at which each retry was granted.
    pub(super) retries_at: Vec<u64>,
}

impl Tally {
    /// Returns the calls and retries since `then`.
    pub(super) fn since(&self, then: u64) -> (u64, u64) {
        let count = |times: &[u64]| times.iter().filter(|&&time| time >= then).count() as u64;
        (count(&self.calls_at), count(&self.retries_at))
    }
}

/// Runs the steps, and calls `check` with the tally after each grant.
pub(super) fn run_steps(
    budget: &dyn Guard,
    steps: &[Step],
    mut check: impl FnMut(&Tally) -> Result<(), TestCaseError>,
) -> Result<Tally, TestCaseError> {
    let (mut tally, mut attempting, mut sleeping) =
        (Tally::default(), Vec::<(Permit, bool)>::new(), Vec::<(Permit, u64)>::new());
    for &step in steps {
        let now = Instant::from_nanos(tally.now);
        let pick = |len: usize, n: usize| (len > 0).then(|| n % len);
        match step {
            Step::Begin => {
                tally.calls += 1;
                tally.calls_at.push(tally.now);
                attempting.push((budget.start(&now), false));
            }
            Step::Fail(n) => {
                let Some(at) = pick(attempting.len(), n) else { continue };
                let (permit, _) = attempting.swap_remove(at);
                budget.settle(permit, End::Made(&Outcome::TRANSIENT), &now);
                if let Some(permit) = budget.reserve(FailureKind::Transient, &now) {
                    sleeping.push((permit, tally.now));
                    tally.retries += 1;
                    tally.retries_at.push(tally.now);
                    tally.active = (attempting.len() + sleeping.len()) as u64;
                    tally.retrying = (attempting.iter().filter(|attempt| attempt.1).count() + sleeping.len()) as u64;
                    check(&tally)?;
                }
            }
            Step::Succeed(n) => {
                let Some(at) = pick(attempting.len(), n) else { continue };
                budget.settle(attempting.swap_remove(at).0, End::Made(&Outcome::Success), &now);
                tally.successes += 1;
            }
            Step::Abandon(n) => {
                let Some(at) = pick(attempting.len(), n) else { continue };
                budget.settle(attempting.swap_remove(at).0, End::Made(&Outcome::Cancelled), &now);
            }
            Step::Release(n) => {
                let Some(at) = pick(sleeping.len(), n) else { continue };
                let (permit, granted_at) = sleeping.swap_remove(at);
                budget.settle(permit, End::NeverMade, &now);
                tally.retries -= 1;
                let index = tally.retries_at.iter().position(|&time| time == granted_at);
                tally.retries_at.swap_remove(index.expect("the retry was granted"));
            }
            Step::Wake(n) => {
                let Some(at) = pick(sleeping.len(), n) else { continue };
                attempting.push((sleeping.swap_remove(at).0, true));
            }
            Step::Advance(ms) => tally.now += ms * 1_000_000,
        }
    }
    Ok(tally)
}
