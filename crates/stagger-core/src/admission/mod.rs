//! The server's side: who may come in now, and when the others should come back.

mod queue;
mod reservation;

pub use queue::{Admission, AdmissionBuilder, AdmissionError, AdmissionSnapshot, Admit};
pub use reservation::{Reservation, ReservationToken};
