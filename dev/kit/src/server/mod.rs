//! Servers that can be killed and restarted, their ports, and the limits of the machine for them.

pub(crate) mod limits;
pub(crate) mod mariadb;
pub(crate) mod port;
pub(crate) mod postgres;
pub(crate) mod running;
