use core::time::Duration;

use crate::{FailureKind, Instant, Outcome, ServerHint, hedge::Hedge};

/// What a hedged call remembers: which copy is due when. It launches nothing itself.
///
/// The driver launches the first attempt with [`new`](Self::new), asks [`due`](Self::due) when the next copy is to be
/// launched, tells [`launched`](Self::launched) or [`refused`](Self::refused) when it did or could not, and
/// [`failed`](Self::failed) when one of them failed while others may still come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HedgeState {
    launched: u32,
    most: u32,
    /// `None`: there are no more copies.
    next: Option<Instant>,
}

impl HedgeState {
    /// The first attempt is launched now; the first copy is due after `delay`.
    #[must_use]
    pub fn new(hedge: &Hedge, delay: Duration, now: Instant) -> Self {
        let next = if hedge.max_copies() == 0 { None } else { Some(now.saturating_add(delay)) };
        Self { launched: 1, most: hedge.max_copies().saturating_add(1), next }
    }

    /// When the next copy is to be launched; `None` if there is to be none.
    #[must_use]
    pub const fn due(&self) -> Option<Instant> {
        self.next
    }

    /// How many attempts were launched, the first included.
    #[must_use]
    pub const fn count(&self) -> u32 {
        self.launched
    }

    /// The copy that was due is launched now; the next one is due after `delay`.
    pub fn launched(&mut self, delay: Duration, now: Instant) {
        self.launched = self.launched.saturating_add(1);
        self.next = if self.launched >= self.most { None } else { Some(now.saturating_add(delay)) };
    }

    /// The budget does not pay for the copy that was due: there are no more copies. Those that run go on.
    pub const fn refused(&mut self) {
        self.next = None;
    }

    /// An attempt failed. A copy that is still to come need not wait for its time any more: it is due now, or when the
    /// server has asked for it. After a permanent failure there are no more copies, since the next would end alike, and so
    /// if the server said *never*.
    pub fn failed(&mut self, outcome: &Outcome, now: Instant) {
        if self.next.is_none() {
            return;
        }
        self.next = match outcome {
            Outcome::Failed { hint: Some(ServerHint::AtLeast(asked) | ServerHint::Reserved(asked)), .. } => {
                Some(now.saturating_add(*asked))
            }
            // Our own exhaustion is not mended by one more copy.
            Outcome::Failed { hint: Some(ServerHint::DoNotRetry), .. }
            | Outcome::Failed { kind: FailureKind::LocalExhaustion, .. }
            | Outcome::Permanent
            | Outcome::UnsafeToRetry(_)
            | Outcome::Cancelled => None,
            _ => Some(now),
        };
    }
}
