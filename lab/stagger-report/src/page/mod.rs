//! Reports as pages: one file each, which needs no network and can be read without its script.

mod chart;
mod delays;
mod document;

pub use chart::Chart;
pub use delays::delays;
pub use document::{Front, frame, headings, section, security_policy};
