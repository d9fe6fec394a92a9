//! Retry budgets, which limit the retries of all calls together.
//!
//! The budgets of the core, each with what it limits and when to use it, and [`Partitioned`], which has one budget per
//! key, such as per host.

mod partitioned;

#[doc(inline)]
pub use stagger_core::budget::*;

pub use partitioned::Partitioned;
