//! The cost that layers of other crates add.

use core::convert::Infallible;
use core::future::{Ready, ready};
use core::time::Duration;

use tower::Layer as _;
use tower::retry::{Policy, Retry};

use super::{Answer, GET, Message, PUT, Server, send};
use crate::case::{Case, Role, Table};
use crate::tower_stack::BackoffAndBudget;

const COUNTED: &str = "tower, a fixed number of immediate retries";
const RESILIENCE: &str = "tower-resilience";

const BASE: Duration = Duration::from_millis(100);
const CAP: Duration = Duration::from_secs(30);

/// Returns the rows of other crates.
pub(super) fn cases() -> Vec<Case> {
    let get = |name, run| Case::work(Table::LayerGet, Role::Peer, name, run);
    let put = |name, run| Case::work(Table::LayerPut, Role::Peer, name, run);
    vec![
        get("tower, backoff and budget", |iterations| budgeted(&GET, iterations)),
        get(COUNTED, |iterations| counted(&GET, iterations)).note("no delay, no jitter, no budget"),
        get(RESILIENCE, |iterations| resilience(&GET, iterations)).note("the future is boxed"),
        put("tower, backoff and budget", |iterations| budgeted(&PUT, iterations)),
        put(COUNTED, |iterations| counted(&PUT, iterations)).note("no delay, no jitter, no budget"),
        put(RESILIENCE, |iterations| resilience(&PUT, iterations)).note("the future is boxed"),
    ]
}

fn budgeted(message: &Message, iterations: u64) {
    send(Retry::new(BackoffAndBudget::new(BASE, CAP, 0.99), Server), message, iterations);
}

impl Policy<Message, Answer, Infallible> for BackoffAndBudget {
    type Future = tokio::time::Sleep;

    fn retry(&mut self, _: &mut Message, result: &mut Result<Answer, Infallible>) -> Option<Self::Future> {
        self.record(is_success(result))
    }

    fn clone_request(&mut self, message: &Message) -> Option<Message> {
        Some(message.clone())
    }
}

fn counted(message: &Message, iterations: u64) {
    send(Retry::new(Attempts(3), Server), message, iterations);
}

/// The policy in the documentation of tower's trait: a fixed number of retries without delay.
#[derive(Clone)]
struct Attempts(usize);

impl Policy<Message, Answer, Infallible> for Attempts {
    type Future = Ready<()>;

    fn retry(&mut self, _: &mut Message, result: &mut Result<Answer, Infallible>) -> Option<Ready<()>> {
        if is_success(result) {
            return None;
        }
        self.0 = self.0.checked_sub(1)?;
        Some(ready(()))
    }

    fn clone_request(&mut self, message: &Message) -> Option<Message> {
        Some(message.clone())
    }
}

fn is_success(result: &Result<Answer, Infallible>) -> bool {
    result.as_ref().is_ok_and(|answer| !answer.status().is_server_error())
}

fn resilience(message: &Message, iterations: u64) {
    use tower_resilience_retry::{ExponentialRandomBackoff, RetryLayer};

    let backoff = ExponentialRandomBackoff::new(BASE, 0.5)
        // It rejects a factor outside 0 to 1.
        .expect("a valid constant")
        .max_interval(CAP);
    let layer = RetryLayer::<Message, Answer, Infallible>::builder()
        .max_attempts(4)
        .backoff(backoff)
        .retry_on_response(|answer| answer.status().is_server_error())
        .build();
    send(layer.layer(Server), message, iterations);
}
