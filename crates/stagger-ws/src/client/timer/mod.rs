//! The timers of an open connection.

pub(super) mod deadline_timer;
pub(super) mod keepalive;
