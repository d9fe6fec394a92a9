//! What reqwest's errors prove about a request, given what is known of the redirects that it follows.

use core::sync::atomic::{AtomicU64, Ordering};
use std::sync::Arc;

use reqwest::redirect::Policy;
use reqwest::{Error, Response, Url};
use stagger::{Outcome, classify};

use crate::client::Hops;
use crate::request::RequestProgress;

/// Classifies an error that the retrier has no rule for.
pub(super) fn outcome(error: &Error) -> Outcome {
    if is_permanent(error) { Outcome::Permanent } else { classify::chain(error).unwrap_or(Outcome::TRANSIENT) }
}

/// Returns whether every attempt with the same request would fail in the same way.
pub(crate) fn is_permanent(error: &Error) -> bool {
    error.is_builder() || error.is_redirect() || error.is_upgrade()
}

/// Returns how far the request of an attempt with these hops got.
pub(super) fn request_progress(error: &Error, hops: Hops) -> RequestProgress {
    match hops {
        Hops::One => RequestProgress::from_error(error),
        // A server that has processed the request may have redirected it to the one that the error is about.
        Hops::Unknown => RequestProgress::MaybeProcessed,
    }
}

/// Removes the user information, the query and the fragment from the URL of an error, since tokens are often in them.
/// Returns the URL as it was, for [`restore_url`].
pub(super) fn hide_url_secrets(error: &mut Error) -> Option<Url> {
    let url = error.url_mut()?;
    let has_secrets =
        url.query().is_some() || url.fragment().is_some() || !url.username().is_empty() || url.password().is_some();
    if !has_secrets {
        return None;
    }
    let original = url.clone();
    url.set_query(None);
    url.set_fragment(None);
    // These fail for URLs that cannot have user information.
    let _ = url.set_username("");
    let _ = url.set_password(None);
    Some(original)
}

/// Restores the URL of an error for its caller.
pub(super) fn restore_url(error: &mut Error, original: Option<Url>) {
    if let (Some(url), Some(original)) = (error.url_mut(), original) {
        *url = original;
    }
}

/// Returns whether the response is from the origin that the request was sent to. reqwest follows redirects itself.
pub(crate) fn is_from_origin(response: &Response, requested: &Url) -> bool {
    response.url().origin() == requested.origin()
}

/// Returns a policy that follows redirects within an origin, which is a scheme, a host and a port: up to ten of them.
/// One to another origin is not followed, and becomes the response, so that the caller decides what to send there.
///
/// Headers that hold secrets then reach nobody but the origin that the request was made to: reqwest's own policies drop
/// `Authorization` and `Cookie` at another host, and pass on all others, such as `X-Api-Key`.
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
#[must_use]
pub fn within_origin() -> Policy {
    const MOST: usize = 10;
    let limited = Policy::limited(MOST);
    Policy::custom(move |attempt| {
        let is_other = attempt.previous().first().is_none_or(|first| first.origin() != attempt.url().origin());
        if is_other { attempt.stop() } else { limited.redirect(attempt) }
    })
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
