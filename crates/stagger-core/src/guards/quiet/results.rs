//! What happens to a quiet period when an attempt ends: answers, refusals, and pauses that begin.

use super::period::QuietPeriod;
use super::recent::Finding;
use super::state::{PackedState, QuietState};
use crate::guards::hold::Permit;
use crate::guards::now::Now;
use crate::numbers::atomic::Ordering;
use crate::numbers::instant::nanos;
use crate::outcome::{FailureKind, Outcome, ServerHint};

/// The shortest and the longest pause without a hint.
const FIRST_PAUSE: u64 = 1_000_000_000;
const LAST_PAUSE: u64 = 32_000_000_000;
/// The shortest time between two cuts of a return's rate.
const MIN_CUT: u64 = 1_000_000_000;
/// For how long nothing may have been answered in a return before a hint begins another pause.
const UNANSWERED: u64 = 1_000_000_000;

impl QuietPeriod {
    #[inline(never)]
    pub(super) fn record_slowly(&self, permit: Permit, outcome: &Outcome, now: &dyn Now) {
        let (kind, hint) = match outcome {
            Outcome::Success => return self.answered(permit, now),
            Outcome::Permanent => {
                self.admitted.count(now);
                return self.answered(permit, now);
            }
            Outcome::Failed { kind, hint } | Outcome::UnsafeToRetry { kind, hint } => (*kind, *hint),
            Outcome::NotProcessed | Outcome::Cancelled => (FailureKind::LocalExhaustion, None),
        };
        match (kind, hint) {
            (FailureKind::Throttled, Some(ServerHint::AtLeast(length))) if !length.is_zero() => {
                self.asked_for_quiet(permit, nanos(length), now);
            }
            (FailureKind::Throttled, hint) => self.refused(permit, hint, now),
            // The server is in trouble, but it does not ask for quiet.
            (FailureKind::Transient, _) => self.end_probe(permit, now),
            (FailureKind::LocalExhaustion, _) => self.give_back(permit),
        }
    }

    /// Records an answer that is not a refusal.
    fn answered(&self, permit: Permit, now: &dyn Now) {
        if self.load().mode() == QuietState::Returning {
            self.answered_at.store(now.now().as_nanos(), Ordering::Relaxed);
        }
        if self.counts(permit) {
            if self.recent.count(false) == Finding::Clean {
                self.pause.store(0, Ordering::Relaxed);
            }
        } else {
            self.end_probe(permit, now);
        }
    }

    /// Returns whether an outcome counts among the recent ones: those of calls that began before a pause do not.
    pub(super) fn counts(&self, permit: Permit) -> bool {
        let state = self.load();
        state.is_open()
            && match permit {
                Permit::Admitted { generation } | Permit::Probe { generation } => generation == state.generation(),
                Permit::None | Permit::Waiting { .. } => true,
            }
    }

    /// Begins the return, if this is the probe.
    fn end_probe(&self, permit: Permit, now: &dyn Now) {
        let state = self.load();
        if state.mode() == QuietState::Probing && permit == (Permit::Probe { generation: state.generation() }) {
            let at = now.now().as_nanos();
            // Before the state, so that a call that sees the return sees its first release.
            self.next.store(at, Ordering::Release);
            self.answered_at.store(at, Ordering::Relaxed);
            let _ = self.swap(state, state.returning(at));
        }
    }

    /// Gives back the permit of an attempt that was not made, or shows nothing: the next call is the probe in its
    /// place.
    pub(super) fn give_back(&self, permit: Permit) {
        let state = self.load();
        match permit {
            Permit::Waiting { .. } => self.held.leave(permit),
            Permit::Probe { generation } if (state.mode(), state.generation()) == (QuietState::Probing, generation) => {
                // If it fails, a pause has begun in the meantime.
                let _ = self.swap(state, state.unprobed());
            }
            Permit::Probe { .. } | Permit::Admitted { .. } | Permit::None => {}
        }
    }

    /// Records a refusal that says for how long.
    ///
    /// In a return it is a full queue that speaks, as long as others are answered: the rate is too high. Another pause
    /// would let more calls pile up than a busy server can take off, so one would follow the other.
    fn asked_for_quiet(&self, permit: Permit, length: u64, now: &dyn Now) {
        let at = now.now().as_nanos();
        let since = at.saturating_sub(self.answered_at.load(Ordering::Relaxed));
        if self.load().mode() == QuietState::Returning && since <= UNANSWERED {
            self.refused(permit, None, now);
        } else {
            self.pause_for(length, at);
        }
    }

    /// Records a refusal that does not say for how long.
    fn refused(&self, permit: Permit, hint: Option<ServerHint>, now: &dyn Now) {
        let state = self.load();
        match (state.mode(), permit) {
            (QuietState::Open, _) if hint.is_none() && self.counts(permit) && self.has_too_many_refusals() => {
                self.begin_pause(state, self.next_pause(), now.now().as_nanos());
            }
            (QuietState::Probing, Permit::Probe { generation }) if generation == state.generation() => {
                self.begin_pause(state, self.next_pause(), now.now().as_nanos());
            }
            (QuietState::Returning, Permit::Admitted { generation }) if generation == state.generation() => {
                self.cut(state, now.now().as_nanos());
            }
            _ => {}
        }
    }

    /// Cuts the rate of the return. The generation changes, so refusals of calls that began before do not cut it again.
    fn cut(&self, state: PackedState, at: u64) {
        // The queue that was full is still full: a refusal within a second says the same once more.
        if at.saturating_sub(state.time(at)) < MIN_CUT {
            return;
        }
        let interval = self.pace(state, at).cut(at);
        if self.swap(state, state.returning(at)) {
            self.was_cut.store(1, Ordering::Relaxed);
            self.interval.store(interval, Ordering::Release);
        }
    }

    /// Returns the length of a pause without a hint.
    fn next_pause(&self) -> u64 {
        self.pause.load(Ordering::Relaxed).saturating_mul(2).clamp(FIRST_PAUSE, LAST_PAUSE).min(self.settings.max)
    }

    /// Begins a pause of this length, or lengthens the present one; never shortens it.
    pub(super) fn pause_for(&self, length: u64, at: u64) {
        let length = length.min(self.settings.max);
        loop {
            let state = self.load();
            let is_longer = state.mode() != QuietState::Quiet || at.saturating_add(length) > state.time(at);
            if !is_longer || self.begin_pause(state, length, at) {
                return;
            }
        }
    }

    /// Begins a pause, or lengthens that of `state`. Returns false if the state has changed in the meantime.
    fn begin_pause(&self, state: PackedState, length: u64, at: u64) -> bool {
        // Before the state, so that a call that sees the pause predicts its turn from its pace. Of two threads that
        // begin the same pause, both have learned the same.
        match state.mode() {
            QuietState::Open => {
                self.was_cut.store(0, Ordering::Relaxed);
                self.interval.store(self.admitted.interval(at), Ordering::Release);
                self.rejected_at.store(0, Ordering::Relaxed);
            }
            QuietState::Returning => self.interval.store(self.pace(state, at).cut(at), Ordering::Release),
            QuietState::Quiet | QuietState::Probing => {}
        }
        if !self.swap(state, state.quiet(at.saturating_add(length))) {
            return false;
        }
        self.pause.store(length, Ordering::Relaxed);
        self.recent.restart();
        if state.mode() != QuietState::Quiet {
            self.pauses.fetch_add(1, Ordering::Relaxed);
        }
        true
    }
}
