//! Server-sent events: the parser, and the client in virtual time and on sockets.

mod answers;
mod guards;
mod parser;
mod reconnect;
mod requests;
mod scripted_server;
mod sockets;

use core::time::Duration;

const fn secs(n: u64) -> Duration {
    Duration::from_secs(n)
}

const fn ms(n: u64) -> Duration {
    Duration::from_millis(n)
}
