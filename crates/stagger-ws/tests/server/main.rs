//! Tests of the server: over pipes with paused time, and over sockets on loopback.

#[cfg(test)]
mod admission;
#[cfg(test)]
mod axum;
#[cfg(test)]
mod capacity;
#[cfg(test)]
mod chromium;
#[cfg(test)]
mod contract;
#[cfg(test)]
mod drain;
#[cfg(test)]
mod javascript;
#[cfg(test)]
mod keepalive;
#[cfg(test)]
mod migration;
#[cfg(test)]
mod proxies;
#[cfg(test)]
mod reject_by_close;
#[cfg(test)]
mod silent;
/// The server of the soak test, in its own process.
#[cfg(test)]
#[path = "../soak"]
mod soak {
    pub(crate) mod plan;
    pub(crate) mod server;
    pub(crate) mod store;
}
#[cfg(test)]
mod support;
