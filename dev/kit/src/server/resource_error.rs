use core::error::Error;
use core::fmt;

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
