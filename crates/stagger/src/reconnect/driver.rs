use core::fmt;
use core::time::Duration;
use std::sync::Arc;

use stagger_core::guard::Guard;
use stagger_core::machine::{
    Generation, ReconnectMachine, ReconnectPhase, ReconnectStep, RetryMachine, RetryState, Unreachable, spread_again,
};
use stagger_core::{DelaySource, Guards, Instant, NestedRetries, Outcome, Policy, Seed, StopReason};

use crate::classify::marked::OperationError;
use crate::classify::rule::{BuiltIn, Rule};
use crate::error::call_error::{Cause, Error};
use crate::error::rejected::Rejected;
use crate::retrier::event::{Action, Event, EventError};
use crate::retrier::handle::Retrier;
use crate::time::{Clock, entropy};

/// A [`ReconnectMachine`] with everything that a [`Retrier`] adds: its guards, rules, listeners and operator controls.
///
/// The building block for clients that keep a connection open and need explicit control of every step. In all other
/// cases use [`Reconnect`](super::Reconnect). Steps are those of the machine; call [`due`](Self::due) when a wait is
/// over. Dropping it at any point settles the permits that it holds.
///
/// A listener receives one event for every attempt to connect and every loss: [`Action::Retry`] with the delay,
/// [`Action::Done`] when the connection is open, [`Action::Stop`] when it gives up. If a [guard](Retrier::guard) lets
/// an attempt wait, it receives [`Action::Held`], and [`Action::Resumed`] when the attempt begins. After ten failed
/// attempts in a row, and then each time the outage has lasted twice as long, the event says that the server is
/// [unreachable](Event::unreachable).
///
/// ```
/// use std::time::Duration;
/// use stagger::machine::ReconnectStep;
/// use stagger::reconnect::ReconnectDriver;
/// use stagger::testing::VirtualClock;
/// use stagger::{Outcome, Policy, Retrier, policy};
///
/// const POLICY: Policy = policy!(constant(secs(1)).jitter(Jitter::None));
///
/// let clock = VirtualClock::new();
/// let mut driver = ReconnectDriver::new(Retrier::new(POLICY).named("broker"), clock.clone());
/// let ReconnectStep::Connect { generation } = driver.reconnect_now() else { panic!() };
/// let step = driver.ended(generation, Outcome::TRANSIENT, Some(&"refused"));
/// let ReconnectStep::Wait { after, .. } = step else { panic!() };
/// assert_eq!(after, Duration::from_secs(1));
/// clock.advance(after);
/// assert!(matches!(driver.due(), ReconnectStep::Connect { .. }));
/// ```
pub struct ReconnectDriver<C: Clock> {
    retrier: Retrier,
    clock: C,
    machine: ReconnectMachine,
    seed: Seed,
    episode_start: Instant,
    unreachable_report: Option<Unreachable>,
    /// When the wait ends that was spread again. The machine does not know of it, since its own wait is over.
    postponed: Option<Instant>,
    /// The attempt is due, and a guard lets it wait.
    is_held: bool,
}

impl<C: Clock> ReconnectDriver<C> {
    /// Creates an idle driver; [`reconnect_now`](Self::reconnect_now) starts it.
    pub fn new(retrier: impl Into<Retrier>, clock: C) -> Self {
        let retrier = retrier.into();
        let seed = retrier.shared().seed.unwrap_or_else(entropy::seed);
        let machine = ReconnectMachine::new(seed);
        Self {
            retrier,
            clock,
            machine,
            seed,
            episode_start: Instant::ZERO,
            unreachable_report: None,
            postponed: None,
            is_held: false,
        }
    }

    /// Returns the retrier.
    pub const fn retrier(&self) -> &Retrier {
        &self.retrier
    }

    /// Returns the policy.
    pub fn policy(&self) -> &Policy {
        self.retrier.policy()
    }

    /// Returns the clock.
    pub const fn clock(&self) -> &C {
        &self.clock
    }

    /// Returns the phase of the connection.
    pub const fn phase(&self) -> ReconnectPhase {
        match (self.machine.phase(), self.postponed) {
            (ReconnectPhase::Waiting { .. }, Some(until)) => ReconnectPhase::Waiting { until },
            (phase, _) => phase,
        }
    }

    /// Returns the generation of the current connection or attempt.
    pub const fn generation(&self) -> Generation {
        self.machine.generation()
    }

    /// Returns the seed of all random delays, for draws of the caller's own.
    pub const fn seed(&self) -> Seed {
        self.seed
    }

    /// Returns the number of attempts made in this episode.
    pub const fn attempts(&self) -> u32 {
        self.machine.attempt()
    }

