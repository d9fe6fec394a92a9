//! What both builders can be told, the layer's and the middleware's, written once.

/// `$Builder` has a function `update_common`, which changes its [`Settings`](super::Settings); `$Request` is what the caller's
/// functions are shown.
macro_rules! retry_options {
    ([$($parameter:ident)?] $Builder:ty, $Request:ty) => {
        impl$(<$parameter>)? $Builder {
            /// Sends the number of the attempt, from 1, in the header `x-retry-attempt`. Default: it does not.
            ///
            /// From the second attempt on, and in any that has a limit of time, an [`Attempt`](stagger::Attempt) is among the
            /// request's extensions; [`attempt_number`]($crate::attempt_number) reads them.
            #[must_use]
            pub fn attempt_header(self) -> Self {
                self.update_common(|settings| settings.attempt_header = $crate::client::HeaderMode::Send)
            }

            /// Sends what is left of the time for an attempt, in whole milliseconds, in the header `stagger-timeout-ms`: the
            /// [`Deadline`](crate::Deadline) of the request and the retrier's timeout, whichever is sooner. Default: it does not.
            /// A gRPC request carries it in `grpc-timeout` in any case.
            #[must_use]
            pub fn timeout_header(self) -> Self {
                self.update_common(|settings| settings.timeout_header = $crate::client::HeaderMode::Send)
            }

            /// Gives every request that is not idempotent an `Idempotency-Key`, unless it has one: a UUID, made once and the same on
            /// every attempt. For servers that keep to it; others carry out each attempt. Default: it does not.
            #[must_use]
            pub fn idempotency_keys(self) -> Self {
                self.update_common(|settings| settings.idempotency_keys = $crate::client::HeaderMode::Send)
            }

            /// For 401 and 403: how to get fresh credentials. What comes of it are the headers to be set, `None` if there are none to
            /// be had. The request is then made anew with them, at once, and once in a call. Fetching them has what is left of
            /// the time for the attempt; without one, no limit.
            #[must_use]
            pub fn refresh_credentials<F, Fut>(self, refresh: F) -> Self
            where
                F: Fn(&$Request) -> Fut + Send + Sync + 'static,
                Fut: ::core::future::Future<Output = Option<::http::HeaderMap>> + Send + 'static,
            {
                self.update_common(|settings| settings.refresh_credentials = Some(::std::sync::Arc::new(move |parts| Box::pin(refresh(parts)))))
            }

            /// Which requests may be repeated although neither their method nor a key says so: those for which this is true.
            #[must_use]
            pub fn idempotent_if(self, predicate: impl Fn(&$Request) -> bool + Send + Sync + 'static) -> Self {
                self.update_common(|settings| settings.idempotent_if = Some(::std::sync::Arc::new(predicate)))
            }

            /// Which of gRPC's status codes are retried: those of the method's policy. Default: as
            /// [`classify::grpc`](stagger::classify::grpc) says.
            #[must_use]
            pub fn grpc_codes(self, codes: $crate::grpc::Codes) -> Self {
                self.update_common(|settings| settings.codes = Some(codes))
            }
        }
    };
}

pub(crate) use retry_options;
