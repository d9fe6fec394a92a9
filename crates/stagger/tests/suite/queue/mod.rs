//! The timing wheel, compared with a model, and the queues, in virtual time.

mod delay;
mod model;
mod restart;
mod retry;
mod wheel;
