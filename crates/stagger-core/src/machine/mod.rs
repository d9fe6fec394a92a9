//! Sans-I/O state machines: they decide, and a driver waits, calls and reads the clock.
//!
//! [`RetryMachine`] decides about the attempts of one call, [`ReconnectMachine`] about a connection that is kept open.
//! Both take the present time, the outcome and the [guards](crate::Guards) as arguments.

pub(crate) mod decision;
mod reconnect;
mod retry;
mod state;
mod strategy;
mod wait;

pub use decision::Decision;
pub use reconnect::{Generation, ReconnectMachine, ReconnectPhase, ReconnectStep, Unreachable};
pub use retry::{Health, RetryMachine};
pub use state::{Paused, RetryState};
pub use strategy::{RetryContext, RetryPlan, Strategy};
pub use wait::spread_again;
