//! A plan: the forecast delays of a policy, without running anything.
//!
//! All forecasts are computed by the library. The verdict on drawn delays compares draws and forecast of the library
//! and contains no delay formula of its own.

mod forecast;
mod json;
mod notes;
mod pictures;
mod planned;
mod profiles;
mod report;
mod verdict;

pub use forecast::brief;
pub use json::forecast_of;
pub use planned::Plan;
pub use profiles::{json as profiles_json, text as profiles_text};
