//! Test support for code that uses stagger: virtual time, scripted outcomes, recorded decisions and injected faults.
//! Nothing in this module sleeps.

use core::cell::Cell;
use core::future::{Future, Ready, ready};
use core::num::NonZeroU32;
use core::pin::Pin;
use core::task::{Context, Poll};
use core::time::Duration;
use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use stagger_core::machine::Unreachable;
use stagger_core::{Instant, Ratio, Seed};

use crate::retrier::event::{Action, Event};
use crate::time::{BlockingSleep, Clock, Sleep};

/// A clock that stands still until it is advanced, and a timer that advances it by sleeping.
///
/// A sleep takes no real time and advances the clock by its length, so a call of an hour is tested in a microsecond. It
/// works in async and blocking code. Clones are the same clock.
///
/// An async sleep elapses when it is polled. An attempt with a time limit that is found pending has therefore used up
/// the limit, and one that completes immediately has used none of it.
///
/// ```
/// use std::time::Duration;
/// use stagger::testing::VirtualClock;
/// use stagger::{time::Clock as _, Instant, Policy, blocking, policy};
///
/// const POLICY: Policy = policy!(constant(secs(60)).jitter(Jitter::None).max_attempts(3));
///
/// let clock = VirtualClock::new();
/// let answer = blocking::retry(&POLICY, || Err::<(), _>("no")).timer(clock.clone()).run();
/// assert_eq!((answer, clock.elapsed()), (Err("no"), Duration::from_secs(120)));
/// assert_eq!(clock.sleeps(), [Duration::from_secs(60); 2]);
/// ```
#[derive(Clone, Debug, Default)]
pub struct VirtualClock(Arc<VirtualTime>);

#[derive(Debug, Default)]
struct VirtualTime {
    // Not an atomic: some targets have none of 64 bits.
    now: Mutex<Instant>,
    sleeps: Mutex<Vec<Duration>>,
}

impl VirtualClock {
    /// Creates a clock at its epoch.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Advances the clock.
    pub fn advance(&self, by: Duration) {
        let mut now = self.lock_now();
        *now = now.saturating_add(by);
    }

    /// Returns the time since the clock's epoch.
    #[must_use]
    pub fn elapsed(&self) -> Duration {
        self.now().saturating_since(Instant::ZERO)
    }

