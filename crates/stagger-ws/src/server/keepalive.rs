use core::time::Duration;

use tokio::time::Instant;

/// How dead peers are found: whoever says nothing for a while is sent a ping, and is dropped if still nothing comes.
///
/// Any frame counters as a sign of life, not only the pong. A peer is reaped `interval + timeout` after its last frame, and a
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
    pub(super) const fn max_silence(&self) -> Duration {
        self.interval.saturating_add(self.timeout)
    }
}

/// What is to be done about a silence, and when to next_check again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum PeerStatus {
    Alive { next_check: Instant },
    NeedsPing { next_check: Instant },
    Dead,
}

/// A peer's signs of life. It has no timer and no clock.
#[derive(Clone, Copy, Debug)]
pub(super) struct PeerMonitor {
    keepalive: Keepalive,
    /// After how long a silence it is pinged.
    ping_after: Duration,
    last_frame: Instant,
}

impl PeerMonitor {
    pub(super) fn new(keepalive: Keepalive, bits: u64, now: Instant) -> Self {
        let ping_after = stagger::draw(keepalive.interval / 4 * 3, keepalive.interval, bits);
        Self { keepalive, ping_after, last_frame: now }
    }

    pub(super) const fn frame_received(&mut self, now: Instant) {
        self.last_frame = now;
    }

    pub(super) fn status(&self, now: Instant) -> PeerStatus {
        let silent = now.saturating_duration_since(self.last_frame);
        if silent >= self.keepalive.max_silence() {
            PeerStatus::Dead
        } else if silent >= self.ping_after {
            PeerStatus::NeedsPing { next_check: self.last_frame + self.keepalive.max_silence() }
        } else {
            PeerStatus::Alive { next_check: self.last_frame + self.ping_after }
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
        for (bits, ping_after) in [(0, ms(15_000)), (u64::MAX, ms(20_000))] {
            let mut monitor = PeerMonitor::new(KEEPALIVE, bits, start);
            let end = start + ms(30_000);
            assert_eq!(monitor.status(start), PeerStatus::Alive { next_check: start + ping_after });
            assert_eq!(
                monitor.status(start + ping_after - ms(1)),
                PeerStatus::Alive { next_check: start + ping_after }
            );
            assert_eq!(monitor.status(start + ping_after), PeerStatus::NeedsPing { next_check: end });
            assert_eq!(monitor.status(end - ms(1)), PeerStatus::NeedsPing { next_check: end });
            assert_eq!(monitor.status(end), PeerStatus::Dead);
            monitor.frame_received(end - ms(1));
            assert_eq!(monitor.status(end), PeerStatus::Alive { next_check: end - ms(1) + ping_after });
        }
    }

    #[test]
    fn connections_of_one_moment_are_pinged_over_a_quarter_of_the_period() {
        let (start, seed) = (Instant::now(), stagger::Seed::new(7));
        let mut seconds = [0; 5];
        for id in 0..10_000 {
            let PeerStatus::Alive { next_check } =
                PeerMonitor::new(KEEPALIVE, seed.for_call(id).get(), start).status(start)
            else {
                panic!("dead at its beginning")
            };
            seconds[(next_check - start - ms(15_000)).as_secs() as usize] += 1;
        }
        assert!(seconds.iter().all(|&pings| (1_850..2_150).contains(&pings)), "{seconds:?}");
    }
}
