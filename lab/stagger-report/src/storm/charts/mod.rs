//! Charts of a storm, each generated from the document alone.

mod common;
mod over_time;
mod per_client;
mod trade_off;

pub(super) use over_time::{active, arrivals, recovery};
pub(super) use per_client::{attempts, raster};
pub(super) use trade_off::trade_off;
