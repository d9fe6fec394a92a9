//! The store: the script, the names of keys, and the connection.

pub(crate) mod connection;
pub(crate) mod keys;
pub(crate) mod script;
