//! At-least-once: what was not acknowledged is sent again.

mod acks;
mod gauges;
mod stream;
mod window;

pub use acks::{Ack, Acks};
pub use stream::{AckedClient, AckedHandle};
pub(super) use window::{Kept, Passing};
