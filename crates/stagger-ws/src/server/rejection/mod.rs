//! How a rejected client is told, and how it presents its reservation when it returns.

pub(super) mod closing;
pub(super) mod closing_slots;
pub(super) mod peer;
pub(super) mod reject_by;
pub(super) mod rejected;
pub(super) mod returned_token;
