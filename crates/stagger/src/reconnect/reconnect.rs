use core::fmt;
use core::future::Future;

use stagger_core::machine::{ReconnectPhase, ReconnectStep, Unreachable};
use stagger_core::{Outcome, StopReason};

use super::driver::ReconnectDriver;
use crate::call::coop;
use crate::call::scope::{self, ScopeGuard};
use crate::classify::marked::OperationError;
use crate::error::call_error::Error;
use crate::retrier::event::EventError;
use crate::retrier::handle::Retrier;
use crate::time::{BlockingSleep, Clock, Sleep, ThreadSleep};

/// Keeps one connection open, to anything that can be connected to: a database pool, a broker, a TCP stream.
///
/// It returns one connection at a time. [`next`](Self::next) connects, according to the policy's spread, backoff,
/// limits and health settings; when the returned connection is lost, call it again. How long that connection lasted
/// decides whether the backoff is reset: see [`ReconnectMachine`](crate::machine::ReconnectMachine), which makes every
/// decision.
///
/// If the machine sleeps during a wait, or the process is stopped, the wait is spread again when it goes on; see
/// [`ReconnectDriver::timer_fired`].
///
/// Without a limit in the policy it does not give up. After ten failed attempts in a row, and then each time the outage
/// has lasted twice as long, the retrier's listeners are told that the server is
/// [unreachable](crate::observe::Event::unreachable).
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
pub struct Reconnect<F, T: Clock> {
    connect: F,
    driver: ReconnectDriver<T>,
    lost: Outcome,
}

impl<F, T: Clock> fmt::Debug for Reconnect<F, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Reconnect").field("driver", &self.driver).finish_non_exhaustive()
    }
}

#[cfg(feature = "tokio")]
impl<F> Reconnect<F, crate::time::Tokio> {
    /// Creates a connection with this async operation as connector, that retries according to a policy or through a
    /// [`Retrier`], on tokio's timer.
    pub fn new(retrier: impl Into<Retrier>, connect: F) -> Self {
        Self::with_timer(crate::time::Tokio, retrier, connect)
    }
}

impl<F> Reconnect<F, ThreadSleep> {
    /// Creates a connection with this blocking operation as connector, which runs on the caller's thread; see
    /// [`next_blocking`](Reconnect::next_blocking).
    pub fn blocking(retrier: impl Into<Retrier>, connect: F) -> Self {
        Self::with_timer(ThreadSleep, retrier, connect)
    }
}

impl<F, T: Clock> Reconnect<F, T> {
    /// Creates a connection with this operation as connector, that retries according to a policy or through a
    /// [`Retrier`], on this timer. The retrier's guards must admit every attempt to connect, its rules classify errors,
    /// and its listeners receive every attempt and loss. Its timeout does not apply: limit the time in `connect`.
    pub fn with_timer(timer: T, retrier: impl Into<Retrier>, connect: F) -> Self {
        Self { connect, driver: ReconnectDriver::new(retrier, timer), lost: Outcome::TRANSIENT }
    }

    /// Records why the latest connection was lost; call it before [`next`](Self::next). Default: a transient failure.
    pub fn lost(&mut self, why: Outcome) {
        self.lost = why;
    }

    /// Returns the state of the connection.
    #[must_use]
    pub const fn phase(&self) -> ReconnectPhase {
        self.driver.phase()
    }

    /// Returns for how long and how many attempts the server could not be reached, if at least ten attempts in a row
    /// have failed since the last connection was open. To be told while [`next`](Self::next) is waiting, listen to the
    /// retrier's [events](crate::observe::Event::unreachable).
    #[must_use]
    pub const fn unreachable(&self) -> Option<Unreachable> {
        self.driver.unreachable()
    }

    /// Returns the first step when a connection is requested: the loss of the previous one, or a start.
    fn first_step(&mut self) -> ReconnectStep {
        match self.driver.phase() {
            ReconnectPhase::Open { .. } => {
                let lost = core::mem::replace(&mut self.lost, Outcome::TRANSIENT);
                self.driver.ended::<()>(self.driver.generation(), lost, None)
            }
            // `next` was dropped while it waited: continue the same wait.
            ReconnectPhase::Waiting { .. } => self.driver.due(),
            _ => self.driver.reconnect_now(),
        }
    }

