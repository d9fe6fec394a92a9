use core::time::Duration;

use stagger_core::{ServerHint, admission::Admission, admission::Admit, admission::ReservationToken};

use crate::engine::time::{instant, micros};

/// The server's response to an attempt.
pub(super) enum Response {
    /// Accepted; the handshake is complete at this time, in microseconds.
    Accepted(u64),
    /// Rejected, perhaps with a hint.
    Rejected(Option<ServerHint>),
}

/// A server that accepts or rejects attempts.
pub(super) trait Server {
    /// What the server assigns to a client for its next attempt.
    type Token: Copy + Default;

    /// Handles an attempt that arrives at `at`, in microseconds.
    fn arrive(&mut self, at: u64, token: &mut Self::Token) -> Response;

    /// Returns the longest backlog so far, in handshakes.
    fn peak_backlog(&self) -> u64;
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
        self.accept(micros(at)).map(|done| Duration::from_micros(done as u64))
    }

    /// Returns the time at which the handshake is complete, in microseconds; `None` if the backlog is full.
    #[inline]
    fn accept(&mut self, at: u64) -> Option<f64> {
        let at = at as f64;
        if self.busy_until - at >= self.max_backlog_time {
            return None;
        }
        self.busy_until = self.busy_until.max(at) + self.handshake;
        self.peak_backlog_time = self.peak_backlog_time.max(self.busy_until - at);
        Some(self.busy_until)
    }

    /// Returns the maximum number of pending handshakes so far.
    #[must_use]
    pub fn peak_backlog(&self) -> u64 {
        (self.peak_backlog_time / self.handshake).round() as u64
    }
}

/// A server that sends the same hint to all rejected clients.
pub(super) struct FixedHintServer {
    pub(super) acceptor: Acceptor,
    pub(super) hint: Option<ServerHint>,
}

impl Server for FixedHintServer {
    type Token = ();

    #[inline]
    fn arrive(&mut self, at: u64, _: &mut ()) -> Response {
        match self.acceptor.accept(at) {
            Some(done) => Response::Accepted(done as u64),
            None => Response::Rejected(self.hint),
        }
    }

    fn peak_backlog(&self) -> u64 {
        self.acceptor.peak_backlog()
    }
}

/// A server that reserves the next free time for each rejected client, but accepts clients without a reserved time.
pub(super) struct StaggeredServer {
    pub(super) acceptor: Acceptor,
    /// The latest reserved time, in microseconds.
    pub(super) last: f64,
}

/// Distance of reserved times, in handshakes. Without slack, the server would fall further behind with each client that
/// comes late or without a reserved time.
const SPACING: f64 = 1.02;

impl Server for StaggeredServer {
    type Token = ();

    #[inline]
    fn arrive(&mut self, at: u64, _: &mut ()) -> Response {
        if let Some(done) = self.acceptor.accept(at) {
            return Response::Accepted(done as u64);
        }
        self.last = self.last.max(self.acceptor.busy_until) + SPACING * self.acceptor.handshake;
        Response::Rejected(Some(ServerHint::Reserved(Duration::from_micros(self.last as u64 - at))))
    }

    fn peak_backlog(&self) -> u64 {
        self.acceptor.peak_backlog()
    }
}

/// A server whose clients are admitted by [`Admission`].
pub(super) struct ReservationServer {
    pub(super) acceptor: Acceptor,
    pub(super) admission: Admission,
}

impl Server for ReservationServer {
    type Token = Option<ReservationToken>;

    fn arrive(&mut self, at: u64, token: &mut Option<ReservationToken>) -> Response {
        let now = instant(at);
        let admitted = match token.take() {
            Some(token) => self.admission.admit_reserved(&token, now),
            None => self.admission.try_admit(now),
        };
        match admitted {
            // An admitted client can still find the backlog full if the backlog is shorter than the burst.
            Admit::Now => match self.acceptor.accept(at) {
                Some(done) => Response::Accepted(done as u64),
                None => Response::Rejected(None),
            },
            Admit::At(reservation) => {
                *token = Some(reservation.token);
                Response::Rejected(Some(ServerHint::Reserved(reservation.after)))
            }
            Admit::Full(after) => Response::Rejected(Some(ServerHint::AtLeast(after))),
            _ => Response::Rejected(None),
        }
    }

    fn peak_backlog(&self) -> u64 {
        self.acceptor.peak_backlog()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn attempts_beyond_the_backlog_are_rejected() {
        let mut acceptor = Acceptor::new(1_000.0, 3);
        let done: Vec<_> = (0..5).map(|_| acceptor.accept(10)).collect();
        assert_eq!(done, [Some(1_010.0), Some(2_010.0), Some(3_010.0), None, None]);
        assert_eq!(acceptor.peak_backlog(), 3);
        assert_eq!(acceptor.accept(1_011), Some(4_010.0), "the first handshake is complete");
        assert_eq!(acceptor.accept(9_000), Some(10_000.0), "an idle acceptor starts at once");
    }

    #[test]
    fn reserved_times_are_distinct_and_follow_accepted_handshakes() {
        let mut server = StaggeredServer { acceptor: Acceptor::new(1_000.0, 1), last: 0.0 };
        assert!(matches!(server.arrive(0, &mut ()), Response::Accepted(1_000)));
        let reserved: Vec<_> = (0..3)
            .map(|_| match server.arrive(0, &mut ()) {
                Response::Rejected(Some(ServerHint::Reserved(after))) => after.as_micros(),
                _ => panic!("the backlog is full"),
            })
            .collect();
        assert_eq!(reserved, [2_020, 3_040, 4_060]);
    }
}
