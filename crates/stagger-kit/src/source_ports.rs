use core::net::Ipv4Addr;
use core::ops::RangeInclusive;
use std::fs;

use crate::resource_error::ResourceError;

const RANGE: &str = "/proc/sys/net/ipv4/ip_local_port_range";
const RESERVED: &str = "/proc/sys/net/ipv4/ip_local_reserved_ports";

/// The last part of the last source address given out, 127.0.0.254.
const ADDRESSES: u64 = 254;

/// The ports that outgoing connections are given.
///
/// A connection is told apart by source address, source port, target address and target port. To
/// one server, one source address therefore has room for as many connections as there are ephemeral
/// ports; but all of 127.0.0.0/8 is local, so more source addresses make more room.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SourcePorts {
    usable: u64,
}

impl SourcePorts {
    /// Reads the range from `/proc`, without the ports that the administrator has kept back.
    ///
    /// # Errors
    /// [`ResourceError::Unknown`] on a system that does not tell it there.
    pub fn read() -> Result<Self, ResourceError> {
        let file = |source| {
            fs::read_to_string(source).map_err(|error| ResourceError::Unknown { source, reason: error.to_string() })
        };
        // The list of reserved ports is missing on old kernels, and in some containers.
        let (range, reserved) = (file(RANGE)?, file(RESERVED).unwrap_or_default());
        Self::parse(&range, &reserved)
            .ok_or(ResourceError::Unknown { source: RANGE, reason: format!("it says {range:?}") })
    }

    /// How many connections to one server one source address gets.
    ///
    /// An eighth of the range is left to others, and to our own connections in TIME_WAIT.
    #[must_use]
    pub fn per_address(&self) -> u64 {
        self.usable - self.usable / 8
    }

    /// The source addresses that `connections` to one server need: 127.0.0.1, 127.0.0.2 and so on.
    ///
    /// Use them in turn. Bind the socket to the address and port 0 with `IP_BIND_ADDRESS_NO_PORT`,
    /// or the kernel picks a port before it knows the target, and no two connections can share it.
    ///
    /// # Errors
    /// [`ResourceError::Ports`] if 254 addresses have no room for so many.
    pub fn addresses(&self, connections: u64) -> Result<Vec<Ipv4Addr>, ResourceError> {
        let room = self.per_address() * ADDRESSES;
        if connections > room {
            return Err(ResourceError::Ports { connections, room });
        }
        let needed = connections.div_ceil(self.per_address().max(1)).max(1);
        Ok((1..=u8::MAX).map(|last| Ipv4Addr::new(127, 0, 0, last)).take(needed as usize).collect())
    }

    /// `range` is two numbers, `reserved` a list like `8080,9000-9100`, as in the kernel's
    /// ip-sysctl.
    fn parse(range: &str, reserved: &str) -> Option<Self> {
        let (first, last) = range.trim().split_once(char::is_whitespace)?;
        let range = span(first, last)?;
        let kept_back = reserved.trim().split(',').filter_map(|entry| {
            let (first, last) = entry.split_once('-').unwrap_or((entry, entry));
            let kept = span(first, last)?;
            let both = *kept.start().max(range.start())..=*kept.end().min(range.end());
            Some(both.count() as u64)
        });
        let usable = (range.clone().count() as u64).saturating_sub(kept_back.sum());
        Some(Self { usable })
    }
}

fn span(first: &str, last: &str) -> Option<RangeInclusive<u16>> {
    Some(first.trim().parse().ok()?..=last.trim().parse().ok()?)
}

#[cfg(test)]
mod tests {
    use super::*;
    use core::net::{SocketAddr, SocketAddrV4};
    use rustix::net::{AddressFamily, SocketType, bind, connect, getsockname, socket, sockopt};
    use std::collections::HashSet;
    use std::net::TcpListener;

    #[test]
    fn reserved_ports_inside_the_range_do_not_count() {
        for (range, reserved, usable) in [
            ("32768\t60999\n", "\n", 28_232),
            ("32768 60999", "40000", 28_231),
            ("32768 60999", "80,32000-32769,60999-61005", 28_229),
            ("1024 65535", "", 64_512),
        ] {
            assert_eq!(SourcePorts::parse(range, reserved), Some(SourcePorts { usable }), "{range} {reserved}");
        }
        assert_eq!(SourcePorts::parse("all of them", ""), None);
    }

    #[test]
    fn one_address_more_is_advised_as_soon_as_the_ports_of_one_are_used_up() {
        let ports = SourcePorts { usable: 800 };
        for (connections, addresses) in [(0, 1), (1, 1), (700, 1), (701, 2), (1400, 2), (1401, 3), (177_800, 254)] {
            assert_eq!(ports.addresses(connections).unwrap().len(), addresses, "{connections} connections");
        }
        assert_eq!(ports.addresses(701).unwrap(), [Ipv4Addr::new(127, 0, 0, 1), Ipv4Addr::new(127, 0, 0, 2)]);
    }

    #[test]
    fn what_no_number_of_addresses_can_hold_is_refused() {
        let refused = SourcePorts { usable: 800 }.addresses(177_801);
        assert_eq!(refused, Err(ResourceError::Ports { connections: 177_801, room: 177_800 }));
        assert!(SourcePorts { usable: 0 }.addresses(1).is_err());
    }

    #[test]
    fn connections_from_the_advised_addresses_reach_a_server_on_the_first() {
        let ports = SourcePorts::read().unwrap();
        let addresses = ports.addresses(ports.per_address() * 3).unwrap();
        assert_eq!(addresses.len(), 3);
        let server = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
        let target = server.local_addr().unwrap();
        let clients: Vec<_> = addresses
            .iter()
            .map(|address| {
                let client = socket(AddressFamily::INET, SocketType::STREAM, None).unwrap();
                bind(&client, &SocketAddrV4::new(*address, 0)).unwrap();
                connect(&client, &target).unwrap();
                client
            })
            .collect();
        let seen: HashSet<SocketAddr> = clients.iter().map(|_| server.accept().unwrap().1).collect();
        let sent = clients.iter().map(|client| getsockname(client).unwrap().try_into().unwrap()).collect();
        assert_eq!(seen, sent);
        assert!(sockopt::socket_error(&clients[0]).unwrap().is_ok());
    }
}
