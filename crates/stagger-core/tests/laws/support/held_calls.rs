use stagger_core::Outcome;
use stagger_core::guard::LimiterPermit;

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
pub(crate) fn take(permits: &mut Vec<LimiterPermit>, n: usize) -> Option<LimiterPermit> {
    (!permits.is_empty()).then(|| permits.swap_remove(n % permits.len()))
}
