//! The machine that keeps a connection open, and what it reports while the server cannot be reached.

use core::ops::Deref;
use core::time::Duration;

use super::decision::{Decision, DelaySource, StopReason};
use super::retry::{Health, RetryMachine};
use super::state::RetryState;
use super::strategy::RetryPlan;
use crate::guards::guard::{Guard, Guards, Permits};
use crate::numbers::instant::Instant;
use crate::numbers::random::Seed;
use crate::outcome::Outcome;
use crate::policy::Policy;

/// Decides for a long-lived connection when to connect, when to retry and when to give up.
///
/// Like [`RetryMachine`] it reads no clock and does no I/O. The driver reports every event with the [`Generation`] of
/// the connection that it belongs to, and does what the returned [`ReconnectStep`] says. A report about an earlier
/// connection, or the second report of one loss (an error *and* a close), is answered with [`ReconnectStep::Stale`] and
/// changes nothing, so one loss never schedules two reconnects.
///
/// - Every loss of an open connection is spread, because it may have hit every client of the server.
/// - After the loss of a healthy connection an *episode* begins: the first wait is a draw from the policy's spread, and
///   the backoff begins with the first failure after it, as in a call. Without a spread, the loss is the backoff's
///   first failure, and so it is the first of the `max_attempts`: at 4, there are three attempts to reconnect, after
///   the delays of a call's three retries.
/// - After any other loss, the count and the backoff go on: the wait is the larger of a draw from the spread and the
///   backoff's delay. A server that dies again soon after its restart does not meet all its clients at once.
/// - A connection is healthy if it was open for at least the policy's `stable_after`; if that is not set, for the
///   larger of 10 s and the last wait. With a `stable_after` of zero, the backoff restarts as soon as a connection is
///   open, so without a spread, or with [exact hints](crate::ServerHint#exact-hints), a server that accepts and then
///   drops connections causes a hot loop. Otherwise exact hints shorten three waits in a row at most, whether or not
///   the connections between were open.
/// - While a guard lets attempts wait, one that is due waits for its turn: the step is another wait, and the wait
///   counts as elapsed time but not for the backoff.
/// - It gives up only at a limit of the policy, at a permanent failure, or if a guard rejects the attempt. After ten
///   failed attempts in a row, [`unreachable`](Self::unreachable) says for how long.
/// - After giving up, and at any other time, [`reconnect_now`](Self::reconnect_now) begins a new episode at once.
///
/// ```
/// use core::time::Duration;
/// use stagger_core::{Guards, Instant, Outcome, Policy, machine::ReconnectMachine, Seed, machine::ReconnectStep};
///
/// let policy = Policy::exponential(Duration::from_millis(500), Duration::from_secs(30))
///     .spread(Duration::from_secs(10))
///     .build()?;
/// let (guards, at) = (Guards::none(), |s: u64| Instant::from_nanos(s * 1_000_000_000));
/// let mut link = ReconnectMachine::new(Seed::new(1));
///
/// let ReconnectStep::Connect { generation } = link.reconnect_now(&policy, || at(0), &guards) else { panic!() };
/// link.opened(generation, || at(1), &guards);
/// let step = link.ended(generation, Outcome::TRANSIENT, at(60), &policy, &guards);
/// let ReconnectStep::Wait { after, .. } = step else { panic!() };
/// assert!(after <= Duration::from_secs(10));
/// assert_eq!(link.ended(generation, Outcome::TRANSIENT, at(60), &policy, &guards), ReconnectStep::Stale);
/// # Ok::<(), stagger_core::PolicyError>(())
/// ```
#[derive(Debug)]
pub struct ReconnectMachine {
    state: RetryState,
    seed: Seed,
    generation: Generation,
    phase: ReconnectPhase,
    permit: Permits,
    last_wait: Duration,
    /// What determined `last_wait`: the rest of a hint is still a hint.
    source: DelaySource,
    is_distrusted: bool,
    /// Since the last connection ended, or the first attempt began; none while a connection is open.
    outage: Option<Outage>,
}

/// The number of a connection, which every report names.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Generation(u64);

