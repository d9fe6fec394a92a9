//! A retry budget that runs share: `--budget`.
//!
//! For the runs of a user on a machine, the numbers are in a small file, which each use reads and writes under a lock;
//! what they mean is decided by the token bucket of `stagger_core`. For runs on several machines they are in Redis, and
//! each run has a lease of them (`stagger_redis`), if the program is built with the feature `fleet`.

mod file;
#[cfg(feature = "fleet")]
mod fleet;
mod place;

pub(crate) use place::StoreAddress;
pub(super) use place::{BudgetPlace, SharedBudget};
