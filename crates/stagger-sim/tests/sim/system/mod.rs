//! Tests of systems of services: published cells, and properties.

mod caches;
mod chains;
mod noise;
mod one_server;
mod properties;
mod table;
mod thresholds;