impl Generation {
    /// Returns the number: 1 for the first connection, one more for each further attempt to connect.
    #[must_use]
    pub const fn get(self) -> u64 {
        self.0
    }
}

/// The phase of a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum ReconnectPhase {
    /// Nothing has begun.
    Idle,
    /// An attempt to connect is in progress.
    Connecting,
    /// The connection is open.
    Open {
        /// When it was opened.
        since: Instant,
    },
    /// The next attempt is scheduled.
    Waiting {
        /// When it is due.
        until: Instant,
    },
    /// No further attempt is made, unless [`ReconnectMachine::reconnect_now`] requests one.
    GivenUp(StopReason),
    /// The connection was closed on purpose, for good.
    Closed,
}

/// What the driver has to do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[must_use]
#[non_exhaustive]
pub enum ReconnectStep {
    /// Connect, and report the result under this generation.
    Connect {
        /// The generation for the reports.
        generation: Generation,
    },
    /// Wait, then call [`ReconnectMachine::due`].
    Wait {
        /// How long to wait.
        after: Duration,
        /// When the wait is over.
        until: Instant,
        /// What determined the wait.
        source: DelaySource,
    },
    /// Nothing: no action is required until the next event.
    Rest,
    /// Give up and report this reason.
    GiveUp(StopReason),
    /// Ignore the event: it belongs to an earlier connection, or to one whose loss was already reported. Nothing has
    /// changed.
    Stale,
}

impl ReconnectMachine {
    /// Creates an idle machine; [`reconnect_now`](Self::reconnect_now) starts it.
    #[must_use]
    pub const fn new(seed: Seed) -> Self {
        Self {
            state: RetryState::new(),
            seed,
            generation: Generation(0),
            phase: ReconnectPhase::Idle,
            permit: Permits::NONE,
            last_wait: Duration::ZERO,
            source: DelaySource::Schedule,
            is_distrusted: false,
            outage: None,
        }
    }

    /// Returns the phase of the connection.
    #[must_use]
    pub const fn phase(&self) -> ReconnectPhase {
        self.phase
    }

    /// Returns the generation of the current connection or attempt.
    #[must_use]
    pub const fn generation(&self) -> Generation {
        self.generation
    }

    /// Returns the number of attempts made in this episode.
    #[must_use]
    pub const fn attempt(&self) -> u32 {
        self.state.attempt()
    }

    /// Returns for how long and how many attempts the server could not be reached, if at least ten attempts to connect
    /// have failed since the last connection was open. A connection that opens and is lost at once counts as open;
    /// [`reconnect_now`](Self::reconnect_now) does not restart the count.
    #[must_use]
    pub const fn unreachable(&self) -> Option<Unreachable> {
        match &self.outage {
            Some(outage) => outage.unreachable(),
            None => None,
        }
    }

    /// Returns [`unreachable`](Self::unreachable) if it is due to be reported, and `None` at the next call: after the
    /// tenth failed attempt in a row, and then each time the outage has lasted twice as long as at the last report.
    /// Call it after [`ended`](Self::ended).
    pub const fn take_unreachable_report(&mut self) -> Option<Unreachable> {
        match &mut self.outage {
            Some(outage) => outage.take_report(),
            None => None,
        }
    }

    /// Begins a new episode and connects at once: at the start, after giving up, during a wait, or to replace an open
    /// connection. After [`close`](Self::close) it does nothing.
    pub fn reconnect_now(
        &mut self,
        policy: &Policy,
        now: impl FnOnce() -> Instant,
        guards: &Guards<'_, impl Deref<Target: Guard>>,
    ) -> ReconnectStep {
        if self.phase == ReconnectPhase::Closed {
            return ReconnectStep::Rest;
        }
        let now = now();
        self.settle_unfinished(now, guards);
        self.state.begin_episode();
        self.connect(policy, now, guards)
    }

    /// Connects if the wait is over; otherwise returns a step with the remaining wait.
    pub fn due(
        &mut self,
        policy: &Policy,
        now: Instant,
        guards: &Guards<'_, impl Deref<Target: Guard>>,
    ) -> ReconnectStep {
        match self.phase {
            ReconnectPhase::Waiting { until } if now >= until => self.connect(policy, now, guards),
            ReconnectPhase::Waiting { until } => {
                ReconnectStep::Wait { after: until.saturating_since(now), until, source: self.source }
            }
            _ => ReconnectStep::Rest,
        }
    }

