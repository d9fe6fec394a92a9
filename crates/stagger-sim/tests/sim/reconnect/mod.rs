//! Mass disconnect.

mod engines;
mod faults;
mod hints;
mod strategies;
mod tables;
mod watched;
