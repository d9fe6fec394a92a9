//! The machine that keeps one connection up.

mod backoff;
mod ending;
mod health;
mod link;
mod permits;
mod reports;
