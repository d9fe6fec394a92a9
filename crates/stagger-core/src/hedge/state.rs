use core::time::Duration;

use crate::hedge::Hedge;
use crate::numbers::instant::Instant;
use crate::outcome::{FailureKind, Outcome, ServerHint};

/// The state of one hedged call: which copy is due when. It launches nothing itself.
///
/// The driver launches the first attempt with [`new`](Self::new), gets the time of the next copy from
/// [`due`](Self::due), reports with [`launched`](Self::launched) or [`rejected`](Self::rejected) whether it could launch
/// the copy, and with [`failed`](Self::failed) that an attempt failed while others are still possible.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HedgeState {
    launched: u32,
    most: u32,
    /// `None`: there are no more copies.
    next: Option<Instant>,
}

impl HedgeState {
    /// Creates the state of a call whose first attempt is launched at `now`; the first copy is due after `delay`.
    #[must_use]
    pub fn new(hedge: &Hedge, delay: Duration, now: Instant) -> Self {
        let next = if hedge.max_copies() == 0 { None } else { Some(now.saturating_add(delay)) };
        Self { launched: 1, most: hedge.max_copies().saturating_add(1), next }
    }

    /// Returns when to launch the next copy; `None` if there is none.
    #[must_use]
    pub const fn due(&self) -> Option<Instant> {
        self.next
    }

    /// Returns how many attempts were launched, the first included.
    #[must_use]
    pub const fn count(&self) -> u32 {
        self.launched
    }

    /// Records that the due copy is launched at `now`; the next one is due after `delay`.
    pub fn launched(&mut self, delay: Duration, now: Instant) {
        self.launched = self.launched.saturating_add(1);
        self.next = if self.launched >= self.most { None } else { Some(now.saturating_add(delay)) };
    }

    /// Records that the budget rejected the due copy: there are no more copies. Running attempts continue.
    pub const fn rejected(&mut self) {
        self.next = None;
    }

    /// Records that an attempt failed. The next copy no longer waits for its delay: it is due now, or when the server's
    /// hint asks for it. After a failure that is permanent or unsafe to retry, after a cancellation, after
    /// [`ServerHint::DoNotRetry`], and after the client ran out of a resource of its own there are no more copies,
    /// because they would end alike.
    pub fn failed(&mut self, outcome: &Outcome, now: Instant) {
        if self.next.is_none() {
            return;
        }
        self.next = match outcome {
            Outcome::Failed { hint: Some(ServerHint::AtLeast(asked) | ServerHint::Reserved(asked)), .. } => {
                Some(now.saturating_add(*asked))
            }
            // One more copy does not help if the client has run out of a resource.
            Outcome::Failed { hint: Some(ServerHint::DoNotRetry), .. }
            | Outcome::Failed { kind: FailureKind::LocalExhaustion, .. }
            | Outcome::Permanent
            | Outcome::UnsafeToRetry(_)
            | Outcome::Cancelled => None,
            _ => Some(now),
        };
    }
}
