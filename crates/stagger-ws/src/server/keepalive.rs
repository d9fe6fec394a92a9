use core::time::Duration;

use tokio::time::Instant;

use crate::sync::saturating_add;

/// How dead peers are detected: a silent peer is sent a ping, and its connection is closed if nothing arrives after
/// that.
///
/// Any frame counts as a sign of life, not only a pong. A peer is dead `interval + timeout` after its last frame, or if
/// a message cannot be written for that long. Detection requires the [`Socket`](super::Socket) to be polled.
///
/// The ping is sent after 3/4 to all of `interval`. Each connection draws this time once, so that connections that were
/// opened together are not pinged together.
///
/// Complete: an interval and a timeout.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Keepalive {
    /// Maximum time without a frame before a ping is sent. Default 20 s. Must be more than zero.
    pub interval: Duration,
    /// Time after `interval` until the peer is considered dead. Default 10 s. Must be more than zero.
    pub timeout: Duration,
}

impl Default for Keepalive {
    fn default() -> Self {
        Self { interval: Duration::from_secs(20), timeout: Duration::from_secs(10) }
    }
}

impl Keepalive {
    /// Returns the longest silence of a live peer.
    pub(super) const fn max_silence(&self) -> Duration {
        self.interval.saturating_add(self.timeout)
    }
}

/// The state of a peer, and when to check it again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum PeerStatus {
    Alive { next_check: Instant },
    NeedsPing { next_check: Instant },
    Dead,
}

/// Tracks the frames of a peer. Has no timer and no clock.
#[derive(Clone, Copy, Debug)]
pub(super) struct PeerMonitor {
    keepalive: Keepalive,
    /// The silence after which the peer is pinged.
    ping_after: Duration,
    last_frame: Instant,
}

impl PeerMonitor {
    pub(super) fn new(keepalive: Keepalive, bits: u64, now: Instant) -> Self {
        let ping_after = stagger::schedule::draw(keepalive.interval / 4 * 3, keepalive.interval, bits);
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
            PeerStatus::NeedsPing { next_check: saturating_add(self.last_frame, self.keepalive.max_silence()) }
        } else {
            PeerStatus::Alive { next_check: saturating_add(self.last_frame, self.ping_after) }
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
    fn a_silent_peer_is_pinged_within_the_interval_and_dead_after_the_timeout() {
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
    fn connections_opened_together_are_pinged_over_a_quarter_of_the_interval() {
        let (start, seed) = (Instant::now(), stagger::Seed::new(7));
        let mut seconds = [0; 5];
        for id in 0..10_000 {
            let PeerStatus::Alive { next_check } =
                PeerMonitor::new(KEEPALIVE, seed.for_call(id).get(), start).status(start)
            else {
                panic!("dead at the start")
            };
            seconds[(next_check - start - ms(15_000)).as_secs() as usize] += 1;
        }
        assert!(seconds.iter().all(|&pings| (1_850..2_150).contains(&pings)), "{seconds:?}");
    }
}
