//! Operator controls that are set once for all processes of a fleet.

pub(crate) mod obeyed;
