//! The meanings on which the field disagrees, as stagger settles them; a property for each, as far as the core carries
//! it.
//!
//! The drivers carry the rest, and test it: that an operation is created after the sleep (7), that the caller keeps
//! their own last error (10), that dropping a future settles what it held (11), that a real timer keeps the mean (14),
//! and how a nested call is recognised (15).

mod calls;
mod delays;
mod policies;
