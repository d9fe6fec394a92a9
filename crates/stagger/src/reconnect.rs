//! Connections that are kept open, and what else repeats at the times of a schedule: tickers and intervals.

pub use crate::ticker::{Periodic, Scheduled, Tick, Ticker, interval};
use core::fmt;
use core::future::Future;
use core::time::Duration;

use crate::fairness;
use crate::scope::{self, Mark};
use crate::{
    Cause, DelaySource, Error, Guards, Outcome, Policy, Rejected, Seed, StopReason, classify,
    machine::ReconnectMachine, machine::ReconnectPhase, machine::ReconnectStep, machine::RetryMachine,
    machine::RetryState, time::BlockingSleep, time::Clock, time::Entropy, time::Sleep, time::SystemEntropy,
    time::ThreadSleep,
};

/// Keeps one connection up: anything that can be connected, a database pool, a broker, a TCP stream.
///
/// It hands out one connection at a time. [`next`](Self::next) connects, with everything that the policy says about
/// spread, backoff, limits and health; when the connection that it gave is lost, call it again. How long that
/// connection had lived decides whether the backoff starts again: see [`ReconnectMachine`], which makes every decision.
///
/// ```
/// use stagger::{Policy, reconnect::Reconnect, policy};
///
/// const POLICY: Policy = policy!(exponential(ms(1), ms(10)).spread(ms(1)).max_attempts(5));
///
/// # tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap().block_on(async {
/// let mut links = Reconnect::new(&POLICY, async || Ok::<_, String>("a connection"));
/// for _ in 0..3 {
///     let connection = links.next().await?;
///     // Use it until it is lost, then go round.
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
    begun: Option<crate::Instant>,
}

impl<F, T: Clock> fmt::Debug for Reconnect<'_, F, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Reconnecting")
            .field("policy", &self.policy)
            .field("machine", &self.machine)
            .finish_non_exhaustive()
    }
}

#[cfg(feature = "tokio")]
impl<'p, F> Reconnect<'p, F, crate::time::Tokio> {
    /// Connects with this operation, on tokio's timer.
    pub fn new(policy: &'p Policy, connect: F) -> Self {
        Self::with_timer(crate::time::Tokio, policy, connect)
    }
}

impl<'p, F> Reconnect<'p, F, ThreadSleep> {
    /// Connects with this blocking operation, in the thread of the caller; see
    /// [`next_blocking`](Reconnect::next_blocking).
    pub fn blocking(policy: &'p Policy, connect: F) -> Self {
        Self::with_timer(ThreadSleep, policy, connect)
    }
}

impl<'p, F, T: Clock> Reconnect<'p, F, T> {
    /// Connects with this operation, on this timer.
    pub fn with_timer(timer: T, policy: &'p Policy, connect: F) -> Self {
        Self::with_seed(timer, policy, connect, SystemEntropy.seed())
    }

    /// The same with waits that can be repeated.
    pub const fn with_seed(timer: T, policy: &'p Policy, connect: F, seed: Seed) -> Self {
        let machine = ReconnectMachine::new(seed);
        Self { policy, connect, timer, guards: Guards::none(), machine, seed, lost: Outcome::TRANSIENT, begun: None }
    }

    /// Asks these guards before every attempt to connect.
    #[must_use]
    pub const fn guards(mut self, guards: Guards<'p>) -> Self {
        self.guards = guards;
        self
    }

    /// Says why the connection that was handed out last is lost, before the next one is asked for. If nothing is said,
    /// it was lost to something transient.
    pub fn lost(&mut self, why: Outcome) {
        self.lost = why;
    }

    /// Where the connection stands.
    #[must_use]
    pub const fn phase(&self) -> ReconnectPhase {
        self.machine.phase()
    }

