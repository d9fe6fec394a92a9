//! Policies as text: one line, tables, error messages.

#[cfg(feature = "serde")]
mod config;
mod defaults;
mod errors;
mod lengths;
mod line;
mod messages;
mod problems;
