//! The policy: plain data that says how a call is retried.

mod backoff;
mod builder;
mod curve;
mod error;
mod jitter;
pub(crate) mod settings;

pub use backoff::{Backoff, DelayList};
pub use builder::PolicyBuilder;
#[doc(hidden)]
pub use builder::units;
pub(crate) use curve::{Curve, Draw, Drawn, Growth, Interval, Shape};
pub use error::{PolicyError, PolicyProblem};
pub(crate) use jitter::{Capped, DelayCurve, Formula, Memory, SAMPLE, SAMPLE_SIDE};
pub use jitter::{HintMode, Jitter, ProfileJitter};
pub use settings::Policy;
pub(crate) use settings::PolicySettings;
