//! Reconnecting, and other work that repeats on a schedule: tickers and intervals.

pub use crate::ticker::{Periodic, Scheduled, Tick, Ticker, interval};
use core::fmt;
use core::future::Future;
use core::time::Duration;

use crate::coop;
use crate::scope::{self, ScopeGuard};
use crate::{
    Cause, DelaySource, Error, Guards, Outcome, Policy, Rejected, Seed, StopReason, classify,
    machine::ReconnectMachine, machine::ReconnectPhase, machine::ReconnectStep, machine::RetryMachine,
    machine::RetryState, time::BlockingSleep, time::Clock, time::Entropy, time::Sleep, time::SystemEntropy,
    time::ThreadSleep,
};

/// Keeps one connection open, to anything that can be connected to: a database pool, a broker, a TCP stream.
///
/// It returns one connection at a time. [`next`](Self::next) connects, according to the policy's spread, backoff,
/// limits and health settings; when the returned connection is lost, call it again. How long that connection lasted
/// decides whether the backoff is reset: see [`ReconnectMachine`], which makes every decision.
///
/// ```
/// use stagger::{Policy, reconnect::Reconnect, policy};
///
/// const POLICY: Policy = policy!(exponential(ms(1), ms(10)).spread(ms(1)).max_attempts(5));
///
/// # tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap().block_on(async {
/// let mut reconnect = Reconnect::new(&POLICY, async || Ok::<_, String>("a connection"));
/// for _ in 0..3 {
///     let connection = reconnect.next().await?;
///     // Use it until it is lost, then request the next one.
/// #   assert_eq!(connection, "a connection");
/// }
/// # Ok::<(), stagger::Error<String>>(()) }).unwrap();
/// ```
pub struct Reconnect<'p, F, T: Clock> {
    policy: &'p Policy,
    connect: F,
    timer: T,
    guards: Guards<'p>,
    machine: ReconnectMachine,
    seed: Seed,
    lost: Outcome,
    episode_start: Option<crate::Instant>,
}

impl<F, T: Clock> fmt::Debug for Reconnect<'_, F, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Reconnect")
            .field("policy", &self.policy)
            .field("machine", &self.machine)
            .finish_non_exhaustive()
    }
}

#[cfg(feature = "tokio")]
impl<'p, F> Reconnect<'p, F, crate::time::Tokio> {
    /// Creates a connection with this async operation as connector, on tokio's timer.
    pub fn new(policy: &'p Policy, connect: F) -> Self {
        Self::with_timer(crate::time::Tokio, policy, connect)
    }
}

impl<'p, F> Reconnect<'p, F, ThreadSleep> {
    /// Creates a connection with this blocking operation as connector, which runs on the caller's thread; see
    /// [`next_blocking`](Reconnect::next_blocking).
    pub fn blocking(policy: &'p Policy, connect: F) -> Self {
        Self::with_timer(ThreadSleep, policy, connect)
    }
}

impl<'p, F, T: Clock> Reconnect<'p, F, T> {
    /// Creates a connection with this operation as connector, on this timer.
    pub fn with_timer(timer: T, policy: &'p Policy, connect: F) -> Self {
        Self::with_seed(timer, policy, connect, SystemEntropy.seed())
    }

    /// Creates a connection whose delays are drawn from this seed, for reproducible tests.
    pub const fn with_seed(timer: T, policy: &'p Policy, connect: F, seed: Seed) -> Self {
        let machine = ReconnectMachine::new(seed);
        Self {
            policy,
            connect,
            timer,
            guards: Guards::none(),
            machine,
            seed,
            lost: Outcome::TRANSIENT,
            episode_start: None,
        }
    }

    /// Sets the guards that must admit every attempt to connect. Default: none.
    #[must_use]
    pub const fn guards(mut self, guards: Guards<'p>) -> Self {
        self.guards = guards;
        self
    }

    /// Records why the latest connection was lost; call it before [`next`](Self::next). Default: a transient failure.
    pub fn lost(&mut self, why: Outcome) {
        self.lost = why;
    }

    /// Returns the state of the connection.
    #[must_use]
    pub const fn phase(&self) -> ReconnectPhase {
        self.machine.phase()
    }

    /// Returns the first step when a connection is requested: the loss of the previous one, or a start.
    fn first_step(&mut self) -> ReconnectStep {
        let now = self.timer.now();
        match self.machine.phase() {
            ReconnectPhase::Open { .. } => {
                let lost = core::mem::replace(&mut self.lost, Outcome::TRANSIENT);
                self.episode_start = Some(now);
                self.machine.ended(self.machine.generation(), lost, now, self.policy, &self.guards)
            }
            // `next` was dropped while it waited: continue the same wait.
            ReconnectPhase::Waiting { .. } => self.machine.due(self.policy, now, &self.guards),
            _ => {
                self.episode_start = Some(now);
                self.machine.reconnect_now(self.policy, || now, &self.guards)
            }
        }
    }

    fn ended(&mut self, outcome: Outcome) -> ReconnectStep {
        let now = self.timer.now();
        self.machine.ended(self.machine.generation(), outcome, now, self.policy, &self.guards)
    }

    fn opened(&mut self) {
        let timer = &self.timer;
        // It is the machine's own generation, so it cannot be stale.
        let _ = self.machine.opened(self.machine.generation(), || timer.now(), &self.guards);
    }

