use core::fmt;
use core::future::Future;
use core::pin::Pin;
use std::sync::Arc;

use http::HeaderMap;
use stagger::Retrier;

use crate::grpc::Codes;

/// The settings of a retrying client, shared by all of its calls.
///
/// `P` is a request without its body, as it is passed to the application's callbacks.
#[derive(Clone)]
pub(crate) struct Settings<P> {
    pub(crate) retrier: Retrier,
    pub(crate) attempt_header: HeaderMode,
    pub(crate) timeout_header: HeaderMode,
    pub(crate) idempotency_keys: HeaderMode,
    pub(crate) refresh_credentials: Option<RefreshFn<P>>,
    pub(crate) idempotent_if: Option<PredicateFn<P>>,
    pub(crate) conditional_writes: ConditionalWrites,
    /// The retryable gRPC status codes; `None` for the defaults of `classify::grpc`.
    pub(crate) codes: Option<Codes>,
}

pub(crate) type CredentialFuture = Pin<Box<dyn Future<Output = Option<HeaderMap>> + Send>>;
type RefreshFn<P> = Arc<dyn Fn(&P) -> CredentialFuture + Send + Sync>;
type PredicateFn<P> = Arc<dyn Fn(&P) -> bool + Send + Sync>;

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
            timeout_header: HeaderMode::Omit,
            idempotency_keys: HeaderMode::Omit,
            refresh_credentials: None,
            idempotent_if: None,
            conditional_writes: ConditionalWrites::ByMethod,
            codes: None,
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
