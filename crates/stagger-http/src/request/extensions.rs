use http::Extensions;
use stagger::{Attempt, Instant};

/// The point in time at which the caller of a request gives up, as a request extension.
///
/// In the extensions of an outgoing request it limits the call: no attempt starts at or after the deadline, not even the first, an
/// attempt in flight is cancelled at it, and [`timeout_header`](crate::header::TIMEOUT_MS) propagates the time that is left. The
/// instant is on the clock of the layer or middleware that reads it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Deadline(Instant);

impl Deadline {
    /// Creates a deadline at `instant`.
    #[must_use]
    pub const fn at(instant: Instant) -> Self {
        Self(instant)
    }

    /// Returns the point in time.
    #[must_use]
    pub const fn instant(self) -> Instant {
        self.0
    }
}

/// Returns the number of the attempt that a request belongs to, from 1, as found in its extensions. For layers and
/// middleware below one that retries.
///
/// The retrying layer inserts an [`Attempt`] from the second attempt on, and into any attempt with a time limit. A first
/// attempt without a time limit is not marked: allocating the request's extension map would cost three allocations.
///
/// ```
/// use http::Extensions;
/// use stagger_http::attempt_number;
///
/// assert_eq!(attempt_number(&Extensions::new()), 1);
/// ```
#[must_use]
pub fn attempt_number(extensions: &Extensions) -> u32 {
    extensions.get::<Attempt>().map_or(1, |attempt| attempt.number)
}