    /// Records the result of an attempt to connect. Returns the connection, or stores the error and returns what
    /// follows.
    fn connected<C, E: EventError + OperationError>(
        &mut self,
        result: Result<C, E>,
        last: &mut Option<E>,
    ) -> Result<C, ReconnectStep> {
        let generation = self.driver.generation();
        match result {
            Ok(connection) => {
                // It is the driver's own generation, so it cannot be stale.
                let _ = self.driver.opened(generation);
                Ok(connection)
            }
            Err(error) => {
                let step = self.driver.ended(generation, self.driver.outcome(&error), Some(&error));
                *last = Some(error);
                Err(step)
            }
        }
    }
}

impl<F, T, O, C, E> Reconnect<F, T>
where
    F: FnMut() -> O,
    O: Future<Output = Result<C, E>>,
    T: Sleep,
    E: EventError + OperationError,
{
    /// Waits for the next connection. The first attempt to connect is made immediately; after the loss of a connection,
    /// the next one waits as the policy requires. Errors are classified by the retrier's rules, or the
    /// [built-in rules](crate::classify::built_in).
    ///
    /// Cancel-safe: if it is dropped while it waits, the next call continues the same wait; if it is dropped while it
    /// connects, the next call starts anew.
    ///
    /// # Errors
    /// Returns [`Error<E>`] when it gives up. A later call starts a new episode.
    pub async fn next(&mut self) -> Result<C, Error<E>> {
        let guard = NextGuard(self);
        let this = &mut *guard.0;
        let mut step = this.first_step();
        let mut last = None;
        loop {
            step = match step {
                ReconnectStep::Connect { .. } => {
                    let result = scope::attempt((this.connect)(), this.driver.policy()).await;
                    match this.connected(result, &mut last) {
                        Ok(connection) => return Ok(connection),
                        Err(step) => step,
                    }
                }
                ReconnectStep::Wait { after, source, .. } => {
                    let timer = this.driver.clock();
                    let delay = this.driver.on_ticks(after, source, timer.resolution());
                    if delay.is_zero() {
                        coop::yield_if_due(this.driver.attempts()).await;
                    } else {
                        timer.sleep(delay).await;
                    }
                    this.driver.timer_fired(source)
                }
                ReconnectStep::GiveUp(stop) => return Err(this.driver.error(stop, last)),
                _ => return Err(this.driver.error(StopReason::Cancelled, last)),
            };
        }
    }
}

/// Drop guard of `next`: ends an attempt to connect whose future is dropped.
struct NextGuard<'a, F, T: Clock>(&'a mut Reconnect<F, T>);

impl<F, T: Clock> Drop for NextGuard<'_, F, T> {
    fn drop(&mut self) {
        let driver = &mut self.0.driver;
        if driver.phase() == ReconnectPhase::Connecting {
            let _ = driver.ended::<()>(driver.generation(), Outcome::Cancelled, None);
        }
    }
}

impl<F, T, C, E> Reconnect<F, T>
where
    F: FnMut() -> Result<C, E>,
    T: BlockingSleep,
    E: EventError + OperationError,
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
                    let scope = ScopeGuard::enter(self.driver.policy());
                    let result = (self.connect)();
                    drop(scope);
                    match self.connected(result, &mut last) {
                        Ok(connection) => return Ok(connection),
                        Err(step) => step,
                    }
                }
                ReconnectStep::Wait { after, source, .. } => {
                    if !after.is_zero() {
                        self.driver.clock().sleep(after);
                    }
                    self.driver.timer_fired(source)
                }
                ReconnectStep::GiveUp(stop) => return Err(self.driver.error(stop, last)),
                _ => return Err(self.driver.error(StopReason::Cancelled, last)),
            };
        }
    }
}
