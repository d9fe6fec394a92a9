//! The settings of a retrying client, and the builder methods that the tower layer and the reqwest middleware share.

use core::borrow::Borrow;
use core::fmt;
use core::future::Future;
use core::pin::Pin;
use core::task::{Context, Poll};
use std::sync::Arc;

use http::HeaderMap;
use stagger::time::Sleep;
use stagger::{PollRetry, Retrier};

use crate::grpc::Codes;
use crate::key::{self, OriginDisplay};
use crate::status::AnnouncedWaits;

/// The settings of a retrying client, shared by all of its calls.
///
/// `P` is a request without its body, as it is passed to the application's callbacks.
#[derive(Clone)]
pub(crate) struct RetrySettings<P> {
    pub(crate) retrier: Retrier,
    pub(crate) attempt_header: HeaderMode,
    pub(crate) depth_in_baggage: HeaderMode,
    pub(crate) timeout_header: HeaderMode,
    pub(crate) idempotency_keys: HeaderMode,
    pub(crate) refresh_credentials: Option<RefreshFn<P>>,
    pub(crate) idempotent_if: Option<PredicateFn<P>>,
    pub(crate) conditional_writes: ConditionalWrites,
    pub(crate) announced_waits: AnnouncedWaits,
    /// The retryable gRPC status codes; `None` for the defaults of `classify::grpc`.
    pub(crate) codes: Option<Codes>,
    /// Which requests share guards; `None` for those to one origin.
    pub(crate) key: Option<KeyFn<P>>,
}

pub(crate) type CredentialFuture = Pin<Box<dyn Future<Output = Option<HeaderMap>> + Send>>;
type RefreshFn<P> = Arc<dyn Fn(&P) -> CredentialFuture + Send + Sync>;
type PredicateFn<P> = Arc<dyn Fn(&P) -> bool + Send + Sync>;
/// Writes the key of a request.
pub(crate) type KeyFn<P> = Arc<dyn Fn(&P, &mut fmt::Formatter<'_>) -> fmt::Result + Send + Sync>;

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

impl<P> RetrySettings<P> {
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
            announced_waits: AnnouncedWaits::Ignore,
            codes: None,
            key: None,
        }
    }

    /// Returns whether the application declares this request idempotent.
    pub(super) fn is_declared_idempotent(&self, head: &P) -> bool {
        self.idempotent_if.as_ref().is_some_and(|predicate| predicate(head))
    }
}

impl<P> fmt::Debug for RetrySettings<P> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RetrySettings").field("retrier", &self.retrier).finish_non_exhaustive()
    }
}

/// The key of a request's guards, found when it is written: only a call that has guards by key needs it.
pub(crate) struct GuardKey<'r, P> {
    pub(crate) head: &'r P,
    pub(crate) by: Option<&'r KeyFn<P>>,
}

impl<P: key::Head> fmt::Display for GuardKey<'_, P> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.by {
            Some(write) => write(self.head, f),
            None => OriginDisplay(self.head).fmt(f),
        }
    }
}

/// Waits for fresh credentials. This is part of the attempt and limited by its remaining time; resolves to `None` when
/// that has elapsed.
pub(crate) fn poll_refresh<T: Sleep + Clone, R: Borrow<Retrier> + Clone>(
    call: &mut PollRetry<T, R>,
    credentials: &mut CredentialFuture,
    cx: &mut Context<'_>,
) -> Poll<Option<HeaderMap>> {
    match credentials.as_mut().poll(cx) {
        Poll::Pending => call.poll_limit(cx).map(|()| None),
        ready => ready,
    }
}

