use core::sync::atomic::{AtomicU64, Ordering};
use std::sync::Arc;

use reqwest::redirect::Policy;

use crate::client::Hops;

/// What is known about the redirects that a reqwest client follows; for
/// [`RetryMiddleware::redirects`](super::RetryMiddleware::redirects).
///
/// reqwest follows redirects within an attempt, and says of an error only that it could not connect: not whether to the
/// server that the request was sent to, or to another one that this server named after it had processed the request. So an
/// error proves that nothing was sent only if no redirect was followed.
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
pub struct Redirects(Kind);

#[derive(Clone, Debug, Default)]
enum Kind {
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
        Self(Kind::None)
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
        (watched, Self(Kind::Counted(count)))
    }

    /// Returns how many redirects the client has followed so far, or `None` if that is unknown.
    pub(super) fn followed(&self) -> Option<u64> {
        match &self.0 {
            Kind::Unknown => None,
            Kind::None => Some(0),
            Kind::Counted(count) => Some(count.load(Ordering::Relaxed)),
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
