//! The guards of a simulated client process: a small language of guards with settings.
//!
//! `tokens capacity=500+breaker consecutive=3, window ratio=10%` is a list of two: items are separated by commas, the
//! guards of one process by plus signs, and settings by spaces. Nothing within parentheses separates.

mod guard;
mod kinds;
mod words;

pub(super) use guard::{Guards, parse_list};
pub(super) use words::ratio;
