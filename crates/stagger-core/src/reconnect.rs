use core::time::Duration;

use crate::guard::Permits;
use crate::{
    DelaySource, Guards, Instant, Outcome, Policy, Seed, StopReason, machine::Decision, machine::Health,
    machine::RetryMachine, machine::RetryState,
};

/// What a connection must have lived at least to count as healthy, if the policy does not say.
const STABLE_AFTER: Duration = Duration::from_secs(10);

/// The decisions of something that keeps one connection up: when to connect, when to try again, when to give up.
///
/// Like [`RetryMachine`] it reads no clock and does no I/O. Whoever drives it tells it what happened, each time with the
/// [`Generation`] of the connection that it happened to, and does what the [`ReconnectStep`] says. A report about a connection
/// that is not the present one, or the second report of one loss (an error *and* a close), is answered with
/// [`ReconnectStep::Stale`] and changes nothing, so one loss can never schedule twice.
///
/// - After the loss of a connection that had been healthy an *episode* begins: the first wait is the policy's spread,
///   and the backoff begins with the first failure after it. Without a spread, the loss is the backoff's first failure.
/// - A connection is healthy if it lived at least the policy's `stable_after`; where that is not set, the larger of
///   10 s and the last wait. Zero starts the backoff again as soon as a connection is open, which a server that
///   accepts and then drops turns into a hot loop.
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
/// let ReconnectStep::Wait { after, .. } = link.ended(generation, Outcome::TRANSIENT, at(60), &policy, &guards) else { panic!() };
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
    /// Where `last_wait` came from: what is left of a hint is still a hint.
    source: DelaySource,
    is_distrusted: bool,
}

/// Which connection a report is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Generation(u64);

impl Generation {
    /// Its number: 1 for the first connection, one more for each further attempt to connect.
    #[must_use]
    pub const fn get(self) -> u64 {
        self.0
    }
}

/// Where a connection stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum ReconnectPhase {
    /// Nothing has begun.
    Idle,
    /// An attempt to connect is being made.
    Connecting,
    /// The connection is up.
    Open {
        /// Since when.
        since: Instant,
    },
    /// The next attempt waits for its time.
    Waiting {
        /// When it is made.
        until: Instant,
    },
    /// No further attempt is made, unless [`ReconnectMachine::reconnect_now`] asks for one.
    GivenUp(StopReason),
    /// It was closed on purpose, for good.
    Closed,
}

/// What the driver shall do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[must_use]
#[non_exhaustive]
pub enum ReconnectStep {
    /// Connect, and report how it went under this generation.
    Connect {
        /// What reports are made under.
        generation: Generation,
    },
    /// Wait, then call [`ReconnectMachine::due`].
    Wait {
        /// How long.
        after: Duration,
        /// When the wait is over.
        until: Instant,
        /// Where the delay comes from.
        source: DelaySource,
    },
    /// Nothing until something happens.
    Rest,
    /// Give up: tell the user.
    GiveUp(StopReason),
    /// The report was about an earlier connection, or about one whose loss is known. Nothing has changed.
    Stale,
}

