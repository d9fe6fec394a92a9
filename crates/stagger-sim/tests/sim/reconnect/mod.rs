//! Tests of mass disconnects.

mod crash_loop;
mod formulas;
mod guarded;
mod reference_model;
mod retry_after;
mod scenario;
mod strategies;
mod tables;
