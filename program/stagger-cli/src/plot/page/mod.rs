//! Reports as pages: one file each, which needs no network and can be read without its script.

mod chart;
mod delays;
mod document;

pub(crate) use chart::Chart;
pub(crate) use delays::delays;
pub(crate) use document::{Front, frame, headings, section, security_policy};
