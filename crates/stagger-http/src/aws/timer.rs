use core::future::Future;
use core::pin::Pin;
use core::task::{Context, Poll};
use core::time::Duration;
use std::sync::{Arc, Mutex, PoisonError};

use stagger::Instant;
use stagger::time::{Clock, Sleep};

/// The timer of a call whose delays the SDK waits for. It tells what the call asks to wait for, and when the SDK has
/// waited.
#[derive(Clone)]
pub(super) struct SdkTimer {
    clock: SharedClock,
    state: Arc<Mutex<State>>,
}

pub(super) type SharedClock = Arc<dyn Clock + Send + Sync>;

#[derive(Debug, Default)]
struct State {
    /// The wait that the call has asked for.
    asked: Option<Duration>,
    /// The SDK has waited until here, whatever the clock says: the SDK's timer may run on another one, or round.
    reached: Option<Instant>,
    /// The SDK waits no more, so what the call asks for from now on has passed.
    is_over: bool,
}

impl SdkTimer {
    pub(super) fn new(clock: SharedClock) -> Self {
        Self { clock, state: Arc::default() }
    }

    /// Lets the call ask for its next wait.
    pub(super) fn begin_wait(&self) {
        let mut state = self.lock();
        state.asked = None;
        state.is_over = false;
    }

    /// Returns what the call has asked to wait for since [`begin_wait`](Self::begin_wait).
    pub(super) fn asked(&self) -> Duration {
        self.lock().asked.unwrap_or_default()
    }

    /// Ends the wait.
    pub(super) fn end_wait(&self) {
        let mut state = self.lock();
        (state.is_over, state.asked) = (true, None);
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Clock for SdkTimer {
    fn now(&self) -> Instant {
        let now = self.clock.now();
        self.lock().reached.map_or(now, |reached| reached.max(now))
    }
}

impl Sleep for SdkTimer {
    type Sleeping = SdkWait;

    fn sleep(&self, length: Duration) -> SdkWait {
        let end = self.now().saturating_add(length);
        let mut state = self.lock();
        if !state.is_over {
            state.asked = Some(length);
        }
        SdkWait { state: Arc::clone(&self.state), end }
    }
}

/// Completes once the SDK has waited: then it is `end`. What limits an attempt is never polled, and so no wait.
#[derive(Debug)]
pub(super) struct SdkWait {
    state: Arc<Mutex<State>>,
    end: Instant,
}

impl Future for SdkWait {
    type Output = ();

    fn poll(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<()> {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        if !state.is_over {
            return Poll::Pending;
        }
        state.reached = state.reached.max(Some(self.end));
        Poll::Ready(())
    }
}
