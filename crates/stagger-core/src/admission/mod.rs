//! The server's side: who may come in now, and when the others should come back.

mod appointment;
mod queue;

pub use appointment::{Appointment, Ticket};
pub use queue::{Admission, AdmissionBuilder, AdmissionError, AdmissionSnapshot, Admitted};
