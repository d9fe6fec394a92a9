//! The pacer: when a server refuses part of the calls, the others start at the rate that it admits.
//!
//! ```
//! use core::time::Duration;
//! use stagger_core::guard::{Limiter, LimiterPermit, Turn};
//! use stagger_core::pacer::Pacer;
//! use stagger_core::{Instant, Outcome};
//!
//! static PACER: Pacer = Pacer::new();
//!
//! // A call every 10 ms. From the first refusal on, the server admits every second one, and the pacer measures it.
//! let mut now = Instant::from_nanos(1_000_000_000);
//! for n in 0..100 {
//!     let Turn::Now(permit) = PACER.admit(LimiterPermit::NONE, None, &now) else { panic!("measuring") };
//!     let outcome = if n % 2 == 0 { Outcome::throttled(None) } else { Outcome::Success };
//!     PACER.record(permit, &outcome, &now);
//!     now = now.saturating_add(Duration::from_millis(10));
//! }
//! // Now a call starts about every 20 ms.
//! let Turn::Now(_) = PACER.admit(LimiterPermit::NONE, None, &now) else { panic!("the first turn is due") };
//! let Turn::Wait { after, permit } = PACER.admit(LimiterPermit::NONE, None, &now) else { panic!("paced") };
//! assert!((Duration::from_millis(19)..Duration::from_millis(24)).contains(&after), "{after:?}");
//! PACER.release(permit);
//! ```
//!
//! Pacer or quiet period? A [quiet period](crate::quiet) does what the server asks for, for as long as it asks. A pacer
//! learns what a server takes that refuses without saying for how long, and keeps first attempts to it. They complement
//! each other: the pacer is asked first, so that calls come back from a pause at the pace of both.

mod builder;
mod limiter;
mod rate;
mod recent;
mod state;

pub use builder::{PacerBuilder, PacerError, PacerProblem};
pub use limiter::Pacer;
pub use state::{PacerSnapshot, PacerState};
