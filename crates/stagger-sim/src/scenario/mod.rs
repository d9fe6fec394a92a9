//! What all scenarios share: what can be wrong with one, and how its clients decide.

pub(crate) mod client_policy;
pub(crate) mod error;
pub(crate) mod setters;
