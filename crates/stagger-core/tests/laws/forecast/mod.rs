//! Forecasts, compared with drawn delays.

mod delays;
mod elapsed;
