use core::time::Duration;

use stagger_core::Seed;

use super::tally::Tally;
use super::{Figures, Scenario};
use crate::client::Rule;
use crate::time::micros;

/// What was measured of real clients, counted as a simulation counts what happens in it: so a figure means the same in
/// both.
///
/// ```
/// use core::time::Duration;
/// use stagger_sim::reconnect::{Attempt, Course, Ended, Record, Scenario};
///
/// let ms = Duration::from_millis;
/// let scenario = Scenario::builder(1).rate(100.0).build()?;
/// let mut record = Record::new(&scenario);
/// let attempts = [Attempt { sent: ms(40), heard: Some(ms(50)) }, Attempt { sent: ms(90), heard: Some(ms(110)) }];
/// record.client(&Course { lost: ms(10), attempts: &attempts, ended: Ended::Connected });
///
/// let figures = record.figures(1);
/// assert_eq!((figures.attempts, figures.connected, figures.t100), (2, 1, Some(ms(110))));
/// assert_eq!((figures.took_mean, figures.waited_mean), (ms(100), ms(70)));
/// # Ok::<(), stagger_sim::ScenarioError>(())
/// ```
#[derive(Debug)]
pub struct Record<'a> {
    scenario: &'a Scenario,
    tally: Tally,
    /// Clients that were counted.
    clients: u32,
}

/// What became of a client. Times run from the beginning of the scenario, and none is before another that stands before it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Course<'a> {
    /// When it lost its connection.
    pub lost: Duration,
    /// Its attempts.
    pub attempts: &'a [Attempt],
    /// How it ended.
    pub ended: Ended,
}

/// One attempt of a client.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Attempt {
    /// When it was sent, and arrived as far as can be seen from a client.
    pub sent: Duration,
    /// When the client heard what came of it; `None` if it never did.
    pub heard: Option<Duration>,
}

/// How it ended for a client.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ended {
    /// Its last attempt connected it.
    Connected,
    /// It made its last attempt in vain.
    GaveUp,
    /// It would have gone on.
    Unfinished,
}

impl<'a> Record<'a> {
    /// Nothing has happened in this scenario, of which the number of clients, the rate and the sample count.
    #[must_use]
    pub fn new(scenario: &'a Scenario) -> Self {
        Self { scenario, tally: Tally::default(), clients: 0 }
    }

    /// The seed of a simulated client, by number from 0: a real one with this seed, whose connection had been its first,
    /// draws the same waits.
    #[must_use]
    pub fn seed(run: Seed, client: u32) -> Seed {
        Rule::seed_of(run, client)
    }

    /// What became of the next client.
    pub fn client(&mut self, course: &Course<'_>) {
        let (id, tally) = (self.clients, &mut self.tally);
        self.clients += 1;
        let mut free = micros(course.lost);
        for attempt in course.attempts {
            let sent = micros(attempt.sent);
            tally.arrivals.add(sent);
            if id < self.scenario.sample {
                tally.sampled(id, sent);
            }
            tally.waited += sent.saturating_sub(free);
            tally.in_flight.begins(sent);
            free = attempt.heard.map_or(sent, micros);
        }
        let count = u32::try_from(course.attempts.len()).unwrap_or(u32::MAX);
        // The last one of a client that is connected ends with that.
        let (last, before) = match (course.ended, course.attempts.split_last()) {
            (Ended::Connected, Some((last, before))) => (Some(last), before),
            _ => (None, course.attempts),
        };
        for heard in before.iter().filter_map(|attempt| attempt.heard) {
            tally.in_flight.ends(micros(heard));
        }
        match (course.ended, last) {
            (Ended::Connected, Some(last)) => {
                let at = micros(last.heard.unwrap_or(last.sent));
                tally.connected(at, at.saturating_sub(micros(course.lost)), count);
            }
            (Ended::GaveUp, _) => tally.gave_up(count),
            (Ended::Connected | Ended::Unfinished, _) => tally.beyond += 1,
        }
    }

    /// The figures of what was counted. What the server alone can tell is the most handshakes that were waiting there.
    #[must_use]
    pub fn figures(self, peak_backlog: u64) -> Figures {
        self.tally.figures(self.scenario, peak_backlog)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const fn ms(count: u64) -> Duration {
        Duration::from_millis(count)
    }

    fn attempt(sent: u64, heard: Option<u64>) -> Attempt {
        Attempt { sent: ms(sent), heard: heard.map(ms) }
    }

    #[test]
    fn every_client_is_counted_once_however_it_ends() {
        let scenario = Scenario::builder(3).rate(10.0).sample(1).build().unwrap();
        let mut record = Record::new(&scenario);
        let tries = [attempt(20, Some(30)), attempt(150, Some(260))];
        for (attempts, ended) in
            [(&tries[..], Ended::Connected), (&tries[..1], Ended::GaveUp), (&[attempt(25, None)], Ended::Unfinished)]
        {
            record.client(&Course { lost: ms(10), attempts, ended });
        }
        let figures = record.figures(2);
        assert_eq!((figures.connected, figures.gave_up, figures.unfinished), (1, 1, 1));
        assert_eq!((figures.attempts, figures.arrivals.counts()), (4, &[3, 1][..]));
        assert_eq!(figures.connects.counts(), [0, 0, 1]);
        assert_eq!((figures.t100, figures.took_mean, figures.peak_backlog), (None, ms(250), 2));
        // At 25 ms all three, and one of them for ever.
        assert_eq!(figures.peak_in_flight, 3);
        assert_eq!(figures.sample, [vec![ms(20), ms(150)]]);
    }

    #[test]
    fn a_client_that_could_not_be_connected_is_not_counted_as_one_that_was() {
        let scenario = Scenario::builder(1).build().unwrap();
        let mut record = Record::new(&scenario);
        record.client(&Course { lost: ms(1), attempts: &[], ended: Ended::Connected });
        assert_eq!(record.figures(0).unfinished, 1);
    }
}
