//! The cost that a middleware adds to a reqwest client.

use core::hint::black_box;
use core::time::Duration;
use std::sync::LazyLock;

use bytes::Bytes;
use http::Extensions;
use reqwest::{Client, Request, Response};
use reqwest_middleware::{ClientBuilder, Middleware, Next, Result};
use reqwest_retry::RetryTransientMiddleware;
use reqwest_retry::policies::ExponentialBackoff;
use stagger::{Policy, Retrier, policy};
use stagger_http::reqwest::RetryMiddleware;

use super::{Answer, GET};
use crate::case::{Case, Role, Table};
use crate::future::poll_once;

const POLICY: Policy = policy!(exponential(ms(100), secs(30)).max_attempts(4));

/// Returns the rows of the table.
pub(super) fn cases() -> Vec<Case> {
    let row = |role, name, run| Case::work(Table::Middleware, role, name, run);
    vec![
        row(Role::Bare, "no retries", |iterations| send(builder(), iterations)),
        row(Role::Stagger, "reqwest::RetryMiddleware", |iterations| {
            send(builder().with(RetryMiddleware::new(Retrier::new(POLICY))), iterations)
        }),
        row(Role::Peer, "reqwest-retry", |iterations| send(builder().with(peer()), iterations))
            .note("without its `tracing` feature"),
    ]
}

fn peer() -> impl Middleware {
    let backoff = ExponentialBackoff::builder()
        .retry_bounds(Duration::from_millis(100), Duration::from_secs(30))
        .build_with_max_retries(3);
    RetryTransientMiddleware::new_with_policy(backoff)
}

/// Answers 200 without sending the request.
struct Server;

#[async_trait::async_trait]
impl Middleware for Server {
    async fn handle(&self, request: Request, extensions: &mut Extensions, _: Next<'_>) -> Result<Response> {
        black_box((&request, &extensions));
        Ok(Answer::default().map(|_| Bytes::new()).into())
    }
}

fn builder() -> ClientBuilder {
    /// Shared, because creating a client costs more than everything that is measured here.
    static CLIENT: LazyLock<Client> = LazyLock::new(Client::new);
    ClientBuilder::new(CLIENT.clone())
}

fn send(builder: ClientBuilder, iterations: u64) {
    let client = builder.with(Server).build();
    let message = Request::try_from(GET.clone().map(|_| Bytes::new())).expect("the address is valid");
    for _ in 0..iterations {
        // Without a body it can always be cloned.
        let copy = message.try_clone().expect("a request without a stream");
        let answer = poll_once(client.execute(copy));
        black_box(&answer.is_ok());
    }
}