    /// Records that the attempt succeeded and the connection is open.
    pub fn opened(
        &mut self,
        generation: Generation,
        now: impl FnOnce() -> Instant,
        guards: &Guards<'_, impl Deref<Target: Guard>>,
    ) -> ReconnectStep {
        if generation != self.generation || self.phase != ReconnectPhase::Connecting {
            return ReconnectStep::Stale;
        }
        let since = now();
        guards.record(Permits::take(&mut self.permit), &Outcome::Success, &since);
        self.phase = ReconnectPhase::Open { since };
        self.outage = None;
        ReconnectStep::Rest
    }

    /// Marks the open connection as unhealthy, however long it stays open, because its server failed while it was open.
    /// When it ends, the count and the backoff go on.
    pub fn distrust(&mut self, generation: Generation) {
        self.is_distrusted |= generation == self.generation;
    }

    /// Returns whether the connection has been open for long enough at `now` to show that its server accepts this
    /// client: for as long as a healthy one, and if the policy's `stable_after` is zero, for as long as if it were not
    /// set. What the server rejects later, such as credentials, it had accepted before.
    #[must_use]
    pub fn is_accepted(&self, policy: &Policy, now: Instant) -> bool {
        let ReconnectPhase::Open { since } = self.phase else { return false };
        let lived = now.saturating_since(since);
        let health = match policy.stable_after() {
            // To be open proves nothing: a server may accept every connection, and reject its credentials then.
            Some(Duration::ZERO) => Health::by_default(lived, self.last_wait),
            _ => Health::after(policy, lived, self.last_wait),
        };
        health == Health::Stable && !self.is_distrusted
    }

    /// Records that the attempt failed or that the connection was lost, for this reason. [`Outcome::Success`] means
    /// that the connection ended normally and is still wanted. `plan` is the policy, or a [`RetryPlan`] that adds a
    /// strategy to it.
    pub fn ended<'a>(
        &mut self,
        generation: Generation,
        outcome: Outcome,
        now: Instant,
        plan: impl Into<RetryPlan<'a>>,
        guards: &Guards<'_, impl Deref<Target: Guard>>,
    ) -> ReconnectStep {
        if generation != self.generation {
            return ReconnectStep::Stale;
        }
        let RetryPlan { policy, strategy } = plan.into();
        let decision = match self.phase {
            ReconnectPhase::Open { since } => {
                let health = match self.is_distrusted {
                    true => Health::Failed,
                    false => Health::after(policy, now.saturating_since(since), self.last_wait),
                };
                self.outage = Some(Outage::new(now));
                self.retry(policy).strategy(strategy).lost(health, outcome, || now, guards)
            }
            ReconnectPhase::Connecting => {
                let permit = Permits::take(&mut self.permit);
                // A connection that was refused as a stream may be retried at once. One that "succeeded" without ever
                // being open has failed.
                let outcome = if outcome == Outcome::Success { Outcome::TRANSIENT } else { outcome };
                let decision = self.retry(policy).strategy(strategy).decide(outcome, permit, || now, guards);
                // The one immediate repeat belongs to the same attempt.
                if !matches!(decision, Decision::Retry { source: DelaySource::Transparent, .. }) {
                    self.outage.get_or_insert(Outage::new(now)).attempt_failed(now);
                }
                decision
            }
            _ => return ReconnectStep::Stale,
        };
        match decision {
            Decision::Retry { after, source, permit } => {
                self.permit = permit;
                (self.last_wait, self.source) = (after, source);
                let until = now.saturating_add(after);
                self.phase = ReconnectPhase::Waiting { until };
                ReconnectStep::Wait { after, until, source }
            }
            Decision::Stop(stop) => self.give_up(stop),
            Decision::Done => ReconnectStep::Rest,
        }
    }

    /// Closes the connection for good: no further attempt is made, and every later report is stale.
    pub fn close(&mut self, now: impl FnOnce() -> Instant, guards: &Guards<'_, impl Deref<Target: Guard>>) {
        self.settle_unfinished(now(), guards);
        self.phase = ReconnectPhase::Closed;
    }

    fn connect(
        &mut self,
        policy: &Policy,
        now: Instant,
        guards: &Guards<'_, impl Deref<Target: Guard>>,
    ) -> ReconnectStep {
        let mut permit = Permits::take(&mut self.permit);
        match self.retry(policy).turn(&mut permit, || now, guards) {
            Ok(after) if !after.is_zero() => {
                self.permit = permit;
                self.source = DelaySource::Hint;
                let until = now.saturating_add(after);
                self.phase = ReconnectPhase::Waiting { until };
                ReconnectStep::Wait { after, until, source: self.source }
            }
            Ok(_) => {
                self.permit = permit;
                self.generation.0 += 1;
                self.is_distrusted = false;
                self.phase = ReconnectPhase::Connecting;
                self.outage.get_or_insert(Outage::new(now));
                ReconnectStep::Connect { generation: self.generation }
            }
            Err(stop) => self.give_up(stop),
        }
    }

    const fn give_up(&mut self, stop: StopReason) -> ReconnectStep {
        self.phase = ReconnectPhase::GivenUp(stop);
        ReconnectStep::GiveUp(stop)
    }

    /// Settles the permits of an attempt that is not completed.
    fn settle_unfinished(&mut self, now: Instant, guards: &Guards<'_, impl Deref<Target: Guard>>) {
        let permit = Permits::take(&mut self.permit);
        match self.phase {
            ReconnectPhase::Waiting { .. } => guards.give_back(permit, &now),
            ReconnectPhase::Connecting => guards.abandon(permit, || now),
            _ => {}
        }
    }

    const fn retry<'a>(&'a mut self, policy: &'a Policy) -> RetryMachine<'a> {
        RetryMachine::new(policy, &mut self.state, self.seed)
    }
}

