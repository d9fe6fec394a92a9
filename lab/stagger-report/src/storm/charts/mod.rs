//! Charts of a storm, each generated from the document alone.

mod active;
mod all;
mod arrivals;
mod attempts;
mod common;
mod raster;
mod recovery;
mod trade_off;

pub(super) use all::charts;
