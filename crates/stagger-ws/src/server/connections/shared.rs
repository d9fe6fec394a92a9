use std::sync::Arc;

use stagger::Seed;
use tokio::sync::Semaphore;

use super::registry::ConnectionRegistry;
use crate::server::builder::SocketsBuilder;
use crate::server::counters::Counters;
use crate::server::rejection::closing_slots::ClosingSlots;

/// The state that all connections of a server share.
pub(in crate::server) struct Shared {
    pub(in crate::server) settings: SocketsBuilder,
    pub(in crate::server) counters: Counters,
    pub(in crate::server) registry: ConnectionRegistry,
    pub(in crate::server) slots: Arc<Semaphore>,
    /// For rejected clients whose WebSocket is being closed.
    pub(in crate::server) closing: Arc<ClosingSlots>,
    pub(in crate::server) seed: Seed,
}
