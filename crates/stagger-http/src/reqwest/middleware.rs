use core::fmt;
use core::future::poll_fn;

use http::{Extensions, HeaderMap, Method};
use reqwest::Request;
use reqwest_middleware::{Middleware, Next};
use stagger::Retrier;

use super::call::{RetryCall, Sending};
use crate::client::{self, RequestHead, Settings, insert_attempt};

/// A middleware that retries requests. See the [module](super) for what it does.
pub struct RetryMiddleware {
    settings: Settings<Request>,
}

impl RetryMiddleware {
    /// Creates a middleware that retries according to a policy or through a [`Retrier`], with its budget, circuit breaker,
    /// rules, listeners and operator controls, on tokio's timer.
    #[must_use]
    pub fn new(retrier: impl Into<Retrier>) -> Self {
        Self { settings: Settings::new(retrier.into().look_into::<reqwest::Error>()) }
    }

    fn update_common(mut self, change: impl FnOnce(&mut Settings<Request>)) -> Self {
        change(&mut self.settings);
        self
    }
}

client::retry_options!([] RetryMiddleware, Request);

/// The expansion of `async_trait`, written by hand so that the future stores the request only once.
impl Middleware for RetryMiddleware {
    fn handle<'r, 'e, 'n, 'f>(&'r self, request: Request, extensions: &'e mut Extensions, next: Next<'n>) -> Sending<'f>
    where
        'r: 'f,
        'e: 'f,
        'n: 'f,
        Self: 'f,
    {
        let mut call = RetryCall::new(request, extensions, &self.settings);
        Box::pin(async move {
            loop {
                let attempt = match poll_fn(|cx| call.poll_begin(cx)).await {
                    Ok(attempt) => attempt,
                    Err(open) => return Err(call.rejected(open)),
                };
                insert_attempt(extensions, attempt);
                let request = call.next_attempt(attempt);
                let mut sending = call.send(|| next.clone().run(request, extensions));
                let end = poll_fn(|cx| call.poll_end(&mut sending, cx)).await;
                // Releases what the attempt holds before anything else happens.
                drop(sending);
                match end {
                    Some(Ok(response)) => {
                        let Some((outcome, failure)) = call.on_response(&response) else { return Ok(response) };
                        let response = Box::new(response);
                        let outcome = match call.refresh(failure) {
                            Some(mut credentials) => {
                                let fresh = poll_fn(|cx| call.poll_refresh(&mut credentials, cx)).await;
                                call.on_refreshed(fresh)
                            }
                            None => outcome,
                        };
                        if let Some(last) = call.on_decided(outcome, failure, *response) {
                            return Ok(last);
                        }
                    }
                    Some(Err(error)) => {
                        if let Some(last) = call.on_error(error) {
                            return Err(last);
                        }
                    }
                    None => {
                        if let Some(error) = call.on_timeout() {
                            return Err(error);
                        }
                    }
                }
            }
        })
    }
}

impl RequestHead for Request {
    fn method(&self) -> &Method {
        self.method()
    }

    fn headers(&self) -> &HeaderMap {
        self.headers()
    }

    fn headers_mut(&mut self) -> &mut HeaderMap {
        self.headers_mut()
    }
}

impl fmt::Debug for RetryMiddleware {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RetryMiddleware").field("settings", &self.settings).finish()
    }
}
