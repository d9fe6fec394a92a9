//! The limits of the machine for many connections: errors say how to raise them.

use core::error::Error;
use core::fmt;
use core::net::Ipv4Addr;
use core::ops::RangeInclusive;
use std::fs;

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

/// The system lacks a resource that a test needs; the message includes the fix.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum ResourceError {
    /// The hard limit of open files is too low.
    Descriptors {
        /// Number of files that the process would have open.
        needed: u64,
        /// The hard limit of `RLIMIT_NOFILE`.
        hard: u64,
    },
    /// The loopback network has too few source addresses and ports for the connections.
    Ports {
        /// Number of connections requested.
        connections: u64,
        /// Maximum number of connections.
        room: u64,
    },
    /// The limit of the system is unknown.
    Unknown {
        /// Source of the limit.
        source: &'static str,
        /// Cause of the failure.
        reason: String,
    },
}

impl fmt::Display for ResourceError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Descriptors { needed, hard } => write!(
                f,
                "{needed} open files needed, but the hard limit is {hard}; raise it as root (`ulimit -Hn {needed}`, \
                 `LimitNOFILE={needed}` for a service, `--ulimit nofile={needed}` for a container) or use fewer \
                 connections"
            ),
            Self::Ports { connections, room } => write!(
                f,
                "{connections} connections requested, but the maximum is {room}; widen net.ipv4.ip_local_port_range or \
                 use fewer connections"
            ),
            Self::Unknown { source, reason } => write!(f, "cannot read {source}: {reason}"),
        }
    }
}

impl Error for ResourceError {}

/// Reserve for descriptors that a process opens implicitly: standard streams, event queue, name resolver.
const RESERVE: u64 = 64;

/// Ensures that the process can open `needed` more files, including connections.
///
/// Raises the soft limit of `RLIMIT_NOFILE` to the hard limit if it is too low. Call it before measuring anything:
/// otherwise a test measures the limit.
///
/// # Errors
/// [`ResourceError::Descriptors`] if the hard limit is too low.
pub fn raise_descriptor_limit(needed: u64) -> Result<(), ResourceError> {
    // /dev/fd exists on every Unix; without it, the reserve must suffice.
    let open = fs::read_dir("/dev/fd").map_or(0, |entries| entries.count() as u64);
    let limit = getrlimit(Resource::Nofile);
    let Some(raised) = new_limit(open.saturating_add(needed).saturating_add(RESERVE), limit)? else {
        return Ok(());
    };
    setrlimit(Resource::Nofile, raised)
        .map_err(|error| ResourceError::Unknown { source: "RLIMIT_NOFILE", reason: error.to_string() })
}

/// Returns the limit to set, or `None` if the current one suffices. In an [`Rlimit`], `None` means unlimited.
fn new_limit(total: u64, limit: Rlimit) -> Result<Option<Rlimit>, ResourceError> {
    match limit {
        Rlimit { current, .. } if current.is_none_or(|soft| soft >= total) => Ok(None),
        Rlimit { maximum: Some(hard), .. } if hard < total => Err(ResourceError::Descriptors { needed: total, hard }),
        Rlimit { maximum, .. } => Ok(Some(Rlimit { current: maximum, maximum })),
    }
}

const RANGE: &str = "/proc/sys/net/ipv4/ip_local_port_range";
const RESERVED: &str = "/proc/sys/net/ipv4/ip_local_reserved_ports";

/// Number of source addresses: 127.0.0.1 to 127.0.0.254.
const ADDRESSES: u64 = 254;

/// The ephemeral ports that are available for outgoing connections.
///
/// A connection is identified by source address, source port, target address and target port. So one source address can
/// have as many connections to one server as there are ephemeral ports. All of 127.0.0.0/8 is local, so more source
/// addresses allow more connections.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SourcePorts {
    usable: u64,
}

impl SourcePorts {
    /// Reads the range from `/proc`, without the ports that the administrator has reserved.
    ///
    /// # Errors
    /// [`ResourceError::Unknown`] on a system without this file.
    pub fn read() -> Result<Self, ResourceError> {
        let file = |source| {
            fs::read_to_string(source).map_err(|error| ResourceError::Unknown { source, reason: error.to_string() })
        };
        // The list of reserved ports does not exist on old kernels and in some containers.
        let (range, reserved) = (file(RANGE)?, file(RESERVED).unwrap_or_default());
        Self::parse(&range, &reserved)
            .ok_or(ResourceError::Unknown { source: RANGE, reason: format!("invalid range {range:?}") })
    }

    /// Returns the maximum number of connections from one source address to one server.
    ///
    /// An eighth of the range is left to other processes and to connections in TIME_WAIT.
    #[must_use]
    pub fn per_address(&self) -> u64 {
        self.usable - self.usable / 8
    }

