//! Tests of outages with retries, budgets and breakers.

mod cells;
mod formulas;
mod grid;
mod held;
mod limiters;
mod noise;
mod reference_model;
mod scenario;
mod strategies;
mod tables;
