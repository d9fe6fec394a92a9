//! `stagger wait` against real servers, files and processes.

mod claims;
mod scenes;
mod terminal;
mod uses;

pub(crate) use scenes::read_until;
