//! Admission that all servers behind a balancer share.
//!
//! Each server holds a lease on a [share](shares::ShareClaim) of the rate, and decides alone with it: its
//! [`Queue`](queue::Queue) admits clients and gives the others times to return, which any of the servers honors within
//! its own share. [`Shares`](shares::Shares) is the store's side.
//!
//! Servers lease shares of the rate and not blocks of return times, because a herd takes thousands of times between two
//! reports. A share that grows begins behind the reservations of all, so that what is promised stays within the rate.
//! Whether a token was shown at another server is not asked: it takes capacity there.

pub mod queue;
pub mod settings;
pub mod shares;