    /// Returns the lengths of the sleeps so far, in order.
    #[must_use]
    pub fn sleeps(&self) -> Vec<Duration> {
        self.0.sleeps.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    fn sleep_until(&self, until: Instant, length: Duration) {
        {
            let mut now = self.lock_now();
            *now = until.max(*now);
        }
        self.0.sleeps.lock().unwrap_or_else(PoisonError::into_inner).push(length);
    }

    fn lock_now(&self) -> MutexGuard<'_, Instant> {
        self.0.now.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Clock for VirtualClock {
    fn now(&self) -> Instant {
        *self.lock_now()
    }
}

#[diagnostic::do_not_recommend]
impl Sleep for VirtualClock {
    type Sleeping = VirtualSleep;

    fn sleep(&self, length: Duration) -> VirtualSleep {
        VirtualSleep { clock: self.clone(), until: self.now().saturating_add(length), length }
    }
}

#[diagnostic::do_not_recommend]
impl BlockingSleep for VirtualClock {
    fn sleep(&self, length: Duration) {
        self.sleep_until(self.now().saturating_add(length), length);
    }
}

/// The future of [`VirtualClock`]: completes when it is polled, which advances the clock to its end.
#[derive(Clone, Debug)]
#[must_use = "no time passes unless it is polled"]
pub struct VirtualSleep {
    clock: VirtualClock,
    until: Instant,
    length: Duration,
}

impl Future for VirtualSleep {
    type Output = ();

    fn poll(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<()> {
        self.clock.sleep_until(self.until, self.length);
        Poll::Ready(())
    }
}

/// A sequence of results for an operation to return.
///
/// ```
/// use stagger::testing::Script;
/// use stagger::{Policy, blocking};
///
/// let mut script = Script::new([Err("busy"), Err("busy"), Ok(42)]);
/// let answer = blocking::retry(&Policy::DEFAULT, || script.next("no more")).timer(stagger::testing::NoSleep).run();
/// assert_eq!((answer, script.left()), (Ok(42), 0));
/// ```
#[derive(Clone, Debug)]
pub struct Script<T, E>(VecDeque<Result<T, E>>);

impl<T, E> Script<T, E> {
    /// Creates a script of these results.
    pub fn new(results: impl IntoIterator<Item = Result<T, E>>) -> Self {
        Self(results.into_iter().collect())
    }

    /// Returns the next result, or `exhausted` if none is left.
    ///
    /// # Errors
    /// Returns the error that the script contains, or `exhausted`.
    pub fn next(&mut self, exhausted: E) -> Result<T, E> {
        self.0.pop_front().unwrap_or(Err(exhausted))
    }

    /// Returns the number of results left.
    #[must_use]
    pub fn left(&self) -> usize {
        self.0.len()
    }
}

/// Records decisions: pass [`listener`](Self::listener) to `on_event`.
///
/// ```
/// use stagger::testing::{NoSleep, Recorder};
/// use stagger::{observe::Action, Policy, StopReason, blocking, policy};
///
/// const POLICY: Policy = policy!(exponential(ms(10), ms(100)).max_attempts(2));
///
/// let recorder = Recorder::new();
/// let _ = blocking::retry(&POLICY, || Err::<(), _>("no")).timer(NoSleep).on_event(recorder.listener()).run();
/// let events = recorder.events();
/// assert_eq!((events[0].attempt, events[1].action), (1, Action::Stop(StopReason::Attempts)));
/// assert_eq!(events[0].error.as_deref(), Some("\"no\""));
/// ```
#[derive(Clone, Debug, Default)]
pub struct Recorder(Arc<Mutex<Vec<Recorded>>>);

/// A recorded decision.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Recorded {
    /// The name of the target.
    pub target: String,
    /// The attempt that had ended.
    pub attempt: u32,
    /// The policy's limit on attempts, if there is one.
    pub max_attempts: Option<NonZeroU32>,
    /// The decision.
    pub action: Action,
    /// In how long an attempt could start, if a guard ended the call.
    pub retry_in: Option<Duration>,
    /// Time since the start of the call.
    pub elapsed: Duration,
    /// Retries left in the guard that had the fewest, if there was one that can report it.
    pub budget_left: Option<u64>,
    /// The error, formatted with `Debug`.
    pub error: Option<String>,
    /// The report that the server could not be reached, if one was due.
    pub unreachable: Option<Unreachable>,
}

impl Recorder {
    /// Creates an empty recorder.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Returns a listener that records to this recorder.
    pub fn listener(&self) -> impl Fn(&Event<'_>) + Send + Sync + Clone + 'static {
        let events = Arc::clone(&self.0);
        move |event| {
            events.lock().unwrap_or_else(PoisonError::into_inner).push(Recorded {
                target: event.target.to_owned(),
                attempt: event.attempt,
                max_attempts: event.max_attempts,
                action: event.action,
                retry_in: event.retry_in,
                elapsed: event.elapsed,
                budget_left: event.budget_left,
                error: event.error.map(|error| format!("{error:?}")),
                unreachable: event.unreachable,
            });
        }
    }

    /// Returns the decisions recorded so far.
    #[must_use]
    pub fn events(&self) -> Vec<Recorded> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Returns the delays decided on so far.
    #[must_use]
    pub fn delays(&self) -> Vec<Duration> {
        let delay = |event: &Recorded| match event.action {
            Action::Retry { after, .. } => Some(after),
            _ => None,
        };
        self.events().iter().filter_map(delay).collect()
    }
}

/// A timer that does not sleep, with a clock that stands still.
#[derive(Clone, Copy, Debug, Default)]
pub struct NoSleep;

impl Clock for NoSleep {
    fn now(&self) -> Instant {
        Instant::ZERO
    }
}

#[diagnostic::do_not_recommend]
impl Sleep for NoSleep {
    type Sleeping = Ready<()>;

    fn sleep(&self, _: Duration) -> Ready<()> {
        ready(())
    }
}

#[diagnostic::do_not_recommend]
impl BlockingSleep for NoSleep {
    fn sleep(&self, _: Duration) {}
}

/// Injects faults into an operation, at a reproducible rate.
///
/// ```
/// use std::time::Duration;
/// use stagger::testing::{FaultInjector, VirtualClock};
/// use stagger::{Ratio, Seed};
///
/// let clock = VirtualClock::new();
/// let (share, second) = (Ratio::percent(10), Duration::from_secs(1));
/// let faults = FaultInjector::new(Seed::new(1)).errors(Ratio::percent(30)).latency(share, second);
/// let results: Vec<_> = (0..1000).map(|_| faults.inject(&clock, || "injected").and(Ok(()))).collect();
/// let failed = results.iter().filter(|result| result.is_err()).count();
/// assert!((250..350).contains(&failed));
/// assert!((70..130).contains(&clock.elapsed().as_secs()));
/// ```
#[derive(Debug)]
pub struct FaultInjector {
    seed: Seed,
    drawn: Cell<u64>,
    errors: Ratio,
    latency: (Ratio, Duration),
}

impl FaultInjector {
    /// Creates an injector without faults.
    #[must_use]
    pub const fn new(seed: Seed) -> Self {
        Self { seed, drawn: Cell::new(0), errors: Ratio::ZERO, latency: (Ratio::ZERO, Duration::ZERO) }
    }

    /// Sets the share of calls that fail. Default: 0.
    #[must_use]
    pub const fn errors(mut self, share: Ratio) -> Self {
        self.errors = share;
        self
    }

    /// Sets the share of calls that take `by` longer. Default: 0.
    #[must_use]
    pub const fn latency(mut self, share: Ratio, by: Duration) -> Self {
        self.latency = (share, by);
        self
    }

    /// Injects the faults of one call: sleeps for the added latency on this timer, then returns an error or `Ok`.
    ///
    /// # Errors
    /// Returns the injected error.
    pub fn inject<E>(&self, timer: &impl BlockingSleep, error: impl FnOnce() -> E) -> Result<(), E> {
        let (share, by) = self.latency;
        if self.hits(share) {
            timer.sleep(by);
        }
        if self.hits(self.errors) { Err(error()) } else { Ok(()) }
    }

    fn hits(&self, share: Ratio) -> bool {
        let draw = self.drawn.get();
        self.drawn.set(draw.wrapping_add(1));
        let millionths =
            stagger_core::schedule::draw(Duration::ZERO, Duration::from_nanos(999_999), self.seed.for_call(draw).get());
        millionths.subsec_nanos() < share.as_millionths()
    }
}
