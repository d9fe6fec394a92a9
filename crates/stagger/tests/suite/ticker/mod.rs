//! Tickers of the native kind: at the times of a policy, and around a period.

mod asynchronous;
mod interval;
mod scheduled;
