use core::fmt;
use core::time::Duration;
use std::sync::Arc;

use stagger::guard::{Answer, Ask, End, Guard, Now, Permit, QuietPeriod, QuietState};
use stagger::{FailureKind, Instant, Outcome, ServerHint};

use crate::error::{SettingsError, SettingsProblem};
use crate::guards::pause::{Calls, Cause, Pause, PauseClaim};
use crate::keys::{QuietKeys, quiet_keys};
use crate::registry::{FleetHandle, GuardHandle, Registry, Target};
use stagger_lease::claim::Timing;

/// One pause for all processes of a fleet: when the server tells one of them to wait, the others learn it with their
/// next report, at most a second later, and wait as well.
///
/// ```text
/// end of the pause = max over processes of (when it was told + min(hint, max))
/// ```
///
/// Each process has a [`QuietPeriod`], which decides everything that a call asks; this guard tells the store when it is
/// armed, and arms it when the store says so. No call waits for the store.
///
/// - a hint of the server ([`ServerHint::AtLeast`]): begins or lengthens the pause of all, or counts as one vote: see
///   [`Quorum`].
/// - a hint below one second: this process waits; the pause would be over before the others know of it.
/// - too many refusals without a hint: this process waits, and the fleet does if a tenth of the processes, and at least
///   two, wait within ten seconds.
/// - the end: the first process that reports waiting calls in the last second and a half sends the only probe. The
///   others go on waiting until its answer is reported, at most 30 s; then another sends one.
/// - the return: each process starts its waiting calls at the rate that it had learned, beginning up to a second and a
///   half after the answer.
/// - nobody waits: the pause is over a second and a half after its end.
/// - a report is lost in the last second and a half: its process may send a probe of its own.
/// - the store loses its data: processes that were told to wait tell it again, within two reports; if that is too late,
///   each of them sends a probe.
/// - without the store: each process waits for what it was told or had learned, and sends a probe of its own; the ends
///   of a pause are spread over a second.
///
/// Only durations travel: the clocks of the processes do not matter, and calls may use any clock.
///
/// Clones share one quiet period, and so do all of a fleet with the same target.
///
/// # Cost
///
/// As of [`QuietPeriod`], and one relaxed load more to start a call and to record a success.
#[derive(Clone)]
pub struct SharedQuietPeriod {
    handle: Arc<GuardHandle<QuietTarget>>,
}

/// How many processes must have a hint of the server before all processes wait.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum Quorum {
    /// One. The default, for targets that are a quota, such as the calls with one set of credentials: what a `429` says
    /// to one process holds for all.
    #[default]
    One,
    /// At least two, and a tenth of the processes, within ten seconds: for targets that are a host, or many replicas
    /// behind a balancer, of which one may send a `503` while the others work.
    Several,
}

/// Builds a [`SharedQuietPeriod`]. Created by [`Fleet::quiet_period`](crate::Fleet::quiet_period).
#[derive(Debug)]
#[must_use]
pub struct SharedQuietPeriodBuilder<'a> {
    fleet: &'a Arc<FleetHandle>,
    namespace: &'a str,
    target: &'a str,
    local: Option<QuietPeriod>,
    quorum: Quorum,
}

/// The shortest pause that is shared, in microseconds: a shorter one would be over before the others know of it.
const SHORTEST: u64 = Timing::DEFAULT.period;

impl SharedQuietPeriod {
    /// Returns the quiet period of this process, for metrics and snapshots. It learns of a pause of the fleet when the
    /// next call asks.
    #[must_use]
    pub fn local(&self) -> &Arc<QuietPeriod> {
        &self.handle.target.local
    }

    /// Returns how long the pause of the fleet still lasts, by the last reply of the store; zero if there is none.
    #[must_use]
    pub fn remaining(&self) -> Duration {
        Duration::from_micros(self.pause().left(self.handle.fleet.0.now()))
    }

    fn pause(&self) -> &Pause {
        &self.handle.target.pause
    }

    /// Begins or lengthens the pause of this process if the fleet has one that it does not know.
    #[inline]
    fn learn(&self, now: &dyn Now) {
        if let Some(hold) = self.pause().to_apply() {
            self.apply(hold, now);
        }
    }

    #[cold]
    fn apply(&self, hold: u64, now: &dyn Now) {
        let left = hold.saturating_sub(self.handle.fleet.0.now());
        if left > 0 {
            self.local().pause(Duration::from_micros(left), now);
        }
        self.pause().applied(hold);
    }

    /// Notes what an outcome has done to the local quiet period, for the next report.
    #[cold]
    fn note(&self, outcome: &Outcome, now: &dyn Now) {
        let (target, here) = (&self.handle.target, self.handle.fleet.0.now());
        let hint = match outcome {
            Outcome::Failed { kind: FailureKind::Throttled, hint }
            | Outcome::UnsafeToRetry { kind: FailureKind::Throttled, hint } => *hint,
            _ => return self.note_answer(),
        };
        let (length, cause) = match hint {
            Some(ServerHint::AtLeast(length)) if !target.needs_several => (length, Cause::Told),
            Some(ServerHint::AtLeast(length)) => (length, Cause::Decided),
            _ => (target.local.snapshot(now).remaining, Cause::Decided),
        };
        let length = u64::try_from(length.as_micros()).unwrap_or(u64::MAX).min(target.longest);
        if length >= SHORTEST && target.pause.wait_until(here + length, cause) {
            self.handle.fleet.0.wake.notify_one();
        }
    }

