//! Admission that all servers behind a balancer share.
//!
//! Each server holds a lease on a [share](claim) of the rate, and decides alone with it: its [`Queue`](queue::Queue)
//! admits clients and gives the others times to return, which any of the servers honors within its own share.
//! [`Shares`](shares::Shares) is the store's side.

pub mod claim;
pub mod queue;
pub mod settings;
pub mod shares;
