use core::fmt;

use http::{Extensions, HeaderMap, Method};
use reqwest::Request;
use reqwest::redirect::Policy;
use reqwest_middleware::{ClientBuilder, ClientWithMiddleware, Middleware, Next};
use stagger::Retrier;

use super::call::{RetryCall, Sending};
use super::error::Redirects;
use crate::client::{self, Origin, RequestHead, RetrySettings};
use crate::key;

/// A middleware that retries requests. See the [module](super) for what it does.
pub struct RetryMiddleware {
    settings: RetrySettings<Request>,
    redirects: Redirects,
}

impl RetryMiddleware {
    /// Creates a middleware that retries according to a policy or through a [`Retrier`], with its budget, circuit
    /// breaker, rules, listeners and operator controls, on tokio's timer.
    ///
    /// Each origin, which is a scheme, a host and a port, has guards of its own, with the settings of those that the
    /// retrier was given: a host that is down does not stop the calls to the others. A redirect that reqwest follows
    /// counts for the origin that the request was made to. Up to 1,000 origins have their own; see
    /// [`Keyed`](stagger::guard::Keyed). For other [keys](crate::key) than the origin, see
    /// [`guards_by`](Self::guards_by). For one guard for all origins, or to share it with other clients, give the
    /// retrier a [shared](Retrier::shared_guard) one.
    #[must_use]
    pub fn new(retrier: impl Into<Retrier>) -> Self {
        let settings = RetrySettings::new(retrier.into().look_into::<reqwest::Error>());
        Self { settings, redirects: Redirects::default() }
    }

    /// Builds a client with this middleware alone, which follows redirects according to `policy`:
    /// [`within_origin`](super::within_origin), unless none of the headers is a secret.
    ///
    /// The redirects are [watched](Redirects::watch), and reqwest's own retries are switched off, so that they do not
    /// multiply the attempts. The redirect and retry policies of `client` are replaced; everything else is kept.
    /// reqwest has no timeout by default: set one, or [`Retrier::timeout`].
    ///
    /// ```
    /// use std::time::Duration;
    ///
    /// use reqwest::Client;
    /// use stagger_http::reqwest::{RetryMiddleware, within_origin};
    ///
    /// let builder = Client::builder().timeout(Duration::from_secs(5));
    /// let client = RetryMiddleware::new(stagger::Policy::DEFAULT).build_client(builder, within_origin())?;
    /// # drop(client);
    /// # Ok::<(), reqwest::Error>(())
    /// ```
    ///
    /// # Errors
    /// Returns reqwest's error if the client cannot be built.
    pub fn build_client(self, client: reqwest::ClientBuilder, policy: Policy) -> reqwest::Result<ClientWithMiddleware> {
        let (policy, redirects) = Redirects::watch(policy);
        let client = client.redirect(policy).retry(reqwest::retry::never()).build()?;
        Ok(ClientBuilder::new(client).with(self.redirects(redirects)).build())
    }

    /// Sets what is known about the redirects that the client follows. Default: it may follow some, and nothing is
    /// known about them.
    ///
    /// Without it, a request that is not idempotent is not retried after an attempt that another server may have ended:
    /// neither if the connection could not be established, nor if the request was rejected with a reservation, nor with
    /// refreshed credentials.
    #[must_use]
    pub fn redirects(mut self, redirects: Redirects) -> Self {
        self.redirects = redirects;
        self
    }

    fn update_common(mut self, change: impl FnOnce(&mut RetrySettings<Request>)) -> Self {
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
        RetryCall::new(request, extensions, &self.settings, &self.redirects).run(extensions, next)
    }
}

impl RequestHead for Request {
    fn method(&self) -> &Method {
        self.method()
    }

    fn headers_mut(&mut self) -> &mut HeaderMap {
        self.headers_mut()
    }
}

impl key::sealed::Head for Request {
    fn write_origin(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let url = self.url();
        fmt::Display::fmt(&Origin::new(url.scheme(), url.host_str().unwrap_or(""), url.port()), f)
    }

    fn user_info(&self) -> (&str, &str) {
        (self.url().username(), self.url().password().unwrap_or(""))
    }

    fn headers(&self) -> &HeaderMap {
        self.headers()
    }
}

impl fmt::Debug for RetryMiddleware {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RetryMiddleware").field("settings", &self.settings).field("redirects", &self.redirects).finish()
    }
}
