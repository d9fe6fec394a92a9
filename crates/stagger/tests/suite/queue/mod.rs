//! Retries in bulk: the wheel against a model, the queues in virtual time.

mod delay;
mod model;
mod restart;
mod retry;
mod wheel;
