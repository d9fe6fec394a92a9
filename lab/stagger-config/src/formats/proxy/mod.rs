//! Proxies, and the conditions on which they retry.

pub(crate) mod conditions;
pub(crate) mod envoy;
pub(crate) mod haproxy;
mod limiter;
pub(crate) mod nginx;
