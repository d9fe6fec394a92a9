//! What counts as one peer, and how much each has.

use core::net::{IpAddr, Ipv6Addr};
use std::collections::HashMap;

/// Returns the peer of an address: an IPv4 address, or the /64 network of an IPv6 address, since one host has all of it.
pub(in crate::server) fn peer(address: IpAddr) -> IpAddr {
    match address.to_canonical() {
        IpAddr::V6(address) => {
            const NETWORK: u128 = !(u64::MAX as u128);
            Ipv6Addr::from_bits(address.to_bits() & NETWORK).into()
        }
        address => address,
    }
}

/// How many of something each peer has. Peers that have none take up no memory.
#[derive(Debug)]
pub(in crate::server) struct PeerCounts {
    max: usize,
    counts: HashMap<IpAddr, usize>,
}

impl PeerCounts {
    pub(in crate::server) fn new(max: Option<usize>) -> Self {
        Self { max: max.unwrap_or(usize::MAX), counts: HashMap::new() }
    }

    /// Returns whether a peer has as many as it may have.
    pub(in crate::server) fn is_at_limit(&self, peer: IpAddr) -> bool {
        self.counts.get(&peer).is_some_and(|&count| count >= self.max)
    }

    pub(in crate::server) fn increment(&mut self, peer: IpAddr) {
        *self.counts.entry(peer).or_default() += 1;
    }

    pub(in crate::server) fn decrement(&mut self, peer: IpAddr) {
        if let Some(count) = self.counts.get_mut(&peer) {
            *count -= 1;
            if *count == 0 {
                self.counts.remove(&peer);
            }
        }
    }

    #[cfg(test)]
    pub(in crate::server) fn is_empty(&self) -> bool {
        self.counts.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_peer_is_an_ipv4_address_or_an_ipv6_network() {
        for (address, want) in [
            ("192.0.2.1", "192.0.2.1"),
            ("::ffff:192.0.2.1", "192.0.2.1"),
            ("2001:db8:1:2:3:4:5:6", "2001:db8:1:2::"),
            ("2001:db8:1:2::", "2001:db8:1:2::"),
        ] {
            assert_eq!(peer(address.parse().unwrap()), want.parse::<IpAddr>().unwrap(), "{address}");
        }
    }
}
