//! Policies as text: one line, tables, error messages.

#[cfg(feature = "serde")]
mod config;
mod errors;
mod lengths;
mod line;
mod problems;
