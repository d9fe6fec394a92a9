//! Outages, and what retries and budgets make of them.

mod engines;
mod formulas;
mod grid;
mod limiters;
mod plain;
mod strategies;
mod tables;
