//! Servers: one acceptor with a backlog, and what they send to the clients that they reject.

use core::time::Duration;

use stagger_core::ServerHint;
use stagger_core::admission::{Admission, Admit, ReservationToken};

use crate::engine::{instant, micros};

/// The response to an attempt: the time at which its handshake is complete, in microseconds, or a rejection, perhaps
/// with a hint.
pub(super) type Response = Result<u64, Option<ServerHint>>;

pub(super) trait Server {
    /// What the server assigns to a client for its next attempt.
    type Token: Copy + Default;

    /// Handles an attempt that arrives at `at`, in microseconds.
    fn arrive(&mut self, acceptor: &mut Acceptor, at: u64, token: &mut Self::Token) -> Response;
}

/// A server that performs one handshake after the other, with a backlog of pending handshakes. It is the server of a
/// [`ReconnectScenario`](super::ReconnectScenario), and can limit a real server in the same way.
///
/// ```
/// use core::time::Duration;
/// use stagger_sim::reconnect::Acceptor;
///
/// // A hundred handshakes per second, at most two of them pending.
/// let (mut acceptor, now) = (Acceptor::new(100.0, 2), Duration::from_secs(1));
/// let arrives = [(); 3].map(|()| acceptor.offer(now));
/// assert_eq!(arrives, [Some(Duration::from_millis(1_010)), Some(Duration::from_millis(1_020)), None]);
/// ```
#[derive(Clone, Copy, Debug)]
pub struct Acceptor {
    /// Duration of a handshake, in microseconds.
    handshake: f64,
    /// Maximum duration of the backlog, in microseconds.
    max_backlog_time: f64,
    /// Time at which the last accepted handshake is complete, in microseconds.
    busy_until: f64,
    peak_backlog_time: f64,
}

impl Acceptor {
    /// Creates an acceptor with `rate` handshakes per second, above 0, of which at most `backlog` may be pending.
    #[must_use]
    pub fn new(rate: f64, backlog: u32) -> Self {
        let handshake = 1e6 / rate;
        Self { handshake, max_backlog_time: handshake * f64::from(backlog), busy_until: 0.0, peak_backlog_time: 0.0 }
    }

    /// Offers an attempt that arrives at `at`, which must not precede the previous arrival. Returns the time at which
    /// its handshake is complete, in whole microseconds; `None` if the backlog is full.
    pub fn offer(&mut self, at: Duration) -> Option<Duration> {
        self.accept(micros(at)).map(Duration::from_micros)
    }

    /// Drops all pending handshakes, because the server has crashed.
    pub(super) const fn restart(&mut self) {
        self.busy_until = 0.0;
    }

    #[inline]
    fn accept(&mut self, at: u64) -> Option<u64> {
        let at = at as f64;
        if self.busy_until - at >= self.max_backlog_time {
            return None;
        }
        self.busy_until = self.busy_until.max(at) + self.handshake;
        self.peak_backlog_time = self.peak_backlog_time.max(self.busy_until - at);
        Some(self.busy_until as u64)
    }

    /// Returns the maximum number of pending handshakes so far.
    #[must_use]
    pub fn peak_backlog(&self) -> u64 {
        (self.peak_backlog_time / self.handshake).round() as u64
    }
}

pub(super) struct FixedHint(pub(super) Option<ServerHint>);

impl Server for FixedHint {
    type Token = ();

    #[inline]
    fn arrive(&mut self, acceptor: &mut Acceptor, at: u64, _: &mut ()) -> Response {
        acceptor.accept(at).ok_or(self.0)
    }
}

/// A server that reserves the next free time for each rejected client, but accepts clients without a reserved time.
#[derive(Default)]
pub(super) struct Staggered {
    /// The latest reserved time, in microseconds.
    last: f64,
}

/// Distance of reserved times, in handshakes. Without slack, the server would fall further behind with each client that
/// comes late or without a reserved time.
const SPACING: f64 = 1.02;

impl Server for Staggered {
    type Token = ();

    #[inline]
    fn arrive(&mut self, acceptor: &mut Acceptor, at: u64, _: &mut ()) -> Response {
        acceptor.accept(at).ok_or_else(|| {
            self.last = self.last.max(acceptor.busy_until) + SPACING * acceptor.handshake;
            Some(ServerHint::Reserved(Duration::from_micros(self.last as u64 - at)))
        })
    }
}

impl Server for Admission {
    type Token = Option<ReservationToken>;

    fn arrive(&mut self, acceptor: &mut Acceptor, at: u64, token: &mut Option<ReservationToken>) -> Response {
        let now = instant(at);
        let admitted = match token.take() {
            Some(token) => self.admit_reserved(&token, now),
            None => self.try_admit(now),
        };
        match admitted {
            // An admitted client can still find the backlog full if the backlog is shorter than the burst.
            Admit::Now => acceptor.accept(at).ok_or(None),
            Admit::At(reservation) => {
                *token = Some(reservation.token);
                Err(Some(ServerHint::Reserved(reservation.after)))
            }
            Admit::Full(after) => Err(Some(ServerHint::AtLeast(after))),
            _ => Err(None),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn attempts_beyond_the_backlog_are_rejected() {
        let mut acceptor = Acceptor::new(1_000.0, 3);
        let done: Vec<_> = (0..5).map(|_| acceptor.accept(10)).collect();
        assert_eq!(done, [Some(1_010), Some(2_010), Some(3_010), None, None]);
        assert_eq!(acceptor.peak_backlog(), 3);
        assert_eq!(acceptor.accept(1_011), Some(4_010), "the first handshake is complete");
        assert_eq!(acceptor.accept(9_000), Some(10_000), "an idle acceptor starts at once");
    }

    #[test]
    fn reserved_times_are_distinct_and_follow_accepted_handshakes() {
        let (mut server, mut acceptor) = (Staggered::default(), Acceptor::new(1_000.0, 1));
        let got = [(); 4].map(|()| server.arrive(&mut acceptor, 0, &mut ()));
        let reserved = |micros| Err(Some(ServerHint::Reserved(Duration::from_micros(micros))));
        assert_eq!(got, [Ok(1_000), reserved(2_020), reserved(3_040), reserved(4_060)]);
    }
}
