//! Tests of mass disconnects.

mod crash_loop;
mod formulas;
mod guarded;
mod problems;
mod progress;
mod reference_model;
mod retry_after;
mod sample;
mod strategies;
mod tables;
mod ties;
