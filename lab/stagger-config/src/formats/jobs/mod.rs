//! What starts processes, jobs and steps again.

pub(crate) mod compose;
pub(crate) mod github;
pub(crate) mod gitlab;
pub(crate) mod step_functions;
pub(crate) mod systemd;