    /// What comes first when a connection is asked for: the loss of the one before, or a beginning.
    fn first_step(&mut self) -> ReconnectStep {
        let now = self.timer.now();
        match self.machine.phase() {
            ReconnectPhase::Open { .. } => {
                let lost = core::mem::replace(&mut self.lost, Outcome::TRANSIENT);
                self.begun = Some(now);
                self.machine.ended(self.machine.generation(), lost, now, self.policy, &self.guards)
            }
            // The caller dropped `next` in the middle of it: the wait goes on where it was.
            ReconnectPhase::Waiting { .. } => self.machine.due(self.policy, now, &self.guards),
            _ => {
                self.begun = Some(now);
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
        // Its own generation, so it cannot be stale.
        let _ = self.machine.opened(self.machine.generation(), || timer.now(), &self.guards);
    }

    fn given_up<E>(&self, stop: StopReason, last: Option<E>) -> Error<E> {
        let elapsed = self.begun.map_or(Duration::ZERO, |begun| self.timer.now().saturating_since(begun));
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

    /// What to ask of the timer.
    fn ask(&self, after: Duration, source: DelaySource, resolution: Duration) -> Duration {
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
    /// The next connection: the first one at once, each further one after the loss of the one before and the wait that
    /// the policy asks for. Errors are judged by the [built-in rules](crate::classify::built_in).
    ///
    /// Cancel-safe: dropped in a wait, it goes on with the same wait when it is called again; dropped while
    /// connecting, it begins anew.
    ///
    /// # Errors
    /// [`Error<E>`] when it gives up; called again after that, it begins a new episode.
    pub async fn next(&mut self) -> Result<C, Error<E>> {
        self.next_by(classify::built_in).await
    }

    /// The same with a rule of the caller's for the errors of connecting.
    ///
    /// # Errors
    /// [`Error<E>`] when it gives up.
    pub async fn next_by(&mut self, rule: impl Fn(&E) -> Outcome) -> Result<C, Error<E>> {
        let unfinished = Unfinished(self);
        let link = &mut *unfinished.0;
        let mut step = link.first_step();
        let mut last = None;
        loop {
            step = match step {
                ReconnectStep::Connect { .. } => match scope::attempt((link.connect)(), link.policy).await {
                    Ok(connection) => {
                        link.opened();
                        return Ok(connection);
                    }
                    Err(error) => {
                        let step = link.ended(rule(&error));
                        last = Some(error);
                        step
                    }
                },
                ReconnectStep::Wait { after, source, .. } => {
                    let ask = link.ask(after, source, link.timer.resolution());
                    if ask.is_zero() {
                        fairness::take_turns(link.machine.attempt()).await;
                    } else {
                        link.timer.sleep(ask).await;
                    }
                    link.woken(source)
                }
                ReconnectStep::GiveUp(stop) => return Err(link.given_up(stop, last)),
                _ => return Err(link.given_up(StopReason::Cancelled, last)),
            };
        }
    }
}

/// A connection while the future of `next` lives: dropped while it connects, it gives back what it has borrowed.
struct Unfinished<'a, 'p, F, T: Clock>(&'a mut Reconnect<'p, F, T>);

impl<F, T: Clock> Drop for Unfinished<'_, '_, F, T> {
    fn drop(&mut self) {
        if self.0.phase() == ReconnectPhase::Connecting {
            let _ = self.0.ended(Outcome::Cancelled);
        }
    }
}

/// Gives back what was borrowed for an attempt that is not made, or not brought to its end.
impl<F, T: Clock> Drop for Reconnect<'_, F, T> {
    fn drop(&mut self) {
        let timer = &self.timer;
        self.machine.close(|| timer.now(), &self.guards);
    }
}

impl<F, T: Clock> Reconnect<'_, F, T> {
    /// The timer has woken up. Only a hint is held to the nanosecond; what was put on a coarse timer's tick before its
    /// time is due.
    fn woken(&mut self, source: DelaySource) -> ReconnectStep {
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
    /// The next connection, for blocking code; see [`next`](Self::next).
    ///
    /// # Errors
    /// [`Error<E>`] when it gives up; called again after that, it begins a new episode.
    pub fn next_blocking(&mut self) -> Result<C, Error<E>> {
        let mut step = self.first_step();
        let mut last = None;
        loop {
            step = match step {
                ReconnectStep::Connect { .. } => {
                    let mark = Mark::deeper(self.policy);
                    let connected = (self.connect)();
                    drop(mark);
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
                    self.woken(source)
                }
                ReconnectStep::GiveUp(stop) => return Err(self.given_up(stop, last)),
                _ => return Err(self.given_up(StopReason::Cancelled, last)),
            };
        }
    }
}
