//! The pacer: when a server refuses part of the calls, the others start at the rate that it admits.
//!
//! ```
//! use core::time::Duration;
//! use stagger_core::guard::{Answer, Ask, End, Guard, Permit};
//! use stagger_core::pacer::Pacer;
//! use stagger_core::{Instant, Outcome};
//!
//! static PACER: Pacer = Pacer::new();
//!
//! // A call every 10 ms. From the first refusal on, the server admits every second one, and the pacer measures it.
//! let mut now = Instant::from_nanos(1_000_000_000);
//! for n in 0..100 {
//!     let Answer::Go(permit) = PACER.ask(Ask::FIRST, Permit::NONE, &now) else { panic!("measuring") };
//!     let outcome = if n % 2 == 0 { Outcome::throttled(None) } else { Outcome::Success };
//!     PACER.settle(permit, End::Made(&outcome), &now);
//!     now = now.saturating_add(Duration::from_millis(10));
//! }
//! // Now a call starts about every 20 ms.
//! let Answer::Go(_) = PACER.ask(Ask::FIRST, Permit::NONE, &now) else { panic!("the first turn is due") };
//! let Answer::Wait { after, permit } = PACER.ask(Ask::FIRST, Permit::NONE, &now) else { panic!("paced") };
//! assert!((Duration::from_millis(19)..Duration::from_millis(24)).contains(&after), "{after:?}");
//! PACER.settle(permit, End::NeverMade, &now);
//! ```
//!
//! Pacer or quiet period? A [quiet period](crate::quiet) does what the server asks for, for as long as it asks. A pacer
//! learns what a server takes that refuses without saying for how long, and keeps first attempts to it. They complement
//! each other: the pacer is asked first, so that calls come back from a pause at the pace of both.

mod limiter;
mod rate;
mod recent;
mod state;

pub use limiter::Pacer;
pub use state::{PacerSnapshot, PacerState};
