use core::fmt;
use core::time::Duration;

use stagger::StopReason;
use stagger::text::Compact;

/// The error of a [detailed](crate::Call::detailed) or [cancellable](crate::Call::cancelled_by) call that gave up.
///
/// It keeps the operation's last error: [`source`](core::error::Error::source) returns it, and
/// [`into_inner`](Self::into_inner) converts back to it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Error<E> {
    pub(crate) stop: StopReason,
    pub(crate) attempts: u32,
    pub(crate) elapsed: Duration,
    pub(crate) last: E,
}

impl<E> Error<E> {
    /// Returns the reason why there was no further attempt: `Permanent`, `Exhausted` if the backoff ended, `Cancelled`,
    /// or `Nested` if the call was made inside an attempt of another call.
    pub const fn stop_reason(&self) -> StopReason {
        self.stop
    }

    /// Returns the number of attempts made, including the first.
    pub const fn attempts(&self) -> u32 {
        self.attempts
    }

    /// Returns how long the call took, from its start to its end, on the clock of its timer.
    pub const fn elapsed(&self) -> Duration {
        self.elapsed
    }

    /// Returns the operation's last error.
    pub const fn error(&self) -> &E {
        &self.last
    }

    /// Returns the operation's last error, consuming this one.
    pub fn into_inner(self) -> E {
        self.last
    }
}

/// `gave up after 5 attempts in 3.2s, every attempt was used`. The cause is the
/// [`source`](core::error::Error::source); `{:#}` appends it, in its own alternate form.
impl<E: fmt::Display> fmt::Display for Error<E> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { stop, attempts, elapsed, last } = self;
        let plural = if *attempts == 1 { "" } else { "s" };
        write!(f, "gave up after {attempts} attempt{plural} in {:.1}, {stop}", Compact(*elapsed))?;
        if f.alternate() { write!(f, ": {last:#}") } else { Ok(()) }
    }
}

impl<E: core::error::Error + 'static> core::error::Error for Error<E> {
    fn source(&self) -> Option<&(dyn core::error::Error + 'static)> {
        Some(&self.last)
    }
}
