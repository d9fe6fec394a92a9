//! Budgets: what bounds the retries of all calls together.
//!
//! Those of the core, each with what it bounds and when to use it, and [`Partitioned`], which keeps one for each host.

mod partitioned;

#[doc(inline)]
pub use stagger_core::budget::*;

pub use partitioned::Partitioned;
