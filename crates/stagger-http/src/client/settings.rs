use core::borrow::Borrow;
use core::fmt;
use core::future::Future;
use core::pin::Pin;
use std::sync::Arc;

use http::HeaderMap;
use stagger::time::Sleep;
use stagger::{PollRetry, Retrier};

use super::quiet_key::by_credentials;
use super::request::RequestHead;
use crate::grpc::Codes;

/// The settings of a retrying client, shared by all of its calls.
///
/// `P` is a request without its body, as it is passed to the application's callbacks.
#[derive(Clone)]
pub(crate) struct Settings<P> {
    pub(crate) retrier: Retrier,
    pub(crate) attempt_header: HeaderMode,
    pub(crate) depth_in_baggage: HeaderMode,
    pub(crate) timeout_header: HeaderMode,
    pub(crate) idempotency_keys: HeaderMode,
    pub(crate) refresh_credentials: Option<RefreshFn<P>>,
    pub(crate) idempotent_if: Option<PredicateFn<P>>,
    pub(crate) conditional_writes: ConditionalWrites,
    /// The retryable gRPC status codes; `None` for the defaults of `classify::grpc`.
    pub(crate) codes: Option<Codes>,
    pub(crate) quiet: QuietBy<P>,
}

/// Which requests wait together when a server asks for quiet.
#[derive(Clone)]
pub(crate) enum QuietBy<P> {
    /// None wait.
    Off,
    /// Those to one origin with the same credentials.
    Credentials,
    /// Those with the same key.
    Key(KeyFn<P>),
}

pub(crate) type CredentialFuture = Pin<Box<dyn Future<Output = Option<HeaderMap>> + Send>>;
type RefreshFn<P> = Arc<dyn Fn(&P) -> CredentialFuture + Send + Sync>;
type PredicateFn<P> = Arc<dyn Fn(&P) -> bool + Send + Sync>;
pub(crate) type KeyFn<P> = Arc<dyn Fn(&P) -> u64 + Send + Sync>;

/// Whether a header is sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum HeaderMode {
    Send,
    Omit,
}

/// Whether a write that depends on the state of its target, such as a PUT with `If-None-Match: *`, may be repeated.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ConditionalWrites {
    /// As its method says.
    ByMethod,
    /// Only if the server has not processed it: the condition fails on what the first attempt has written.
    #[cfg(any(feature = "object-store", feature = "opendal"))]
    OnlyIfUnsent,
}

impl<P> Settings<P> {
    pub(crate) const fn new(retrier: Retrier) -> Self {
        Self {
            retrier,
            attempt_header: HeaderMode::Omit,
            depth_in_baggage: HeaderMode::Omit,
            timeout_header: HeaderMode::Omit,
            idempotency_keys: HeaderMode::Omit,
            refresh_credentials: None,
            idempotent_if: None,
            conditional_writes: ConditionalWrites::ByMethod,
            codes: None,
            quiet: QuietBy::Credentials,
        }
    }

    /// Returns the key of the quiet period that holds this request.
    pub(crate) fn quiet_key(&self, head: &P) -> u64
    where
        P: RequestHead,
    {
        match &self.quiet {
            QuietBy::Key(key) => key(head),
            QuietBy::Off | QuietBy::Credentials => by_credentials(head),
        }
    }

    /// Lets a call wait when the server asks for quiet, unless that is turned off.
    pub(crate) fn start<T: Sleep + Clone, R: Borrow<Retrier> + Clone>(&self, call: PollRetry<T, R>) -> PollRetry<T, R> {
        match self.quiet {
            QuietBy::Off => call,
            QuietBy::Credentials | QuietBy::Key(_) => call.quiet_by_key(),
        }
    }

    /// Returns whether the application declares this request idempotent.
    pub(super) fn is_declared_idempotent(&self, head: &P) -> bool {
        self.idempotent_if.as_ref().is_some_and(|predicate| predicate(head))
    }
}

impl<P> fmt::Debug for Settings<P> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Settings").field("retrier", &self.retrier).finish_non_exhaustive()
    }
}
