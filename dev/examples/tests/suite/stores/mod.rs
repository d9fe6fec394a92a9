//! The adapters for the AWS SDK, object_store and opendal, against a server that answers as the services do. The clients send
//! through hyper's client, without TLS.

mod aws;
mod object_store;
mod opendal;
mod server;
mod transport;

use std::sync::Arc;

use server::{Reply, Server};
use stagger::breaker::CircuitBreaker;
use stagger::budget::Tokens;
use stagger::{Policy, Seed, policy};
use transport::Transport;

/// Waits 1, 2, 4 and 8 s.
const POLICY: Policy =
    policy!(exponential(secs(1), secs(60)).jitter(Jitter::None).max_attempts(5).hint_spread(Ratio::ZERO));

/// Returns a budget of this many tokens, of which a retry takes five.
fn tokens(capacity: u32) -> Arc<Tokens> {
    Arc::new(Tokens::builder().capacity(capacity).build().unwrap())
}

/// Returns a breaker that opens at the second failure in a row.
fn breaker() -> CircuitBreaker {
    CircuitBreaker::builder(Seed::new(7)).consecutive(2).build().unwrap()
}

/// Replies in this order, and with the last one from then on.
fn script(replies: &'static [Reply]) -> Server {
    Server::start(|number| replies[number.min(replies.len() - 1)])
}
