use core::error::Error;
use core::fmt;

/// The machine has less of something than a test is about to use; the message says what to do.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum ResourceError {
    /// The hard limit of open files is too low.
    Descriptors {
        /// How many the process would have open.
        needed: u64,
        /// The hard limit of `RLIMIT_NOFILE`.
        hard: u64,
    },
    /// The loopback network has too few source addresses for so many connections.
    Ports {
        /// How many connections were asked for.
        connections: u64,
        /// How many there is room for.
        room: u64,
    },
    /// The system does not say what it has.
    Unknown {
        /// What was to be read.
        source: &'static str,
        /// What went wrong.
        reason: String,
    },
}

impl fmt::Display for ResourceError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Descriptors { needed, hard } => write!(
                f,
                "{needed} open files are needed and the hard limit is {hard}; raise it as root (`ulimit -Hn {needed}`, \
                 `LimitNOFILE={needed}` for a service, `--ulimit nofile={needed}` for a container) or use fewer \
                 connections"
            ),
            Self::Ports { connections, room } => write!(
                f,
                "{connections} connections are asked for and there is room for {room}; widen \
                 net.ipv4.ip_local_port_range or use fewer connections"
            ),
            Self::Unknown { source, reason } => write!(f, "cannot read {source}: {reason}"),
        }
    }
}

impl Error for ResourceError {}
