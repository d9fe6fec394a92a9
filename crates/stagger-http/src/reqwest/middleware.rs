use core::fmt;

use http::{Extensions, HeaderMap, Method};
use reqwest::Request;
use reqwest_middleware::{Middleware, Next};
use stagger::Retrier;

use super::call::{RetryCall, Sending};
use crate::client::{self, RequestHead, Settings};

/// A middleware that retries requests. See the [module](super) for what it does.
pub struct RetryMiddleware {
    settings: Settings<Request>,
}

impl RetryMiddleware {
    /// Creates a middleware that retries according to a policy or through a [`Retrier`], with its budget, circuit breaker,
    /// rules, listeners and operator controls, on tokio's timer.
    ///
    /// Each origin, which is a scheme, a host and a port, has a budget and a breaker of its own, with the settings of those
    /// that the retrier was given: a host that is down does not stop the calls to the others. A redirect that reqwest follows
    /// counts for the origin that the request was made to. Up to 1,000 origins have their own; see
    /// [`Keyed`](stagger::guard::Keyed). For one budget or breaker for all origins, or to share it with other clients, give
    /// the retrier a [shared](Retrier::shared_budget) one.
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
        RetryCall::new(request, extensions, &self.settings).run(extensions, next)
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
