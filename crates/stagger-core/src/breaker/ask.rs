//! Asking: what a call is told that wants to begin.

use core::time::Duration;

use super::circuit::CircuitBreaker;
use super::ledger::Opening;
use super::packed_state::{Mode, PackedState, permit};
use super::snapshot::TransitionCause;
use crate::instant::nanos;
use crate::{BreakerOpen, ServerHint, guard::BreakerPermit, guard::Enforcement, guard::Now};

/// What a refused call is told when it cannot be known: during a change of state, and as the least in a half-open one.
const MIN_RETRY_IN: u64 = 1_000_000;

impl CircuitBreaker {
    fn permit(&self, state: PackedState, now: &dyn Now) -> BreakerPermit {
        // Who asks for the time pays for it.
        let start = if self.rules.slow.is_some() { now.now().as_nanos() } else { 0 };
        permit(state.generation(), start)
    }

    /// Not inlined: the usual call is let pass without it.
    #[inline(never)]
    pub(super) fn admit_slowly(&self, now: &dyn Now) -> Result<BreakerPermit, BreakerOpen> {
        let ledger = &self.ledger.0;
        loop {
            let state = self.load();
            match state.mode() {
                Mode::Closed => return Ok(self.permit(state, now)),
                Mode::ForcedClosed => return Ok(BreakerPermit::NONE),
                Mode::Open => {
                    let at = now.now().as_nanos();
                    if at >= ledger.until.get() {
                        match self.half_open(state, at) {
                            true => return Ok(permit(state.next_generation(), at)),
                            false => continue,
                        }
                    }
                }
                Mode::HalfOpen => {
                    let at = now.now().as_nanos();
                    if state.taken() < u64::from(self.rules.probes) {
                        // Before the place is taken, or somebody could find a probe that has been out for long.
                        ledger.probed.raise(at);
                        match self.swap(state, state.with_probe()) {
                            true => return Ok(permit(state.generation(), at)),
                            false => continue,
                        }
                    }
                    if self.is_overdue(state, at) {
                        self.trip(
                            state,
                            self.overdue_from(),
                            None,
                            TransitionCause::ProbeWait,
                            self.probes_found(state),
                            0,
                        );
                        continue;
                    }
                }
                Mode::ForcedOpen | Mode::Changing => {}
            }
            let Some(left) = self.time_until_admission(now) else { continue };
            match self.enforcement() {
                Enforcement::Enforced => {
                    ledger.refusals.increment();
                    return Err(BreakerOpen { retry_in: Duration::from_nanos(left) });
                }
                Enforcement::Observed => ledger.would_have_refused.increment(),
                Enforcement::Off => {}
            }
            return Ok(BreakerPermit::NONE);
        }
    }

    /// How long it refuses, in nanoseconds, at least 1; `None` if it would let a call pass now.
    pub(super) fn time_until_admission(&self, now: &dyn Now) -> Option<u64> {
        let ledger = &self.ledger.0;
        let state = self.load();
        let left = match state.mode() {
            Mode::Closed | Mode::ForcedClosed => 0,
            Mode::Changing => MIN_RETRY_IN,
            Mode::ForcedOpen => self.open.bounds(1).map_or(MIN_RETRY_IN, |(_, longest)| nanos(longest)),
            Mode::Open => ledger.until.get().saturating_sub(now.now().as_nanos()),
            Mode::HalfOpen if state.taken() < u64::from(self.rules.probes) => 0,
            Mode::HalfOpen => {
                let at = now.now().as_nanos();
                let overdue = self.overdue_from();
                if self.is_overdue(state, at) {
                    // It opened when the probe was due, though nobody has looked.
                    overdue.saturating_add(self.length(ledger.opening().next(), None)).saturating_sub(at)
                } else {
                    // What has been on its way for so long takes about as long again.
                    at.saturating_sub(ledger.probed.get()).max(MIN_RETRY_IN).min(overdue.saturating_sub(at))
                }
            }
        };
        (left > 0).then_some(left)
    }

    /// When the probes that are out had the longest wait behind them.
    pub(super) fn overdue_from(&self) -> u64 {
        self.ledger.0.probed.get().saturating_add(self.rules.probe_wait)
    }

    pub(super) fn is_overdue(&self, state: PackedState, at: u64) -> bool {
        state.in_flight() > 0 && at >= self.overdue_from()
    }

    pub(super) fn length(&self, opening: Opening, hint: Option<ServerHint>) -> u64 {
        opening.length(hint, &self.open, self.seed)
    }
}
