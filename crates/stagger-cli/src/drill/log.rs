use std::sync::{Mutex, PoisonError};
use std::time::Instant;

use core::time::Duration;

use stagger_sim::reconnect::{AttemptTrace, ClientOutcome};

/// What happened to one client, in order.
#[derive(Debug, Default)]
pub(super) struct Log {
    events: Mutex<Vec<(Instant, Event)>>,
}

/// What happens to a client.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Event {
    /// An attempt is made.
    Sent,
    /// It has failed.
    Failed,
    /// It has connected the client.
    Connected,
    /// The connection is lost.
    Lost,
    /// There is no further attempt.
    GaveUp,
}

/// What became of a client since a point in time. What was before it is cut off.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Course {
    pub(super) lost: Duration,
    pub(super) attempts: Vec<AttemptTrace>,
    pub(super) ended: ClientOutcome,
}

impl Log {
    pub(super) fn note(&self, event: Event) {
        self.with(|events| events.push((Instant::now(), event)));
    }

    /// Whether an attempt is underway.
    pub(super) fn is_trying(&self) -> bool {
        self.with(|events| matches!(events.last(), Some((_, Event::Sent))))
    }

    /// When the first connection was lost since this point in time.
    pub(super) fn lost(&self, since: Instant) -> Option<Instant> {
        self.with(|events| events.iter().find(|(at, event)| *event == Event::Lost && *at >= since).map(|(at, _)| *at))
    }

    /// When it was connected first since this point in time.
    pub(super) fn back(&self, since: Instant) -> Option<Instant> {
        self.with(|events| {
            events.iter().find(|(at, event)| *event == Event::Connected && *at >= since).map(|(at, _)| *at)
        })
    }

    /// How long its first attempt took.
    pub(super) fn first_attempt(&self) -> Option<Duration> {
        self.with(|events| match events[..] {
            [(sent, Event::Sent), (heard, Event::Connected), ..] => Some(heard - sent),
            _ => None,
        })
    }

    /// What became of it; `None` if it never lost its connection.
    pub(super) fn course(&self, since: Instant) -> Option<Course> {
        self.with(|events| course(events, since))
    }

    fn with<T>(&self, ask: impl FnOnce(&mut Vec<(Instant, Event)>) -> T) -> T {
        ask(&mut self.events.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

fn course(events: &[(Instant, Event)], since: Instant) -> Option<Course> {
    let first = events.iter().position(|(at, event)| *event == Event::Lost && *at >= since)?;
    let (lost, rest) = events[first..].split_first()?;
    let after = |at: Instant| at.saturating_duration_since(since);
    let mut course = Course { lost: after(lost.0), attempts: Vec::new(), ended: ClientOutcome::Unfinished };
    for &(at, event) in rest {
        match event {
            Event::Sent => course.attempts.push(AttemptTrace { sent: after(at), answered: None }),
            Event::Failed | Event::Connected => {
                if let Some(last) = course.attempts.last_mut() {
                    last.answered = Some(after(at));
                }
            }
            Event::Lost | Event::GaveUp => {}
        }
        // Who loses it again is on the way again.
        course.ended = match event {
            Event::Connected => ClientOutcome::Connected,
            Event::GaveUp => ClientOutcome::GaveUp,
            Event::Sent | Event::Failed | Event::Lost => ClientOutcome::Unfinished,
        };
    }
    Some(course)
}

#[cfg(test)]
mod tests {
    use super::*;
    use Event::{Connected, Failed, GaveUp, Lost, Sent};

    const fn ms(count: u64) -> Duration {
        Duration::from_millis(count)
    }

    #[test]
    fn a_course_begins_with_the_loss_and_has_every_attempt_since() {
        let began = Instant::now();
        let before = [(0, Sent), (1, Connected)];
        let storm = [(110, Lost), (200, Sent), (201, Failed), (300, Sent)];
        for (end, attempts, ended) in [
            (&[(305, Connected)][..], 2, ClientOutcome::Connected),
            (&[(305, Failed), (305, GaveUp)], 2, ClientOutcome::GaveUp),
            (&[], 2, ClientOutcome::Unfinished),
            (&[(305, Connected), (306, Lost)], 2, ClientOutcome::Unfinished),
            (&[(305, Connected), (306, Lost), (310, Sent), (311, Connected)], 3, ClientOutcome::Connected),
        ] {
            let all = before.iter().chain(&storm).chain(end);
            let events: Vec<_> = all.map(|&(at, event)| (began + ms(at), event)).collect();
            let course = course(&events, began + ms(100)).unwrap();
            assert_eq!((course.lost, course.attempts.len(), course.ended), (ms(10), attempts, ended), "{end:?}");
            assert_eq!(course.attempts[0], AttemptTrace { sent: ms(100), answered: Some(ms(101)) });
        }
        let calm = before.map(|(at, event)| (began + ms(at), event));
        assert_eq!(course(&calm, began), None);
    }
}
