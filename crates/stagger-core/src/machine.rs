//! Sans-I/O state machines: they decide, and a driver waits, calls and reads the clock.
//!
//! [`RetryMachine`] decides about the attempts of one call, [`ReconnectMachine`] about a connection that is kept open.
//! Both take the present time, the outcome and the [guards](crate::Guards) as arguments.

pub use crate::outcome::Decision;
pub use crate::paused::Paused;
pub use crate::reconnect::{Generation, ReconnectMachine, ReconnectPhase, ReconnectStep};
pub use crate::retry::{Health, RetryMachine};
pub use crate::state::RetryState;