    /// Reports early that the probe was answered, which the others wait for.
    fn note_answer(&self) {
        let is_answered = || self.handle.target.calls() == Calls::Starting;
        if self.pause().is_known() && is_answered() && self.pause().add_news() {
            self.handle.fleet.0.wake.notify_one();
        }
    }
}

impl fmt::Debug for SharedQuietPeriod {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let QuietTarget { name, local, .. } = &*self.handle.target;
        let mut debug = f.debug_struct("SharedQuietPeriod");
        debug.field("target", name).field("remaining", &self.remaining()).field("local", local).finish()
    }
}

impl Guard for SharedQuietPeriod {
    fn name(&self) -> &'static str {
        self.local().name()
    }

    #[inline]
    fn ask(&self, ask: Ask, held: Permit, now: &dyn Now) -> Answer {
        self.learn(now);
        let answer = self.local().ask(ask, held, now);
        if !matches!(answer, Answer::Go(_)) {
            self.pause().want();
        }
        answer
    }

    #[inline]
    fn would_refuse(&self, after: Duration, latest: Option<Instant>, now: &dyn Now) -> bool {
        self.learn(now);
        self.local().would_refuse(after, latest, now)
    }

    #[inline]
    fn settle(&self, permit: Permit, end: End<'_>, now: &dyn Now) {
        self.local().settle(permit, end, now);
        match end {
            End::Made(outcome) if *outcome != Outcome::Success || self.pause().is_known() => self.note(outcome, now),
            _ => {}
        }
    }

    fn retry_in(&self, now: &dyn Now) -> Duration {
        self.learn(now);
        self.local().retry_in(now)
    }

    fn is_at_rest(&self, now: &dyn Now) -> bool {
        self.pause().to_apply().is_none() && !self.pause().is_known() && self.local().is_at_rest(now)
    }
}

impl<'a> SharedQuietPeriodBuilder<'a> {
    pub(crate) const fn new(fleet: &'a Arc<FleetHandle>, namespace: &'a str, target: &'a str) -> Self {
        Self { fleet, namespace, target, local: None, quorum: Quorum::One }
    }

    /// Sets the quiet period of this process, with its mode and bounds. Its [`max`](QuietPeriod::max) also bounds what
    /// the fleet may be told. If the target has one in this process already, that one stays. Default:
    /// [`QuietPeriod::new`], which lets calls wait and pauses for at most 5 min.
    pub fn local(self, quiet: QuietPeriod) -> Self {
        Self { local: Some(quiet), ..self }
    }

    /// Sets how many processes must have a hint of the server before all processes wait. Default: [`Quorum::One`].
    pub fn hints(self, quorum: Quorum) -> Self {
        Self { quorum, ..self }
    }

    /// Creates the quiet period, open.
    ///
    /// # Errors
    /// Every problem at once: a target without a name or with one of more than 128 bytes. Then: the target has another
    /// longest pause or quorum in this fleet, or the fleet has 64 guards.
    pub fn build(self) -> Result<SharedQuietPeriod, SettingsError> {
        let Self { fleet, namespace, target, local, quorum } = self;
        SettingsError::check(SettingsProblem::of_name(target))?;
        let local = local.unwrap_or_default();
        let target = QuietTarget {
            name: target.into(),
            keys: quiet_keys(namespace, target),
            longest: u64::try_from(local.max().as_micros()).unwrap_or(u64::MAX),
            needs_several: quorum == Quorum::Several,
            local: Arc::new(local),
            pause: Pause::default(),
        };
        Ok(SharedQuietPeriod { handle: Registry::hold(fleet, target)? })
    }
}

/// One quiet period of a fleet in this process.
#[derive(Debug)]
pub(crate) struct QuietTarget {
    pub(crate) name: Box<str>,
    pub(crate) keys: QuietKeys,
    /// The longest pause, in microseconds.
    pub(crate) longest: u64,
    /// Whether several processes must be told to wait before all wait.
    pub(crate) needs_several: bool,
    pub(crate) local: Arc<QuietPeriod>,
    pub(crate) pause: Pause,
}

impl QuietTarget {
    /// Returns what the calls of this process do.
    pub(crate) fn calls(&self) -> Calls {
        // The clock is asked for the rest of a pause alone.
        match self.local.snapshot(&Instant::ZERO).state {
            QuietState::Quiet => Calls::Held,
            QuietState::Probing => Calls::Probing,
            _ => Calls::Starting,
        }
    }

    /// Returns the claim of this process for the next report.
    pub(crate) fn claim(&self, now: u64) -> PauseClaim {
        let has_waiting = self.local.snapshot(&Instant::ZERO).waiting > 0;
        self.pause.claim(self.calls(), has_waiting, self.longest, now)
    }
}

impl Target for QuietTarget {
    fn name(&self) -> &str {
        &self.name
    }

    fn is_like(&self, other: &Self) -> bool {
        (self.longest, self.needs_several) == (other.longest, other.needs_several)
    }
}
