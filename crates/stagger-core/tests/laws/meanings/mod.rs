//! The meanings on which libraries disagree, as stagger defines them: one property each, as far as the core implements
//! it.
//!
//! The drivers implement and test the rest: that an operation is created after the sleep (7), that the caller gets the
//! last error of the operation (10), that dropping a future returns its permits (11), that a real timer preserves the
//! mean (14), and how a nested call is detected (15).

mod calls;
mod delays;
mod policies;
