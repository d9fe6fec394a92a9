//! Forecasts, held against what is drawn.

mod delays;
mod elapsed;
mod extremes;
