//! Mass disconnect.

mod engines;
mod faults;
mod hints;
mod sample;
mod strategies;
mod tables;
mod watched;
