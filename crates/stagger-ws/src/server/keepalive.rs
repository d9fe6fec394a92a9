use core::time::Duration;

use tokio::time::Instant;

/// How dead peers are found: whoever says nothing for a while is sent a ping, and is dropped if still nothing comes.
///
/// Any frame counts as a sign of life, not only the pong. A peer is reaped `interval + timeout` after its last frame, and a
/// message that does not get through for as long is as good as no peer. To find that takes somebody who polls the
/// [`Socket`](super::Socket).
///
/// The first ping comes after 3/4 to all of `interval`, a length that each connection draws for itself: a fleet that came back
/// within a second is not to be pinged within a second for ever.
///
/// Complete: a period and a limit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Keepalive {
    /// A ping is sent after so long without a frame. Default 20 s. More than zero.
    pub interval: Duration,
    /// And the peer is dead after so long without an answer. Default 10 s. More than zero.
    pub timeout: Duration,
}

impl Default for Keepalive {
    fn default() -> Self {
        Self { interval: Duration::from_secs(20), timeout: Duration::from_secs(10) }
    }
}

impl Keepalive {
    /// The longest silence that there is.
    pub(super) const fn silence(&self) -> Duration {
        self.interval.saturating_add(self.timeout)
    }
}

/// What is to be done about a silence, and when to look again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Pulse {
    Alive { look: Instant },
    Ping { look: Instant },
    Dead,
}

/// A peer's signs of life. It has no timer and no clock.
#[derive(Clone, Copy, Debug)]
pub(super) struct Watch {
    keepalive: Keepalive,
    /// After how long a silence it is pinged.
    patience: Duration,
    heard: Instant,
}

impl Watch {
    pub(super) fn new(keepalive: Keepalive, bits: u64, now: Instant) -> Self {
        let patience = stagger::draw(keepalive.interval / 4 * 3, keepalive.interval, bits);
        Self { keepalive, patience, heard: now }
    }

    pub(super) const fn heard(&mut self, now: Instant) {
        self.heard = now;
    }

    pub(super) fn look(&self, now: Instant) -> Pulse {
        let silent = now.saturating_duration_since(self.heard);
        if silent >= self.keepalive.silence() {
            Pulse::Dead
        } else if silent >= self.patience {
            Pulse::Ping { look: self.heard + self.keepalive.silence() }
        } else {
            Pulse::Alive { look: self.heard + self.patience }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const KEEPALIVE: Keepalive = Keepalive { interval: Duration::from_secs(20), timeout: Duration::from_secs(10) };

    fn ms(millis: u64) -> Duration {
        Duration::from_millis(millis)
    }

    #[test]
    fn a_silent_peer_is_pinged_within_every_and_dead_at_the_end_of_both() {
        let start = Instant::now();
        for (bits, patience) in [(0, ms(15_000)), (u64::MAX, ms(20_000))] {
            let mut watch = Watch::new(KEEPALIVE, bits, start);
            let end = start + ms(30_000);
            assert_eq!(watch.look(start), Pulse::Alive { look: start + patience });
            assert_eq!(watch.look(start + patience - ms(1)), Pulse::Alive { look: start + patience });
            assert_eq!(watch.look(start + patience), Pulse::Ping { look: end });
            assert_eq!(watch.look(end - ms(1)), Pulse::Ping { look: end });
            assert_eq!(watch.look(end), Pulse::Dead);
            watch.heard(end - ms(1));
            assert_eq!(watch.look(end), Pulse::Alive { look: end - ms(1) + patience });
        }
    }

    #[test]
    fn connections_of_one_moment_are_pinged_over_a_quarter_of_the_period() {
        let (start, seed) = (Instant::now(), stagger::Seed::new(7));
        let mut seconds = [0; 5];
        for id in 0..10_000 {
            let Pulse::Alive { look } = Watch::new(KEEPALIVE, seed.for_call(id).get(), start).look(start) else {
                panic!("dead at its beginning")
            };
            seconds[(look - start - ms(15_000)).as_secs() as usize] += 1;
        }
        assert!(seconds.iter().all(|&pings| (1_850..2_150).contains(&pings)), "{seconds:?}");
    }
}
