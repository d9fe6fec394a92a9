//! One attempt for one target: is it ready now? Bounded in time, and in the bytes read.

mod attempt;
mod http;
mod network;
mod proxy;

#[cfg(unix)]
mod process;

pub(super) use attempt::{Probe, Ready};