    /// Returns for how long and how many attempts the server could not be reached, if at least ten attempts in a row
    /// have failed; see [`ReconnectMachine::unreachable`].
    pub const fn unreachable(&self) -> Option<Unreachable> {
        self.machine.unreachable()
    }

    /// Returns [`unreachable`](Self::unreachable) if the last [`ended`](Self::ended) reported it to the listeners, and
    /// `None` at the next call; see [`ReconnectMachine::take_unreachable_report`].
    pub const fn take_unreachable_report(&mut self) -> Option<Unreachable> {
        self.unreachable_report.take()
    }

    /// Begins a new episode and connects immediately; see [`ReconnectMachine::reconnect_now`].
    pub fn reconnect_now(&mut self) -> ReconnectStep {
        let now = self.clock.now();
        self.episode_start = now;
        let step = self.machine.reconnect_now(self.retrier.policy(), || now, &guards(&self.retrier));
        self.emit_if_held(&step);
        self.emit_if_stopped(&step);
        step
    }

    /// Connects if the wait is over, or else returns the remaining wait; see [`ReconnectMachine::due`].
    pub fn due(&mut self) -> ReconnectStep {
        self.due_at(self.clock.now())
    }

    /// Connects after a timer has fired whose ticks may round a wait down. Only a hint is enforced to the nanosecond;
    /// any other wait is over.
    ///
    /// If the wait ended more than a second ago, the machine has slept or the process was stopped. Other timers fire in
    /// the same instant, so the wait is spread again, once: the step is another wait, see [`spread_again`].
    pub fn timer_fired(&mut self, source: DelaySource) -> ReconnectStep {
        let now = self.clock.now();
        if let Some(step) = self.spread_again(now) {
            return step;
        }
        match (source, self.phase()) {
            (DelaySource::Hint, _) => self.due_at(now),
            (_, ReconnectPhase::Waiting { until }) => self.due_at(now.max(until)),
            _ => self.due_at(now),
        }
    }

    fn spread_again(&mut self, now: Instant) -> Option<ReconnectStep> {
        let ReconnectPhase::Waiting { until } = self.phase() else { return None };
        if self.postponed.is_some() {
            return None;
        }
        let bits = self.seed.for_call(until.as_nanos()).get();
        let after = spread_again(now.saturating_since(until), self.policy().spread(), bits)?;
        let until = now.saturating_add(after);
        self.postponed = Some(until);
        Some(ReconnectStep::Wait { after, until, source: DelaySource::Spread })
    }

    fn due_at(&mut self, now: Instant) -> ReconnectStep {
        if let (ReconnectPhase::Waiting { .. }, Some(until)) = (self.machine.phase(), self.postponed) {
            if now < until {
                return ReconnectStep::Wait { after: until.saturating_since(now), until, source: DelaySource::Spread };
            }
        }
        self.postponed = None;
        let was = self.machine.phase();
        let step = self.machine.due(self.retrier.policy(), now, &guards(&self.retrier));
        if self.machine.phase() != was {
            self.emit_if_held(&step);
        }
        self.emit_if_stopped(&step);
        step
    }

    /// Records that the connection of this generation is open; see [`ReconnectMachine::opened`].
    pub fn opened(&mut self, generation: Generation) -> ReconnectStep {
        let clock = &self.clock;
        let step = self.machine.opened(generation, || clock.now(), &guards(&self.retrier));
        if step == ReconnectStep::Rest {
            self.emit(self.attempts(), Action::Done, None, None);
        }
        step
    }

    /// Marks the open connection as unhealthy; see [`ReconnectMachine::distrust`].
    pub fn distrust(&mut self, generation: Generation) {
        self.machine.distrust(generation);
    }

    /// Returns whether the open connection has been up for long enough at this instant to show that its server accepts
    /// this client; see [`ReconnectMachine::is_accepted`].
    pub fn is_accepted(&self, at: Instant) -> bool {
        self.machine.is_accepted(self.retrier.policy(), at)
    }

    /// Records that the attempt failed or the connection was lost, with its error if there is one; see
    /// [`ReconnectMachine::ended`].
    pub fn ended<E: EventError>(
        &mut self,
        generation: Generation,
        outcome: Outcome,
        error: Option<&E>,
    ) -> ReconnectStep {
        self.ended_at(generation, outcome, self.clock.now(), error)
    }

