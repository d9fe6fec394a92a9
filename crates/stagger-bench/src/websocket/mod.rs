//! Section J: WebSockets, both ends of them in this process, with a pipe or a socket between.

mod idle;
mod kinds;
mod messages;
mod talk;

use crate::case::Case;

/// The rows that the goals are about.
pub(crate) const BARE: &str = "tokio-tungstenite";
pub(crate) const IN_A_TASK: &str = "tokio-tungstenite in a task, two channels";
pub(crate) const LOW: &str = "Connection";
pub(crate) const HIGH: &str = "Client";
pub(crate) const SERVED: &str = "server::Socket";

/// Every row of the tables.
pub(crate) fn cases() -> Vec<Case> {
    [messages::cases(), idle::cases()].concat()
}
