//! What each client of a drill recorded, with its times.

use core::time::Duration;
use std::sync::{Mutex, PoisonError};
use std::time::Instant;

use stagger_sim::reconnect::{AttemptTrace, ClientOutcome};

/// Events of one client, in order.
#[derive(Debug, Default)]
pub(super) struct EventLog {
    events: Mutex<Vec<(Instant, Event)>>,
}

/// What happens to a client. `Sent`, `Failed` and `Connected` are of an attempt.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Event {
    Sent,
    Failed,
    Connected,
    Lost,
    GaveUp,
}

/// Events of a client since a point in time, relative to it. Earlier events are left out.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct ClientTrace {
    pub(super) lost: Duration,
    pub(super) attempts: Vec<AttemptTrace>,
    pub(super) outcome: ClientOutcome,
}

impl EventLog {
    pub(super) fn record(&self, event: Event) {
        self.with(|events| events.push((Instant::now(), event)));
    }

    /// Returns whether an attempt has no result yet.
    pub(super) fn is_trying(&self) -> bool {
        self.with(|events| matches!(events.last(), Some((_, Event::Sent))))
    }

    /// Returns when `event` was first recorded after `since`.
    pub(super) fn first(&self, event: Event, since: Instant) -> Option<Instant> {
        self.with(|events| events.iter().find(|(at, recorded)| *recorded == event && *at >= since).map(|(at, _)| *at))
    }

    /// Returns how long the first attempt took; `None` unless it succeeded.
    pub(super) fn first_attempt(&self) -> Option<Duration> {
        self.with(|events| match events[..] {
            [(sent, Event::Sent), (answered, Event::Connected), ..] => Some(answered - sent),
            _ => None,
        })
    }

    /// Returns the events since `since`; `None` if the connection was not lost.
    pub(super) fn trace(&self, since: Instant) -> Option<ClientTrace> {
        self.with(|events| trace(events, since))
    }

    fn with<T>(&self, f: impl FnOnce(&mut Vec<(Instant, Event)>) -> T) -> T {
        f(&mut self.events.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

/// Pairs each attempt with its result:
///
/// ```text
/// Lost ──► Sent ──► Failed ──► Sent … ──► Connected ──► Lost …
///                      └──► GaveUp
/// ```
fn trace(events: &[(Instant, Event)], since: Instant) -> Option<ClientTrace> {
    let first = events.iter().position(|(at, event)| *event == Event::Lost && *at >= since)?;
    let (lost, rest) = events[first..].split_first()?;
    let after = |at: Instant| at.saturating_duration_since(since);
    let mut trace = ClientTrace { lost: after(lost.0), attempts: Vec::new(), outcome: ClientOutcome::Unfinished };
    for &(at, event) in rest {
        match event {
            Event::Sent => trace.attempts.push(AttemptTrace { sent: after(at), answered: None }),
            Event::Failed | Event::Connected => {
                if let Some(last) = trace.attempts.last_mut() {
                    last.answered = Some(after(at));
                }
            }
            Event::Lost | Event::GaveUp => {}
        }
        // After a further loss the client is reconnecting again.
        trace.outcome = match event {
            Event::Connected => ClientOutcome::Connected,
            Event::GaveUp => ClientOutcome::GaveUp,
            Event::Sent | Event::Failed | Event::Lost => ClientOutcome::Unfinished,
        };
    }
    Some(trace)
}

#[cfg(test)]
mod tests {
    use super::*;
    use Event::{Connected, Failed, GaveUp, Lost, Sent};

    #[test]
    fn a_trace_starts_at_the_loss_and_has_every_attempt_since() {
        let (ms, began) = (Duration::from_millis, Instant::now());
        let before = [(0, Sent), (1, Connected)];
        let storm = [(110, Lost), (200, Sent), (201, Failed), (300, Sent)];
        for (end, attempts, outcome) in [
            (&[(305, Connected)][..], 2, ClientOutcome::Connected),
            (&[(305, Failed), (305, GaveUp)], 2, ClientOutcome::GaveUp),
            (&[], 2, ClientOutcome::Unfinished),
            (&[(305, Connected), (306, Lost)], 2, ClientOutcome::Unfinished),
            (&[(305, Connected), (306, Lost), (310, Sent), (311, Connected)], 3, ClientOutcome::Connected),
        ] {
            let all = before.iter().chain(&storm).chain(end);
            let events: Vec<_> = all.map(|&(at, event)| (began + ms(at), event)).collect();
            let trace = trace(&events, began + ms(100)).unwrap();
            assert_eq!((trace.lost, trace.attempts.len(), trace.outcome), (ms(10), attempts, outcome), "{end:?}");
            assert_eq!(trace.attempts[0], AttemptTrace { sent: ms(100), answered: Some(ms(101)) });
        }
        let calm = before.map(|(at, event)| (began + ms(at), event));
        assert_eq!(trace(&calm, began), None);
    }
}
