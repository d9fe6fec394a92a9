//! Guards for a fleet.

#[allow(dead_code)]
mod lease;
#[cfg(test)]
mod model;
#[allow(dead_code)]
mod store;
