//! The timing wheel, compared with a model, and the queues, in virtual time.

mod delay;
mod handover;
mod model;
mod poison;
mod restart;
mod retry;
mod wheel;
