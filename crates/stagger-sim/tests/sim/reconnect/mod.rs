//! Mass disconnect.

mod engines;
mod faults;
mod formulas;
mod hints;
mod plain;
mod sample;
mod strategies;
mod tables;
mod watched;
