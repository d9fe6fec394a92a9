//! The search for borders: which values are tried, what the runs say, and how sure that is.

mod curve;
mod evidence;
mod found;
mod narrow;
mod settings;
#[cfg(test)]
mod tests;
mod tries;

pub use found::{Border, BorderPoint, Found, Tried};
pub use settings::Search;
