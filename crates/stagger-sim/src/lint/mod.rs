//! What makes a storm of a policy, found before it is one.

mod fit;

pub use fit::{Curve, Fit};