/// A server that could not be reached for at least ten attempts in a row.
///
/// A connection that is kept up does not give up by default, so this is what it tells its user: a banner in a user
/// interface, a line in a log. See [`ReconnectMachine::unreachable`](crate::machine::ReconnectMachine::unreachable).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Unreachable {
    /// When the last connection ended, or, if there was none, when the first attempt began.
    pub since: Instant,
    /// The time from then until the latest attempt failed.
    pub lasted: Duration,
    /// The number of attempts that have failed since, in a row.
    pub attempts: u32,
}

/// Counts failed attempts to connect, and says when to report them.
#[derive(Clone, Copy, Debug)]
pub(super) struct Outage {
    unreachable: Unreachable,
    /// How long it must have lasted for the next report.
    next_report: Duration,
    is_report_due: bool,
}

impl Outage {
    /// The number of failed attempts in a row before the first report.
    const ATTEMPTS: u32 = 10;
    /// The shortest time between reports, for attempts that fail without a wait between them.
    const SHORTEST: Duration = Duration::from_secs(1);

    pub(super) const fn new(since: Instant) -> Self {
        let unreachable = Unreachable { since, lasted: Duration::ZERO, attempts: 0 };
        Self { unreachable, next_report: Duration::ZERO, is_report_due: false }
    }

    /// Records that an attempt has failed.
    pub(super) fn attempt_failed(&mut self, now: Instant) {
        let Unreachable { since, lasted, attempts } = &mut self.unreachable;
        *attempts = attempts.saturating_add(1);
        *lasted = now.saturating_since(*since);
        if *attempts >= Self::ATTEMPTS && *lasted >= self.next_report {
            self.next_report = lasted.saturating_mul(2).max(lasted.saturating_add(Self::SHORTEST));
            self.is_report_due = true;
        }
    }

    /// Returns the state; `None` below ten failed attempts.
    pub(super) const fn unreachable(&self) -> Option<Unreachable> {
        if self.unreachable.attempts >= Self::ATTEMPTS { Some(self.unreachable) } else { None }
    }

    /// Returns the state if it is to be reported now.
    pub(super) const fn take_report(&mut self) -> Option<Unreachable> {
        if core::mem::replace(&mut self.is_report_due, false) { self.unreachable() } else { None }
    }
}
