//! Mass disconnect.

mod engines;
mod faults;
mod formulas;
mod plain;
mod progress;
mod retry_after;
mod sample;
mod strategies;
mod tables;
