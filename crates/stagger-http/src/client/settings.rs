use core::fmt;
use core::future::Future;
use core::pin::Pin;
use std::sync::Arc;

use http::HeaderMap;
use stagger::Retrier;

use crate::grpc::Codes;

/// What every call through a client is made with.
///
/// `P` is a request without its body, as the caller's functions are shown it.
#[derive(Clone)]
pub(crate) struct Settings<P> {
    pub(crate) retrier: Retrier,
    pub(crate) attempt_header: Header,
    pub(crate) timeout_header: Header,
    pub(crate) key: Header,
    pub(crate) renew: Option<Renew<P>>,
    pub(crate) told: Option<Told<P>>,
    /// Those of gRPC that are retried; `None`: as `classify::grpc` says.
    pub(crate) codes: Option<Codes>,
}

pub(crate) type Renewing = Pin<Box<dyn Future<Output = Option<HeaderMap>> + Send>>;
type Renew<P> = Arc<dyn Fn(&P) -> Renewing + Send + Sync>;
type Told<P> = Arc<dyn Fn(&P) -> bool + Send + Sync>;

/// Whether a header goes out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Header {
    Sent,
    Withheld,
}

impl<P> Settings<P> {
    pub(crate) const fn new(retrier: Retrier) -> Self {
        let (attempt_header, timeout_header, key) = (Header::Withheld, Header::Withheld, Header::Withheld);
        Self { retrier, attempt_header, timeout_header, key, renew: None, told: None, codes: None }
    }

    /// Whether the caller says that this request may be repeated.
    pub(super) fn is_told(&self, head: &P) -> bool {
        self.told.as_ref().is_some_and(|told| told(head))
    }
}

impl<P> fmt::Debug for Settings<P> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Settings").field("retrier", &self.retrier).finish_non_exhaustive()
    }
}
