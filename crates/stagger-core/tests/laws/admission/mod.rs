//! Admission control: which clients are admitted now, and when the others should return.

mod hostile;
mod queue;
