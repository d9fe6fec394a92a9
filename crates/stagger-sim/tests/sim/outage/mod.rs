//! Outages, and what retries and budgets make of them.

mod engines;
mod formulas;
mod strategies;
mod tables;
