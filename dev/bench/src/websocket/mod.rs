//! Section J: WebSockets with both ends in this process, over a pipe or a socket.

mod echo;
mod idle;
mod kinds;
mod messages;
mod rejected;

use crate::case::Case;

/// The rows of the goals.
pub(crate) const BARE: &str = "tokio-tungstenite";
pub(crate) const IN_A_TASK: &str = "tokio-tungstenite in a task, two channels";
pub(crate) const LOW: &str = "Connection";
pub(crate) const HIGH: &str = "Client";
pub(crate) const SERVED: &str = "server::Socket";
const OPEN_AND_CLOSE: &str = "tokio-tungstenite, opened and closed";
const BY_CLOSE: &str = "Sockets, by a close";
const BY_RESPONSE: &str = "Sockets, by a 503";

/// Returns the rows of the tables.
pub(crate) fn cases() -> Vec<Case> {
    [messages::cases(), idle::cases(), rejected::cases()].concat()
}
