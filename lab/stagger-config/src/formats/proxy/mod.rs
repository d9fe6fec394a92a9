//! Proxies.

pub(crate) mod envoy;
pub(crate) mod haproxy;
pub(crate) mod nginx;
