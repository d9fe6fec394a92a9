//! Policies as text: one line, tables, error messages.

#[cfg(feature = "serde")]
mod config;
mod errors;
mod faults;
mod lengths;
mod line;
mod messages;
