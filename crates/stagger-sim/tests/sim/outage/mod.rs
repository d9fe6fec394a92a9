//! Tests of outages with retries, budgets and breakers.

mod engines;
mod formulas;
mod grid;
mod limiters;
mod reference_model;
mod strategies;
mod tables;
