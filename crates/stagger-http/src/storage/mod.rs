//! What the adapters for object stores share: which of the stores' requests are safe to retry, and how one is sent through a
//! [`RetryLayer`](crate::tower::RetryLayer).

mod rules;
mod send;

pub(crate) use rules::{is_conditional_write, is_idempotent};
pub(crate) use send::send;