    fn given_up<E>(&self, stop: StopReason, last: Option<E>) -> Error<E> {
        let elapsed =
            self.episode_start.map_or(Duration::ZERO, |episode_start| self.timer.now().saturating_since(episode_start));
        let last = match (last, stop) {
            (Some(error), _) => Cause::Operation(error),
            (None, StopReason::Breaker) => {
                let open = self.guards.breaker.map(|breaker| breaker.retry_in(&self.timer.now()));
                Cause::Rejected(Rejected::BreakerOpen(crate::BreakerOpen { retry_in: open.unwrap_or_default() }))
            }
            (None, _) => Cause::Rejected(Rejected::Lost),
        };
        Error::new(stop, self.machine.attempt(), elapsed, last)
    }

    /// Returns how long to arm the timer for.
    fn timer_delay(&self, after: Duration, source: DelaySource, resolution: Duration) -> Duration {
        let mut state = RetryState::new();
        RetryMachine::new(self.policy, &mut state, self.seed.for_call(self.machine.generation().get()))
            .on_ticks(after, source, resolution)
    }
}

impl<F, T, O, C, E> Reconnect<'_, F, T>
where
    F: FnMut() -> O,
    O: Future<Output = Result<C, E>>,
    T: Sleep,
    E: 'static,
{
    /// Waits for the next connection. The first attempt to connect is made immediately; after the loss of a connection,
    /// the next one waits as the policy requires. Errors are classified by the
    /// [built-in rules](crate::classify::built_in).
    ///
    /// Cancel-safe: if it is dropped while it waits, the next call continues the same wait; if it is dropped while it
    /// connects, the next call starts anew.
    ///
    /// # Errors
    /// Returns [`Error<E>`] when it gives up. A later call starts a new episode.
    pub async fn next(&mut self) -> Result<C, Error<E>> {
        self.next_with_rule(classify::built_in).await
    }

    /// Waits for the next connection, classifying connection errors by `rule`; see [`next`](Self::next).
    ///
    /// # Errors
    /// Returns [`Error<E>`] when it gives up. A later call starts a new episode.
    pub async fn next_with_rule(&mut self, rule: impl Fn(&E) -> Outcome) -> Result<C, Error<E>> {
        let guard = NextGuard(self);
        let this = &mut *guard.0;
        let mut step = this.first_step();
        let mut last = None;
        loop {
            step = match step {
                ReconnectStep::Connect { .. } => match scope::attempt((this.connect)(), this.policy).await {
                    Ok(connection) => {
                        this.opened();
                        return Ok(connection);
                    }
                    Err(error) => {
                        let step = this.ended(rule(&error));
                        last = Some(error);
                        step
                    }
                },
                ReconnectStep::Wait { after, source, .. } => {
                    let delay = this.timer_delay(after, source, this.timer.resolution());
                    if delay.is_zero() {
                        coop::yield_if_due(this.machine.attempt()).await;
                    } else {
                        this.timer.sleep(delay).await;
                    }
                    this.timer_fired(source)
                }
                ReconnectStep::GiveUp(stop) => return Err(this.given_up(stop, last)),
                _ => return Err(this.given_up(StopReason::Cancelled, last)),
            };
        }
    }
}

/// Drop guard of `next`: releases the permits if it is dropped while it connects.
struct NextGuard<'a, 'p, F, T: Clock>(&'a mut Reconnect<'p, F, T>);

impl<F, T: Clock> Drop for NextGuard<'_, '_, F, T> {
    fn drop(&mut self) {
        if self.0.phase() == ReconnectPhase::Connecting {
            let _ = self.0.ended(Outcome::Cancelled);
        }
    }
}

/// Releases the permits of an attempt that is waiting or in progress.
impl<F, T: Clock> Drop for Reconnect<'_, F, T> {
    fn drop(&mut self) {
        let timer = &self.timer;
        self.machine.close(|| timer.now(), &self.guards);
    }
}

impl<F, T: Clock> Reconnect<'_, F, T> {
    /// Returns the next step after the timer has fired. Only a hint is enforced to the nanosecond; a wait that was
    /// rounded to an earlier tick of a coarse timer is over.
    fn timer_fired(&mut self, source: DelaySource) -> ReconnectStep {
        let now = self.timer.now();
        let now = match (source, self.machine.phase()) {
            (DelaySource::Hint, _) => now,
            (_, ReconnectPhase::Waiting { until }) => now.max(until),
            _ => now,
        };
        self.machine.due(self.policy, now, &self.guards)
    }
}

impl<F, T, C, E> Reconnect<'_, F, T>
where
    F: FnMut() -> Result<C, E>,
    T: BlockingSleep,
    E: 'static,
{
    /// Waits for the next connection, in blocking code; see [`next`](Self::next).
    ///
    /// # Errors
    /// Returns [`Error<E>`] when it gives up. A later call starts a new episode.
    pub fn next_blocking(&mut self) -> Result<C, Error<E>> {
        let mut step = self.first_step();
        let mut last = None;
        loop {
            step = match step {
                ReconnectStep::Connect { .. } => {
                    let scope = ScopeGuard::enter(self.policy);
                    let connected = (self.connect)();
                    drop(scope);
                    match connected {
                        Ok(connection) => {
                            self.opened();
                            return Ok(connection);
                        }
                        Err(error) => {
                            let step = self.ended(classify::built_in(&error));
                            last = Some(error);
                            step
                        }
                    }
                }
                ReconnectStep::Wait { after, source, .. } => {
                    if !after.is_zero() {
                        self.timer.sleep(after);
                    }
                    self.timer_fired(source)
                }
                ReconnectStep::GiveUp(stop) => return Err(self.given_up(stop, last)),
                _ => return Err(self.given_up(StopReason::Cancelled, last)),
            };
        }
    }
}