impl ReconnectMachine {
    /// Nothing has begun; [`reconnect_now`](Self::reconnect_now) begins.
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
        }
    }

    /// Where the connection stands.
    #[must_use]
    pub const fn phase(&self) -> ReconnectPhase {
        self.phase
    }

    /// The generation of the present connection or attempt.
    #[must_use]
    pub const fn generation(&self) -> Generation {
        self.generation
    }

    /// The attempts made in this episode.
    #[must_use]
    pub const fn attempt(&self) -> u32 {
        self.state.attempt()
    }

    /// Connects at once, with the count started again: at the beginning, after giving up, in the middle of a wait, or
    /// to replace a connection that is up. After [`close`](Self::close) it does nothing.
    pub fn reconnect_now(
        &mut self,
        policy: &Policy,
        now: impl FnOnce() -> Instant,
        guards: &Guards<'_>,
    ) -> ReconnectStep {
        if self.phase == ReconnectPhase::Closed {
            return ReconnectStep::Rest;
        }
        let now = now();
        self.let_go(now, guards);
        self.state.begin_episode();
        self.connect(policy, now, guards)
    }

    /// The wait is over: connects if it really is, and says how much is left if it is not.
    pub fn due(&mut self, policy: &Policy, now: Instant, guards: &Guards<'_>) -> ReconnectStep {
        match self.phase {
            ReconnectPhase::Waiting { until } if now >= until => self.connect(policy, now, guards),
            ReconnectPhase::Waiting { until } => {
                ReconnectStep::Wait { after: until.saturating_since(now), until, source: self.source }
            }
            _ => ReconnectStep::Rest,
        }
    }

    /// The attempt succeeded: the connection is up.
    pub fn opened(
        &mut self,
        generation: Generation,
        now: impl FnOnce() -> Instant,
        guards: &Guards<'_>,
    ) -> ReconnectStep {
        if generation != self.generation || self.phase != ReconnectPhase::Connecting {
            return ReconnectStep::Stale;
        }
        let since = now();
        guards.record(Permits::take(&mut self.permit), &Outcome::Success, &since);
        self.phase = ReconnectPhase::Open { since };
        ReconnectStep::Rest
    }

    /// The connection that is up does not count as healthy, however long it lives: its server has broken down on it, say.
    /// When it ends, the backoff goes on.
    pub fn distrust(&mut self, generation: Generation) {
        self.is_distrusted |= generation == self.generation;
    }

    /// The attempt failed, or the connection was lost, for this reason. [`Outcome::Success`] is a connection that
    /// ended as it should and is wanted again.
    pub fn ended(
        &mut self,
        generation: Generation,
        outcome: Outcome,
        now: Instant,
        policy: &Policy,
        guards: &Guards<'_>,
    ) -> ReconnectStep {
        if generation != self.generation {
            return ReconnectStep::Stale;
        }
        let decision = match self.phase {
            ReconnectPhase::Open { since } => {
                let enough = policy.stable_after().unwrap_or_else(|| self.last_wait.max(STABLE_AFTER));
                let is_healthy = !self.is_distrusted && now.saturating_since(since) >= enough;
                let health = if is_healthy { Health::Stable } else { Health::Flapping };
                self.retry(policy).lost(health, outcome, || now, guards)
            }
            ReconnectPhase::Connecting => {
                let permit = Permits::take(&mut self.permit);
                // A connection that was refused as a stream may be tried again at once; one that "succeeded" without
                // ever being opened has failed.
                let outcome = if outcome == Outcome::Success { Outcome::TRANSIENT } else { outcome };
                self.retry(policy).decide(outcome, permit, || now, guards)
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

    /// Closes for good: no further attempt is made, and every later report is stale.
    pub fn close(&mut self, now: impl FnOnce() -> Instant, guards: &Guards<'_>) {
        self.let_go(now(), guards);
        self.phase = ReconnectPhase::Closed;
    }

    fn connect(&mut self, policy: &Policy, now: Instant, guards: &Guards<'_>) -> ReconnectStep {
        let permit = Permits::take(&mut self.permit);
        match self.retry(policy).begin(permit, || now, guards) {
            Ok(permit) => {
                self.permit = permit;
                self.generation.0 += 1;
                self.is_distrusted = false;
                self.phase = ReconnectPhase::Connecting;
                ReconnectStep::Connect { generation: self.generation }
            }
            Err(stop) => self.give_up(stop),
        }
    }

    const fn give_up(&mut self, stop: StopReason) -> ReconnectStep {
        self.phase = ReconnectPhase::GivenUp(stop);
        ReconnectStep::GiveUp(stop)
    }

    /// Settles what the guards have lent for an attempt that is not brought to its end.
    fn let_go(&mut self, now: Instant, guards: &Guards<'_>) {
        let permit = Permits::take(&mut self.permit);
        match self.phase {
            ReconnectPhase::Waiting { .. } => guards.release(permit),
            ReconnectPhase::Connecting => guards.abandon(permit, || now),
            _ => {}
        }
    }

    const fn retry<'a>(&'a mut self, policy: &'a Policy) -> RetryMachine<'a> {
        RetryMachine::new(policy, &mut self.state, self.seed)
    }
}
