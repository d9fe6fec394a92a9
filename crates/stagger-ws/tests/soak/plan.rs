//! The duration and the size of the test.

use core::str::FromStr;
use core::time::Duration;
use std::env;

/// Read from environment variables. The defaults are as small as possible.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Plan {
    pub(crate) kills: u32,
    pub(crate) clients: usize,
    /// The interval between two messages of a client, and of the server to each client.
    pub(crate) every: Duration,
    /// Time between the reconnect of the last client and the next kill.
    pub(crate) calm: Duration,
}

impl Plan {
    pub(crate) fn from_env() -> Self {
        let ms = |name, default| Duration::from_millis(number(name, default));
        Self {
            kills: number("SOAK_KILLS", 5),
            clients: number("SOAK_CLIENTS", 200),
            every: ms("SOAK_EVERY_MS", 100),
            calm: ms("SOAK_CALM_MS", 200),
        }
    }
}

pub(crate) fn number<T: FromStr>(name: &str, default: T) -> T {
    match env::var(name) {
        Ok(text) => text.parse().ok().unwrap_or_else(|| panic!("{name} is not a number: {text}")),
        Err(_) => default,
    }
}
