//! The readers, by what they are for.

mod cluster;
mod detect;
mod http;
mod jobs;
mod library;
mod proxy;

pub(crate) use detect::read;
