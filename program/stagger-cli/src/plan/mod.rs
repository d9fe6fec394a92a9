//! `stagger plan`: forecasts the delays of a policy without running anything.

mod args;
mod command;

pub(crate) use args::PlanArgs;
#[cfg(feature = "lab")]
pub(crate) use command::Found;
pub(crate) use command::run;
