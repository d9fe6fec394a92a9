//! Server-side admission control: admits clients at the rate the server can take, and gives the others a reserved time
//! to return.

mod claimed_slots;
mod queue;
mod reservation;

pub use queue::{Admission, AdmissionBuilder, AdmissionControl, AdmissionError, AdmissionSnapshot, Admit};
pub use reservation::{Reservation, ReservationToken, Secret};