    /// Records like [`ended`](Self::ended) what ended at this instant, for a caller that learns of it later. The
    /// returned wait begins at that instant.
    pub fn ended_at<E: EventError>(
        &mut self,
        generation: Generation,
        outcome: Outcome,
        at: Instant,
        error: Option<&E>,
    ) -> ReconnectStep {
        if matches!(self.machine.phase(), ReconnectPhase::Open { .. }) && generation == self.machine.generation() {
            self.episode_start = at;
        }
        self.postponed = None;
        // The loss of a healthy connection restarts the count.
        let attempt = self.machine.attempt();
        let step = self.machine.ended(generation, outcome, at, self.retrier.shared().plan(), &guards(&self.retrier));
        let error = error.map(|error| error as &dyn EventError);
        match step {
            ReconnectStep::Wait { after, source, .. } => {
                let report = self.machine.take_unreachable_report();
                self.unreachable_report = report;
                self.emit(attempt, Action::Retry { after, source }, error, report);
            }
            ReconnectStep::GiveUp(stop) => self.emit(attempt, Action::Stop(stop), error, None),
            _ => {}
        }
        step
    }

    /// Closes the connection for good; see [`ReconnectMachine::close`].
    pub fn close(&mut self) {
        let clock = &self.clock;
        self.machine.close(|| clock.now(), &guards(&self.retrier));
    }

    /// Returns the length to arm a timer of this resolution for; see [`RetryMachine::on_ticks`].
    pub fn on_ticks(&self, after: Duration, source: DelaySource, resolution: Duration) -> Duration {
        let mut state = RetryState::new();
        RetryMachine::new(self.retrier.policy(), &mut state, self.seed.for_call(self.machine.generation().get()))
            .on_ticks(after, source, resolution)
    }

    /// Classifies this error by the retrier's rules, or the [built-in rules](crate::classify::built_in).
    pub fn outcome<E: OperationError + 'static>(&self, error: &E) -> Outcome {
        BuiltIn.outcome(error, Some(&self.retrier.shared().rules))
    }

    /// Classifies this error by the retrier's rules alone. Returns `None` if there is none for it.
    pub fn explicit_outcome<E: OperationError + 'static>(&self, error: &E) -> Option<Outcome> {
        self.retrier.shared().explicit(error)
    }

    /// Returns the error of an episode that was given up, with the last error if there was one.
    pub fn error<E>(&self, stop: StopReason, last: Option<E>) -> Error<E> {
        let cause = match last {
            Some(error) => Cause::Operation(error),
            None => Cause::Rejected(self.rejection(stop)),
        };
        Error::new(stop, self.machine.attempt(), self.elapsed(), cause)
    }

    /// Returns why no attempt was made, for a client whose guards rejected it for this reason.
    pub fn rejection(&self, stop: StopReason) -> Rejected {
        match stop {
            StopReason::Guard(guard) => {
                let retry_in = guards(&self.retrier).retry_in(guard, &self.clock.now());
                Rejected::ByGuard { guard, retry_in }
            }
            _ => Rejected::Lost,
        }
    }

    fn elapsed(&self) -> Duration {
        self.clock.now().saturating_since(self.episode_start)
    }

    /// Emits the event of an attempt that begins to wait for a guard, or that goes on.
    fn emit_if_held(&mut self, step: &ReconnectStep) {
        let action = match (step, self.is_held) {
            (ReconnectStep::Wait { after, .. }, false) => Some(Action::Held { after: *after }),
            (ReconnectStep::Connect { .. }, true) => Some(Action::Resumed),
            _ => None,
        };
        self.is_held = matches!(step, ReconnectStep::Wait { .. });
        if let Some(action) = action {
            self.emit(self.attempts(), action, None, None);
        }
    }

    /// Emits the event of an attempt that the guards rejected.
    fn emit_if_stopped(&self, step: &ReconnectStep) {
        if let ReconnectStep::GiveUp(stop) = step {
            self.emit(self.attempts(), Action::Stop(*stop), None, None);
        }
    }

    fn emit(&self, attempt: u32, action: Action, error: Option<&dyn EventError>, unreachable: Option<Unreachable>) {
        self.retrier.shared().emit(|| Event {
            target: "",
            attempt,
            max_attempts: self.retrier.policy().max_attempts(),
            elapsed: self.elapsed(),
            budget_left: guards(&self.retrier).available(),
            action,
            retry_in: match action {
                Action::Stop(stop) => self.rejection(stop).retry_in(),
                _ => None,
            },
            error,
            unreachable,
            rules: None,
        });
    }
}

/// Returns the guards for connecting, which is never part of another call's attempt.
fn guards(retrier: &Retrier) -> Guards<'_, Arc<dyn Guard>> {
    retrier.shared().guards().nested(NestedRetries::Allow)
}

/// Settles the permits of an attempt that is waiting or in progress.
impl<C: Clock> Drop for ReconnectDriver<C> {
    fn drop(&mut self) {
        self.close();
    }
}

impl<C: Clock> fmt::Debug for ReconnectDriver<C> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ReconnectDriver")
            .field("retrier", &self.retrier)
            .field("machine", &self.machine)
            .finish_non_exhaustive()
    }
}