/// Implements the shared options for `$Builder`, which must have a method `update_common` that changes its
/// [`RetrySettings`](super::RetrySettings). `$Request` is the type that callbacks receive.
macro_rules! retry_options {
    ([$($parameter:ident)?] $Builder:ty, $Request:ty) => {
        impl$(<$parameter>)? $Builder {
            /// Sends the number of the attempt, from 1, in the header `x-retry-attempt`. Default: not sent.
            ///
            /// Independently of this header, from the second attempt on and in any attempt with a time limit, the
            /// request's extensions contain an [`Attempt`](stagger::Attempt);
            /// [`attempt_number`]($crate::attempt_number) reads it.
            #[must_use]
            pub fn attempt_header(self) -> Self {
                self.update_common(|settings| settings.attempt_header = $crate::client::HeaderMode::Send)
            }

            /// Counts this layer in the member `stagger.depth` of the header `baggage`, from the second attempt on: the
            /// number of layers that are making a retry, if every layer propagates the `baggage` that it has received,
            /// as OpenTelemetry does. Servers and traces can then tell a retry of a retry, range 1 to 99. Default: not
            /// sent.
            ///
            /// Source: W3C Baggage. A header that would be longer than 8,192 bytes is sent as it is.
            #[must_use]
            pub fn depth_in_baggage(self) -> Self {
                self.update_common(|settings| settings.depth_in_baggage = $crate::client::HeaderMode::Send)
            }

            /// Sends the remaining time of an attempt, in whole milliseconds and at least 1, in the header
            /// `stagger-timeout-ms`: the time until the request's [`Deadline`](crate::Deadline) or the retrier's
            /// timeout, whichever is shorter. Default: not sent. gRPC requests always carry it in `grpc-timeout`.
            #[must_use]
            pub fn timeout_header(self) -> Self {
                self.update_common(|settings| settings.timeout_header = $crate::client::HeaderMode::Send)
            }

            /// Adds an `Idempotency-Key` to every non-idempotent request that has none: a UUID, generated once per call
            /// and the same on every attempt. Use it only with servers that implement the header; others process each
            /// attempt. Default: not added.
            #[must_use]
            pub fn idempotency_keys(self) -> Self {
                self.update_common(|settings| settings.idempotency_keys = $crate::client::HeaderMode::Send)
            }

            /// Sets how to refresh credentials after a 401 or 403 response.
            ///
            /// `refresh` returns the headers to set, which replace those of the same name, or `None` if no credentials
            /// are available. The request is then retried with them immediately, once per call. The refresh is part of
            /// the attempt and limited by its remaining time; if the attempt has no time limit, neither has the
            /// refresh. Default: 401 and 403 are permanent.
            #[must_use]
            pub fn refresh_credentials<F, Fut>(self, refresh: F) -> Self
            where
                F: Fn(&$Request) -> Fut + Send + Sync + 'static,
                Fut: ::core::future::Future<Output = Option<::http::HeaderMap>> + Send + 'static,
            {
                let refresh = ::std::sync::Arc::new(move |parts: &$Request| Box::pin(refresh(parts)) as _);
                self.update_common(|settings| settings.refresh_credentials = Some(refresh))
            }

            /// Takes a 403 that says when to return, or that nothing of a rate limit remains, for throttled, and a 413
            /// with `Retry-After` as well. APIs such as GitHub's need it: see
            /// [`announced_wait`]($crate::status::announced_wait). Such a 403 does not refresh the credentials.
            /// Default: both are permanent.
            #[must_use]
            pub fn announced_waits(self) -> Self {
                self.update_common(|settings| settings.announced_waits = $crate::status::AnnouncedWaits::Follow)
            }

            /// Declares requests idempotent for which `predicate` returns true. It is asked only about requests that
            /// are idempotent neither by method nor by key. Default: none.
            #[must_use]
            pub fn idempotent_if(self, predicate: impl Fn(&$Request) -> bool + Send + Sync + 'static) -> Self {
                self.update_common(|settings| settings.idempotent_if = Some(::std::sync::Arc::new(predicate)))
            }

            /// Sets which requests share guards: those with equal keys, which is what `key` returns as text. The key
            /// alone decides, so let the host be part of it if the client has several. Default:
            /// [`key::origin`](crate::key::origin).
            ///
            /// It is the key of all guards that the retrier was given by value. `key` is called at the start of a call
            /// or, if no guard must be told of [every call](stagger::Guard::needs_every_call), only while calls fail.
            #[must_use]
            pub fn guards_by<K: ::core::fmt::Display>(
                self,
                key: impl Fn(&$Request) -> K + Send + Sync + 'static,
            ) -> Self {
                let write = move |request: &$Request, f: &mut ::core::fmt::Formatter<'_>| key(request).fmt(f);
                self.update_common(|settings| settings.key = Some(::std::sync::Arc::new(write)))
            }

            /// Sets the retryable gRPC status codes, usually those of the method's `retryPolicy`. Default: those of
            /// [`classify::grpc`](stagger::classify::grpc).
            #[must_use]
            pub fn grpc_retryable_codes(self, codes: $crate::grpc::Codes) -> Self {
                self.update_common(|settings| settings.codes = Some(codes))
            }
        }
    };
}

pub(crate) use retry_options;
