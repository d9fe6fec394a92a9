use core::fmt;
use core::sync::atomic::{AtomicU64, Ordering};
use std::sync::Arc;

use http::{Extensions, HeaderMap, Method};
use reqwest::Request;
use reqwest::redirect::Policy;
use reqwest_middleware::{ClientBuilder, ClientWithMiddleware, Middleware, Next};
use stagger::Retrier;

use super::call::{RetryCall, Sending, origin};
use crate::client::{self, HashWriter, Hops, RequestHead, RetrySettings};

/// A middleware that retries requests. See the [module](super) for what it does.
pub struct RetryMiddleware {
    settings: RetrySettings<Request>,
    redirects: Redirects,
}

impl RetryMiddleware {
    /// Creates a middleware that retries according to a policy or through a [`Retrier`], with its budget, circuit
    /// breaker, rules, listeners and operator controls, on tokio's timer.
    ///
    /// Each origin, which is a scheme, a host and a port, has a budget and a breaker of its own, with the settings of
    /// those that the retrier was given: a host that is down does not stop the calls to the others. A redirect that
    /// reqwest follows counts for the origin that the request was made to. Up to 1,000 origins have their own; see
    /// [`Keyed`](stagger::guard::Keyed). For one budget or breaker for all origins, or to share it with other clients,
    /// give the retrier a [shared](Retrier::shared_budget) one.
    #[must_use]
    pub fn new(retrier: impl Into<Retrier>) -> Self {
        let settings = RetrySettings::new(retrier.into().look_into::<reqwest::Error>());
        Self { settings, redirects: Redirects::default() }
    }

    /// Builds a client with this middleware alone, which follows redirects according to `policy`.
    ///
    /// The redirects are [watched](Redirects::watch), and reqwest's own retries are switched off, so that they do not
    /// multiply the attempts. The redirect and retry policies of `client` are replaced; everything else is kept.
    /// reqwest has no timeout by default: set one, or [`Retrier::timeout`].
    ///
    /// ```
    /// use std::time::Duration;
    ///
    /// use reqwest::{Client, redirect::Policy};
    /// use stagger_http::reqwest::RetryMiddleware;
    ///
    /// let builder = Client::builder().timeout(Duration::from_secs(5));
    /// let client = RetryMiddleware::new(stagger::Policy::DEFAULT).build_client(builder, Policy::default())?;
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

    fn headers(&self) -> &HeaderMap {
        self.headers()
    }

    fn headers_mut(&mut self) -> &mut HeaderMap {
        self.headers_mut()
    }

    fn write_target(&self, out: &mut HashWriter) -> fmt::Result {
        out.target(origin(self), self.url().username(), self.url().password().unwrap_or(""))
    }
}

impl fmt::Debug for RetryMiddleware {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RetryMiddleware").field("settings", &self.settings).field("redirects", &self.redirects).finish()
    }
}

/// What is known about the redirects that a reqwest client follows; for
/// [`RetryMiddleware::redirects`](super::RetryMiddleware::redirects).
///
/// reqwest follows redirects within an attempt, and says of an error only that it could not connect: not whether to the
/// server that the request was sent to, or to another one that this server named after it had processed the request. So
/// an error proves that nothing was sent only if no redirect was followed.
///
/// ```
/// use std::time::Duration;
///
/// use reqwest::{Client, redirect::Policy};
/// use stagger_http::reqwest::{Redirects, RetryMiddleware};
///
/// let (policy, redirects) = Redirects::watch(Policy::default());
/// let client = Client::builder().timeout(Duration::from_secs(5)).redirect(policy).build()?;
/// let client = reqwest_middleware::ClientBuilder::new(client)
///     .with(RetryMiddleware::new(stagger::Policy::DEFAULT).redirects(redirects))
///     .build();
/// # drop(client);
/// # Ok::<(), reqwest::Error>(())
/// ```
#[derive(Clone, Debug, Default)]
pub struct Redirects(RedirectCount);

#[derive(Clone, Debug, Default)]
enum RedirectCount {
    /// The client may follow redirects.
    #[default]
    Unknown,
    /// The client follows none.
    None,
    /// The client counts the redirects that it was asked to follow.
    Counted(Arc<AtomicU64>),
}

impl Redirects {
    /// Returns the redirects of a client that follows none: it was built with [`Policy::none`].
    ///
    /// If the client follows redirects all the same, a request that is not idempotent may be processed twice.
    #[must_use]
    pub const fn none() -> Self {
        Self(RedirectCount::None)
    }

    /// Wraps `policy`, so that the redirects of the client that is built with it are known.
    ///
    /// They are counted per client. If one of its requests is redirected while another fails, the latter counts as
    /// possibly redirected too, and is not retried unless it is idempotent.
    #[must_use]
    pub fn watch(policy: Policy) -> (Policy, Self) {
        let count = Arc::new(AtomicU64::new(0));
        let counted = Arc::clone(&count);
        let watched = Policy::custom(move |attempt| {
            // Before the next hop is sent, so that its end comes after this in every thread that learns of it.
            counted.fetch_add(1, Ordering::Relaxed);
            policy.redirect(attempt)
        });
        (watched, Self(RedirectCount::Counted(count)))
    }

    /// Returns how many redirects the client has followed so far, or `None` if that is unknown.
    pub(super) fn followed(&self) -> Option<u64> {
        match &self.0 {
            RedirectCount::Unknown => None,
            RedirectCount::None => Some(0),
            RedirectCount::Counted(count) => Some(count.load(Ordering::Relaxed)),
        }
    }

    /// Returns the hops of an attempt before which the client had followed `before` redirects.
    pub(super) fn hops_since(&self, before: Option<u64>) -> Hops {
        match self.followed() {
            Some(now) if before == Some(now) => Hops::One,
            _ => Hops::Unknown,
        }
    }
}
