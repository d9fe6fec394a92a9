//! The simulated environment: when connections are lost, and how long messages take.

pub(crate) mod distributions;
pub(crate) mod network;
pub(crate) mod random;
