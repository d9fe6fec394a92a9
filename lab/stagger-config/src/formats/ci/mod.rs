//! Jobs of continuous integration.

pub(crate) mod github;
pub(crate) mod gitlab;
