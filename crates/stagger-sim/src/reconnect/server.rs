use core::time::Duration;

use stagger_core::{ServerHint, admission::Admission, admission::Admit, admission::ReservationToken};

use crate::time::{instant, micros};

/// What the server says to an attempt that has arrived.
pub(super) enum Answer {
    /// Come in; the handshake is done at this time, in microseconds.
    Accepted(u64),
    /// Not now.
    Refused(Option<ServerHint>),
}

/// The part of a server that decides, and what clients keep for it.
pub(super) trait Server {
    /// What a client was given to bring along.
    type Note: Copy + Default;

    /// An attempt has arrived, at `at` in microseconds.
    fn arrive(&mut self, at: u64, note: &mut Self::Note) -> Answer;

    /// The longest backlog that there was, in handshakes.
    fn peak_backlog(&self) -> u64;
}

/// A server that makes one handshake after the other, and lets a backlog of others wait: what a
/// [`Scenario`](super::Scenario) has, and what a real server can do as well.
///
/// ```
/// use core::time::Duration;
/// use stagger_sim::reconnect::Acceptor;
///
/// // A hundred handshakes a second, and one more may wait.
/// let (mut acceptor, now) = (Acceptor::new(100.0, 2), Duration::from_secs(1));
/// let arrives = [(); 3].map(|()| acceptor.arrives(now));
/// assert_eq!(arrives, [Some(Duration::from_millis(1_010)), Some(Duration::from_millis(1_020)), None]);
/// ```
#[derive(Clone, Copy, Debug)]
pub struct Acceptor {
    /// What a handshake takes, in microseconds.
    handshake: f64,
    /// How far ahead of the present the backlog may reach, in microseconds.
    room: f64,
    /// When the last of those that were accepted is done, in microseconds.
    free: f64,
    longest: f64,
}

impl Acceptor {
    /// So many handshakes a second, which is above 0, and so many that may wait or be underway.
    #[must_use]
    pub fn new(rate: f64, backlog: u32) -> Self {
        let handshake = 1e6 / rate;
        Self { handshake, room: handshake * f64::from(backlog), free: 0.0, longest: 0.0 }
    }

    /// Somebody arrives at this time, which is not before that of the last one: when their handshake is done, to the
    /// microsecond; `None` if there is no room for them.
    pub fn arrives(&mut self, at: Duration) -> Option<Duration> {
        self.take(micros(at)).map(|done| Duration::from_micros(done as u64))
    }

    /// When the handshake is done, in microseconds; `None` if there is no room.
    #[inline]
    fn take(&mut self, at: u64) -> Option<f64> {
        let at = at as f64;
        if self.free - at >= self.room {
            return None;
        }
        self.free = self.free.max(at) + self.handshake;
        self.longest = self.longest.max(self.free - at);
        Some(self.free)
    }

    /// The most handshakes that were waiting or underway.
    #[must_use]
    pub fn peak_backlog(&self) -> u64 {
        (self.longest / self.handshake).round() as u64
    }
}

/// Tells everyone who is refused the same.
pub(super) struct Plain {
    pub(super) acceptor: Acceptor,
    pub(super) hint: Option<ServerHint>,
}

impl Server for Plain {
    type Note = ();

    #[inline]
    fn arrive(&mut self, at: u64, _: &mut ()) -> Answer {
        match self.acceptor.take(at) {
            Some(done) => Answer::Accepted(done as u64),
            None => Answer::Refused(self.hint),
        }
    }

    fn peak_backlog(&self) -> u64 {
        self.acceptor.peak_backlog()
    }
}

/// Reserves the next free time for each that is refused, and keeps nobody else out.
pub(super) struct Slots {
    pub(super) acceptor: Acceptor,
    /// The last that was given away, in microseconds.
    pub(super) last: f64,
}

/// How much further apart than handshakes the slots are: a server whose every moment is promised falls ever further behind
/// for each client that comes late or unasked.
const SLOT: f64 = 1.02;

impl Server for Slots {
    type Note = ();

    #[inline]
    fn arrive(&mut self, at: u64, _: &mut ()) -> Answer {
        if let Some(done) = self.acceptor.take(at) {
            return Answer::Accepted(done as u64);
        }
        self.last = self.last.max(self.acceptor.free) + SLOT * self.acceptor.handshake;
        Answer::Refused(Some(ServerHint::Reserved(Duration::from_micros(self.last as u64 - at))))
    }

    fn peak_backlog(&self) -> u64 {
        self.acceptor.peak_backlog()
    }
}

/// Has [`Admission`] decide who comes in.
pub(super) struct Appointments {
    pub(super) acceptor: Acceptor,
    pub(super) admission: Admission,
}

impl Server for Appointments {
    type Note = Option<ReservationToken>;

    fn arrive(&mut self, at: u64, ticket: &mut Option<ReservationToken>) -> Answer {
        let now = instant(at);
        let admitted = match ticket.take() {
            Some(ticket) => self.admission.admit_reserved(&ticket, now),
            None => self.admission.try_admit(now),
        };
        match admitted {
            // Who is let in can still find the backlog full, if it is shorter than the burst.
            Admit::Now => match self.acceptor.take(at) {
                Some(done) => Answer::Accepted(done as u64),
                None => Answer::Refused(None),
            },
            Admit::At(appointment) => {
                *ticket = Some(appointment.token);
                Answer::Refused(Some(ServerHint::Reserved(appointment.after)))
            }
            Admit::Full(after) => Answer::Refused(Some(ServerHint::AtLeast(after))),
            _ => Answer::Refused(None),
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
        let done: Vec<_> = (0..5).map(|_| acceptor.take(10)).collect();
        assert_eq!(done, [Some(1_010.0), Some(2_010.0), Some(3_010.0), None, None]);
        assert_eq!(acceptor.peak_backlog(), 3);
        assert_eq!(acceptor.take(1_011), Some(4_010.0), "the first is done, and there is room again");
        assert_eq!(acceptor.take(9_000), Some(10_000.0), "an idle acceptor begins at once");
    }

    #[test]
    fn slots_are_given_away_once_and_after_what_was_accepted() {
        let mut slots = Slots { acceptor: Acceptor::new(1_000.0, 1), last: 0.0 };
        assert!(matches!(slots.arrive(0, &mut ()), Answer::Accepted(1_000)));
        let told: Vec<_> = (0..3)
            .map(|_| match slots.arrive(0, &mut ()) {
                Answer::Refused(Some(ServerHint::Reserved(after))) => after.as_micros(),
                _ => panic!("there is no room"),
            })
            .collect();
        assert_eq!(told, [2_020, 3_040, 4_060]);
    }
}
