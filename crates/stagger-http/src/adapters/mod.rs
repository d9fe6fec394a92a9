//! Retries for the clients of other crates: adapters, and recipes for those that need none.

#[cfg(feature = "aws")]
#[cfg_attr(docsrs, doc(cfg(feature = "aws")))]
pub mod aws;
#[cfg(feature = "object-store")]
#[cfg_attr(docsrs, doc(cfg(feature = "object-store")))]
pub mod object_store;
#[cfg(feature = "opendal")]
#[cfg_attr(docsrs, doc(cfg(feature = "opendal")))]
pub mod opendal;
#[cfg(feature = "tower")]
#[cfg_attr(docsrs, doc(cfg(feature = "tower")))]
pub mod recipes;
#[cfg(any(feature = "object-store", feature = "opendal"))]
pub(crate) mod storage;
