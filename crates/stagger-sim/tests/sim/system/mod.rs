//! Tests of systems of services: published cells, and properties.

mod anchors;
mod caches;
mod chains;
#[cfg(feature = "toml")]
mod file;
mod gains;
mod horizons;
mod noise;
mod one_server;
mod plain_model;
mod properties;
mod table;
mod thresholds;
