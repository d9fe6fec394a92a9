//! `ReconnectMachine`, which keeps one connection open.

mod backoff;
mod ending;
mod health;
mod link;
mod permits;
mod reports;
