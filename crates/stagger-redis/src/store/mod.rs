//! The store: the script, the names of keys, and the connection.

pub(crate) mod script;
