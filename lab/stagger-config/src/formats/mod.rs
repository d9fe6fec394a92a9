//! The readers, by what they are for.

mod ci;
mod cluster;
mod detect;
mod library;
mod methods;
mod proxy;
mod restart;
mod step_functions;

pub(crate) use detect::read;
