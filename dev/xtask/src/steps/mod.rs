//! The steps of `cargo xtask ci`, one file each.

pub(crate) mod doc;
pub(crate) mod docs_rs;
pub(crate) mod examples;
pub(crate) mod features;
pub(crate) mod format;
pub(crate) mod fuzz;
pub(crate) mod js;
pub(crate) mod lint;
pub(crate) mod loom;
pub(crate) mod no_std;
pub(crate) mod packages;
pub(crate) mod public_api;
pub(crate) mod test;
