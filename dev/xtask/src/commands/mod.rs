//! The commands besides `ci`, one file each.

pub(crate) mod autobahn;
pub(crate) mod book;
pub(crate) mod checksums;
pub(crate) mod deb;
pub(crate) mod deny;
pub(crate) mod dist;
pub(crate) mod image;
pub(crate) mod js_package;
pub(crate) mod js_runtimes;
pub(crate) mod lowest;
pub(crate) mod msrv;
pub(crate) mod package;
pub(crate) mod public_api;
pub(crate) mod release_check;
pub(crate) mod release_notes;
pub(crate) mod rpm;
pub(crate) mod sbom;
pub(crate) mod semver;
pub(crate) mod vectors;
pub(crate) mod wasm;
