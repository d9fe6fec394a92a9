//! `stagger plan`: what a policy does, before it does it.
//!
//! Every forecast is read from the policy; the verdict on drawn delays compares two things that the
//! library gives, draws and forecast, and knows no formula of a delay.

mod args;
pub(crate) mod brief;
mod clients;
mod command;
mod export;
mod forecast;
mod json;
mod notes;
mod pictures;
mod profiles;
mod report;
mod verdict;

pub(crate) use args::PlanArgs;
pub(crate) use command::run;
