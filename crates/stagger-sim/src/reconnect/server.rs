use core::time::Duration;

use stagger_core::{Admission, Admitted, Hint, Ticket};

use crate::time::{instant, micros};

/// What the server says to an attempt that has arrived.
pub(super) enum Response {
    /// Come in; the handshake is done at this time, in microseconds.
    Accepted(u64),
    /// Not now.
    Rejected(Option<Hint>),
}

/// The part of a server that decides, and what clients keep for it.
pub(super) trait Server {
    /// What a client was given to bring along.
    type Token: Copy + Default;

    /// An attempt has arrived, at `at` in microseconds.
    fn arrive(&mut self, at: u64, token: &mut Self::Token) -> Response;

    /// The longest backlog that there was, in handshakes.
    fn peak_backlog(&self) -> u64;
}

/// A server that makes one handshake after the other, and lets a backlog of others wait: what a
/// [`ReconnectScenario`](super::ReconnectScenario) has, and what a real server can do as well.
///
/// ```
/// use core::time::Duration;
/// use stagger_sim::reconnect::Acceptor;
///
/// // A hundred handshakes a second, and one more may wait.
/// let (mut acceptor, now) = (Acceptor::new(100.0, 2), Duration::from_secs(1));
/// let arrives = [(); 3].map(|()| acceptor.offer(now));
/// assert_eq!(arrives, [Some(Duration::from_millis(1_010)), Some(Duration::from_millis(1_020)), None]);
/// ```
#[derive(Clone, Copy, Debug)]
pub struct Acceptor {
    /// What a handshake takes, in microseconds.
    handshake: f64,
    /// How far ahead of the present the backlog may reach, in microseconds.
    max_backlog_time: f64,
    /// When the last of those that were accepted is done, in microseconds.
    busy_until: f64,
    peak_backlog_time: f64,
}

impl Acceptor {
    /// So many handshakes a second, which is above 0, and so many that may wait or be underway.
    #[must_use]
    pub fn new(rate: f64, backlog: u32) -> Self {
        let handshake = 1e6 / rate;
        Self { handshake, max_backlog_time: handshake * f64::from(backlog), busy_until: 0.0, peak_backlog_time: 0.0 }
    }

    /// Somebody arrives at this time, which is not before that of the last one: when their handshake is done, to the
    /// microsecond; `None` if there is no room for them.
    pub fn offer(&mut self, at: Duration) -> Option<Duration> {
        self.accept(micros(at)).map(|done| Duration::from_micros(done as u64))
    }

    /// When the handshake is done, in microseconds; `None` if there is no room.
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

    /// The most handshakes that were waiting or underway.
    #[must_use]
    pub fn peak_backlog(&self) -> u64 {
        (self.peak_backlog_time / self.handshake).round() as u64
    }
}

/// Tells everyone who is refused the same.
pub(super) struct FixedHintServer {
    pub(super) acceptor: Acceptor,
    pub(super) hint: Option<Hint>,
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

/// Reserves the next free time for each that is refused, and keeps nobody else out.
pub(super) struct StaggeredServer {
    pub(super) acceptor: Acceptor,
    /// The last that was given away, in microseconds.
    pub(super) last: f64,
}

/// How much further apart than handshakes the slots are: a server whose every moment is promised falls ever further behind
/// for each client that comes late or unasked.
const SPACING: f64 = 1.02;

impl Server for StaggeredServer {
    type Token = ();

    #[inline]
    fn arrive(&mut self, at: u64, _: &mut ()) -> Response {
        if let Some(done) = self.acceptor.accept(at) {
            return Response::Accepted(done as u64);
        }
        self.last = self.last.max(self.acceptor.busy_until) + SPACING * self.acceptor.handshake;
        Response::Rejected(Some(Hint::Slot(Duration::from_micros(self.last as u64 - at))))
    }

    fn peak_backlog(&self) -> u64 {
        self.acceptor.peak_backlog()
    }
}

/// Has [`Admission`] decide who comes in.
pub(super) struct ReservationServer {
    pub(super) acceptor: Acceptor,
    pub(super) admission: Admission,
}

impl Server for ReservationServer {
    type Token = Option<Ticket>;

    fn arrive(&mut self, at: u64, token: &mut Option<Ticket>) -> Response {
        let now = instant(at);
        let admitted = match token.take() {
            Some(ticket) => self.admission.come(&ticket, now),
            None => self.admission.ask(now),
        };
        match admitted {
            // Who is let in can still find the backlog full, if it is shorter than the burst.
            Admitted::Yes => match self.acceptor.accept(at) {
                Some(done) => Response::Accepted(done as u64),
                None => Response::Rejected(None),
            },
            Admitted::Later(appointment) => {
                *token = Some(appointment.ticket);
                Response::Rejected(Some(Hint::Slot(appointment.after)))
            }
            Admitted::Full(after) => Response::Rejected(Some(Hint::Floor(after))),
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
    fn the_backlog_is_full_with_as_many_as_it_holds() {
        let mut acceptor = Acceptor::new(1_000.0, 3);
        let done: Vec<_> = (0..5).map(|_| acceptor.accept(10)).collect();
        assert_eq!(done, [Some(1_010.0), Some(2_010.0), Some(3_010.0), None, None]);
        assert_eq!(acceptor.peak_backlog(), 3);
        assert_eq!(acceptor.accept(1_011), Some(4_010.0), "the first is done, and there is max_backlog_time again");
        assert_eq!(acceptor.accept(9_000), Some(10_000.0), "an idle acceptor begins at once");
    }

    #[test]
    fn slots_are_given_away_once_and_after_what_was_accepted() {
        let mut slots = StaggeredServer { acceptor: Acceptor::new(1_000.0, 1), last: 0.0 };
        assert!(matches!(slots.arrive(0, &mut ()), Response::Accepted(1_000)));
        let told: Vec<_> = (0..3)
            .map(|_| match slots.arrive(0, &mut ()) {
                Response::Rejected(Some(Hint::Slot(after))) => after.as_micros(),
                _ => panic!("there is no max_backlog_time"),
            })
            .collect();
        assert_eq!(told, [2_020, 3_040, 4_060]);
    }
}
