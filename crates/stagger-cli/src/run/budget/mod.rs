//! A retry budget that the runs of a user on a machine share: `--budget`.
//!
//! The numbers are in a small file, which each use reads and writes under a lock; what they mean is decided by the token
//! bucket of `stagger_core`.

mod directory;
mod file;
mod record;
mod shared;

pub(super) use shared::SharedBudget;
