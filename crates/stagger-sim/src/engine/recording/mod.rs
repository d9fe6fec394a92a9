//! What a running scenario records: counts over time, and the distribution of numbers.

pub(crate) mod histogram;
pub(crate) mod time_series;
