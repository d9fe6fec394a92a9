//! `stagger plan`: forecasts the delays of a policy without running anything.
//!
//! All forecasts are computed by the library. The verdict on drawn delays compares draws and forecast of the library and
//! contains no delay formula of its own.

mod args;
pub(crate) mod brief;
mod budget;
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
pub(crate) use json::forecast_of;
pub(crate) use profiles::json as profiles_json;