    /// Returns the source addresses that `connections` to one server need: 127.0.0.1, 127.0.0.2 and so on.
    ///
    /// Use them in turn. Bind the socket to the address and port 0 with `IP_BIND_ADDRESS_NO_PORT`; otherwise the kernel
    /// chooses a port before it knows the target, and two connections cannot share it.
    ///
    /// # Errors
    /// [`ResourceError::Ports`] if 254 addresses are not enough.
    pub fn addresses(&self, connections: u64) -> Result<Vec<Ipv4Addr>, ResourceError> {
        let room = self.per_address() * ADDRESSES;
        if connections > room {
            return Err(ResourceError::Ports { connections, room });
        }
        let needed = connections.div_ceil(self.per_address().max(1)).max(1);
        Ok((1..=u8::MAX).map(|last| Ipv4Addr::new(127, 0, 0, last)).take(needed as usize).collect())
    }

    /// Parses `range`, two numbers, and `reserved`, a list like `8080,9000-9100`, as in the kernel's ip-sysctl.
    fn parse(range: &str, reserved: &str) -> Option<Self> {
        let (first, last) = range.trim().split_once(char::is_whitespace)?;
        let range = span(first, last)?;
        let reserved_counts = reserved.trim().split(',').filter_map(|entry| {
            let (first, last) = entry.split_once('-').unwrap_or((entry, entry));
            let reserved = span(first, last)?;
            let both = *reserved.start().max(range.start())..=*reserved.end().min(range.end());
            Some(both.count() as u64)
        });
        let usable = (range.clone().count() as u64).saturating_sub(reserved_counts.sum());
        Some(Self { usable })
    }
}

fn span(first: &str, last: &str) -> Option<RangeInclusive<u16>> {
    Some(first.trim().parse().ok()?..=last.trim().parse().ok()?)
}

#[cfg(test)]
mod tests {
    use core::net::{SocketAddr, SocketAddrV4};
    use core::time::Duration;
    use std::collections::HashSet;
    use std::env;
    use std::fs::File;
    use std::net::TcpListener;

    use rustix::net::{AddressFamily, SocketType, bind, connect, getsockname, socket, sockopt};

    use super::*;
    use crate::Program;

    #[test]
    fn the_soft_limit_is_raised_only_when_needed_and_never_above_the_hard_one() {
        let limit = |current, maximum| Rlimit { current, maximum };
        let short = Err(ResourceError::Descriptors { needed: 4097, hard: 4096 });
        for (total, now, want) in [
            (1024, limit(Some(1024), Some(4096)), Ok(None)),
            (1025, limit(Some(1024), Some(4096)), Ok(Some(limit(Some(4096), Some(4096))))),
            (4096, limit(Some(1024), Some(4096)), Ok(Some(limit(Some(4096), Some(4096))))),
            (4097, limit(Some(1024), Some(4096)), short),
            (4097, limit(Some(1024), None), Ok(Some(limit(None, None)))),
            (u64::MAX, limit(None, None), Ok(None)),
        ] {
            assert_eq!(new_limit(total, now), want, "{total} with {now:?}");
        }
    }

    #[test]
    fn a_process_can_open_more_files_than_its_soft_limit_allowed() {
        let child = Program::this_test("limits::tests::opens_300_files_from_a_limit_of_100").unwrap();
        let done = child.env("KIT_LOW_LIMIT", "yes").run(Duration::from_secs(10)).unwrap();
        assert!(done.stdout_text().contains("300 files are open"), "{done}");
    }

    #[test]
    #[ignore = "lowers the limit of the whole process; the test above runs it in a child process"]
    fn opens_300_files_from_a_limit_of_100() {
        if env::var_os("KIT_LOW_LIMIT").is_none() {
            return;
        }
        let maximum = getrlimit(Resource::Nofile).maximum;
        setrlimit(Resource::Nofile, Rlimit { current: Some(100), maximum }).unwrap();
        let open = || (0..300).map(|_| File::open("/dev/null")).collect::<Result<Vec<_>, _>>();
        open().expect_err("100 is the limit");
        raise_descriptor_limit(300).unwrap();
        println!("{} files are open", open().unwrap().len());
    }

    #[test]
    fn the_message_of_a_resource_error_includes_the_fix() {
        let message = ResourceError::Descriptors { needed: 70_064, hard: 20_000 }.to_string();
        assert!(message.contains("70064 open files") && message.contains("`ulimit -Hn 70064`"), "{message}");
    }

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
    fn another_address_is_returned_when_the_ports_of_one_are_used_up() {
        let ports = SourcePorts { usable: 800 };
        for (connections, addresses) in [(0, 1), (1, 1), (700, 1), (701, 2), (1400, 2), (1401, 3), (177_800, 254)] {
            assert_eq!(ports.addresses(connections).unwrap().len(), addresses, "{connections} connections");
        }
        assert_eq!(ports.addresses(701).unwrap(), [Ipv4Addr::new(127, 0, 0, 1), Ipv4Addr::new(127, 0, 0, 2)]);
    }

    #[test]
    fn too_many_connections_for_all_addresses_are_an_error() {
        let refused = SourcePorts { usable: 800 }.addresses(177_801);
        assert_eq!(refused, Err(ResourceError::Ports { connections: 177_801, room: 177_800 }));
        assert!(SourcePorts { usable: 0 }.addresses(1).is_err());
    }

    #[test]
    fn connections_from_all_addresses_reach_a_server_on_the_first() {
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
