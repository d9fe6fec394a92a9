//! How many rejected clients are being closed at a time.

use core::net::IpAddr;
use std::sync::{Arc, Mutex};

use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use super::peer::{PeerCounts, peer};
use crate::sync::lock;

/// The slots of rejected clients whose WebSocket is being closed, in total and by peer.
pub(in crate::server) struct ClosingSlots {
    slots: Arc<Semaphore>,
    by_peer: Mutex<PeerCounts>,
}

/// A drop guard for a slot.
pub(in crate::server) struct ClosingSlot {
    _slot: OwnedSemaphorePermit,
    /// The peer that it counts for, and where.
    counted: Option<(IpAddr, Arc<ClosingSlots>)>,
}

impl ClosingSlots {
    pub(in crate::server) fn new(max: usize, max_per_peer: Option<usize>) -> Self {
        let slots = Arc::new(Semaphore::new(max.min(Semaphore::MAX_PERMITS)));
        Self { slots, by_peer: Mutex::new(PeerCounts::new(max_per_peer)) }
    }

    /// Returns a slot if there is one, and if the peer, where it is known, has not as many already as it may have.
    pub(in crate::server) fn try_take(self: &Arc<Self>, address: Option<IpAddr>) -> Option<ClosingSlot> {
        let slot = Arc::clone(&self.slots).try_acquire_owned().ok()?;
        let peer = address.map(peer);
        if let Some(peer) = peer {
            let mut by_peer = lock(&self.by_peer);
            if by_peer.is_at_limit(peer) {
                return None;
            }
            by_peer.increment(peer);
        }
        Some(ClosingSlot { _slot: slot, counted: peer.map(|peer| (peer, Arc::clone(self))) })
    }
}

impl Drop for ClosingSlot {
    fn drop(&mut self) {
        if let Some((peer, slots)) = &self.counted {
            lock(&slots.by_peer).decrement(*peer);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_peer_takes_no_more_than_its_share_and_leaves_nothing_behind() {
        let slots = Arc::new(ClosingSlots::new(4, Some(2)));
        let take = |address: &str| slots.try_take(Some(address.parse().unwrap()));
        let (first, second) = (take("2001:db8::1"), take("2001:db8::2"));
        assert!(first.is_some() && second.is_some());
        assert!(take("2001:db8::3").is_none(), "it is one network");
        let other = (take("192.0.2.1"), slots.try_take(None));
        assert!(other.0.is_some() && other.1.is_some());
        assert!(take("192.0.2.2").is_none(), "all slots are taken");
        drop(first);
        let again = take("2001:db8::3");
        assert!(again.is_some());
        drop((second, other, again));
        assert!(lock(&slots.by_peer).is_empty());
        assert_eq!(slots.slots.available_permits(), 4);
    }

    #[test]
    fn without_a_limit_a_peer_takes_all_of_them() {
        let slots = Arc::new(ClosingSlots::new(3, None));
        let taken = [(); 3].map(|()| slots.try_take(Some(IpAddr::from([192, 0, 2, 1]))));
        assert!(taken.iter().all(Option::is_some));
    }
}
