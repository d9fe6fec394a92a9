//! Calls and connections: the figures of the simulator are those of real tasks.
//!
//! Thousands of tokio tasks under a paused clock use the library as a program does, against a server in memory that
//! follows the documentation of the scenario. Their seeds are not those of the simulator, so the figures can only agree
//! as random variables: the means of several runs are compared.

mod advised;
mod comparison;
mod fleet;
mod guards;
mod policies;
mod traffic;
mod virtual_time;

pub(super) use advised::ADVISED;
pub(super) use fleet::{CALLS, CONNECTIONS};
pub(super) use traffic::OUTAGES;
