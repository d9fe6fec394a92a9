//! `ReconnectMachine`, which keeps one connection open.

mod backoff;
mod ending;
mod every_loss;
mod health;
mod link;
mod permits;
mod reports;
mod unreachable;
