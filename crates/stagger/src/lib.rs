//! wip
#![forbid(unsafe_code)]

pub mod blocking;
mod call;
mod cancel;
pub mod classify;
mod clock;
mod entropy;
mod error;
mod event;
mod fault;
mod future;
mod hand;
mod reconnect;
mod retrier;
mod rule;
pub mod scope;
mod setup;
pub mod sinks;
mod steps;
pub mod testing;
mod timer;

pub use stagger_core::*;

pub use call::Attempt;
pub use cancel::Cancel;
pub use clock::{Clock, SystemClock};
pub use entropy::{Entropy, SystemEntropy, seed};
pub use error::{Error, Last, OwnError, Refused, Report};
pub use event::{Action, Event, EventError};
pub use fault::Fault;
#[cfg(feature = "tokio")]
pub use future::retry;
pub use future::{Retrying, retry_with_timer};
pub use hand::{HandCall, Lend};
pub use reconnect::Reconnecting;
pub use retrier::Retrier;
pub use setup::LastAttempt;
#[cfg(feature = "async-io")]
pub use timer::AsyncIo;
#[cfg(feature = "futures-timer")]
pub use timer::FuturesTimer;
#[cfg(feature = "tokio")]
pub use timer::Tokio;
pub use timer::{BlockingSleep, Sleep, SleepFn, ThreadSleep};
