//! Server-side admission control: admits clients at the rate the server can take, and gives the others a reserved time
//! to return.

mod builder;
mod claimed_slots;
mod control;
mod queue;
mod reservation;
mod secret;
mod siphash;

pub use builder::{AdmissionBuilder, AdmissionError};
pub use control::AdmissionControl;
pub use queue::{Admission, AdmissionSnapshot, Admit};
pub use reservation::{Reservation, ReservationToken};
pub use secret::Secret;
