//! One attempt for one target: is it ready now? Bounded in time, and in the bytes read.

mod http;
mod network;
mod probe;
#[cfg(unix)]
mod process;

pub(super) use probe::{Probe, Ready};
