use core::mem;
use core::task::Context;

use bytes::Bytes;
use http::{Extensions, HeaderMap, HeaderName, HeaderValue, Method, Request, Response, Uri, Version, request};
use http_body::Body;
use stagger::time::Clock;
use stagger::{Attempt, Instant, Outcome};

use super::layer::LayerSettings;
use super::replay::ReplayBody;
use crate::client::{
    CredentialFuture, GuardKey, Hops, KeyFn, RequestTracker, StatusFailure, deadline, insert_attempt, is_success,
};
use crate::request::RequestProgress;

/// A request that can be sent several times, and the classification of its responses.
pub(super) struct ReplayableRequest<B: Body> {
    request: RequestTracker<request::Parts>,
    /// A copy of the head during the first attempt, which owns the original.
    saved_head: Option<SavedHead>,
    body: ReplayBody<B>,
    key: Option<KeyFn<request::Parts>>,
}

impl<B: Body<Data = Bytes> + Unpin> ReplayableRequest<B> {
    pub(super) fn new(request: Request<B>, settings: &LayerSettings) -> Self {
        let (parts, body) = request.into_parts();
        let request = RequestTracker::new(parts, &settings.common);
        let (body, key) = (ReplayBody::new(body, settings.replay), settings.common.key.clone());
        Self { request, saved_head: None, body, key }
    }

    /// Returns the key of the request's guards.
    pub(super) fn guard_key(&mut self) -> GuardKey<'_, request::Parts> {
        self.restore();
        GuardKey { head: &self.request.head, by: self.key.as_ref() }
    }

    /// Returns the deadline of the call.
    pub(super) fn deadline(&self, clock: &impl Clock) -> Option<Instant> {
        deadline(&self.request.head.extensions, &self.request.head.headers, clock)
    }

    /// Returns the request for `attempt`.
    pub(super) fn next_attempt(
        &mut self,
        attempt: Attempt,
        settings: &LayerSettings,
        cx: &mut Context<'_>,
    ) -> Request<ReplayBody<B>> {
        self.restore();
        let head = if attempt.number == 1 {
            self.saved_head = Some(SavedHead::new(&self.request.head));
            mem::replace(&mut self.request.head, Request::new(()).into_parts().0)
        } else {
            self.request.head.clone()
        };
        let mut request = Request::from_parts(head, self.body.next_attempt(cx));
        insert_attempt(request.extensions_mut(), attempt);
        self.request.insert_headers(request.headers_mut(), attempt, &settings.common);
        request
    }

    /// Classifies a response. Returns `None` for a success.
    pub(super) fn on_response<R>(
        &mut self,
        response: &Response<R>,
        settings: &LayerSettings,
    ) -> Option<(Outcome, StatusFailure)> {
        let (status, headers) = (response.status(), response.headers());
        if is_success(status, headers) {
            return None;
        }
        self.attempt_ended();
        Some(self.request.on_response(status, headers, Hops::One, &settings.common))
    }

    /// Classifies a failure without a response.
    pub(super) fn on_failure(
        &mut self,
        outcome: Outcome,
        progress: RequestProgress,
        settings: &LayerSettings,
    ) -> Outcome {
        self.attempt_ended();
        self.request.on_failure(outcome, progress, &settings.common)
    }

    /// Starts refreshing the credentials if that may help: see [`RequestTracker::refresh`].
    pub(super) fn refresh(&mut self, settings: &LayerSettings) -> Option<CredentialFuture> {
        self.request.refresh(Hops::One, &settings.common)
    }

    /// Restores the head after the first attempt.
    fn restore(&mut self) {
        if let Some(saved) = self.saved_head.take() {
            self.request.head = saved.restore();
        }
    }

    /// Prepares the request for the decision about a retry. The rest of the body may be read until the next attempt.
    fn attempt_ended(&mut self) {
        self.restore();
        self.request.body = self.body.replay();
    }

    /// Classifies the denied request after the refresh: see [`RequestTracker::on_refreshed`].
    pub(super) fn on_refreshed(&mut self, fresh: Option<HeaderMap>, settings: &LayerSettings) -> Outcome {
        self.attempt_ended();
        self.request.on_refreshed(fresh, &settings.common)
    }
}

/// The most bytes of headers that are copied; larger header maps are cloned.
const MAX_COPIED: usize = 2048;
/// Bytes to reserve for each header.
const RESERVED_PER_HEADER: usize = 64;
/// The bit beside the lengths of a header that marks its value as sensitive.
const SENSITIVE: u32 = 1 << 31;

/// A copy of the head of a request during its first attempt. It is restored only if the attempt fails, which is rare,
/// so it is optimized for being created.
#[derive(Debug)]
pub(super) struct SavedHead {
    method: Method,
    uri: Uri,
    version: Version,
    headers: SavedHeaders,
    extensions: Extensions,
}

/// Copied headers. Cloning a header map increments an atomic reference count for each value, and dropping it decrements
/// it again; for headers of common size, copying the bytes is cheaper.
#[derive(Debug)]
enum SavedHeaders {
    /// For each header: both lengths in one number, the name, the value.
    Copied(Vec<u8>),
    Shared(HeaderMap),
}

impl SavedHead {
    pub(super) fn new(head: &request::Parts) -> Self {
        Self {
            method: head.method.clone(),
            uri: head.uri.clone(),
            version: head.version,
            headers: SavedHeaders::new(&head.headers),
            extensions: head.extensions.clone(),
        }
    }

    fn restore(self) -> request::Parts {
        let mut head = Request::new(()).into_parts().0;
        head.method = self.method;
        head.uri = self.uri;
        head.version = self.version;
        head.headers = match self.headers {
            SavedHeaders::Copied(bytes) => decode(&bytes),
            SavedHeaders::Shared(headers) => headers,
        };
        head.extensions = self.extensions;
        head
    }
}

impl SavedHeaders {
    fn new(headers: &HeaderMap) -> Self {
        let mut bytes = Vec::with_capacity(headers.len() * RESERVED_PER_HEADER);
        for (name, value) in headers {
            let (name, text) = (name.as_str().as_bytes(), value.as_bytes());
            if bytes.len() + name.len() + text.len() > MAX_COPIED {
                return Self::Shared(headers.clone());
            }
            let sensitive = if value.is_sensitive() { SENSITIVE } else { 0 };
            // The lengths sum to at most `MAX_COPIED`, which is less than 2^15.
            let lengths = sensitive | (name.len() as u32) << 16 | text.len() as u32;
            bytes.extend_from_slice(&lengths.to_ne_bytes());
            bytes.extend_from_slice(name);
            bytes.extend_from_slice(text);
        }
        Self::Copied(bytes)
    }
}

/// Decodes the copied headers.
fn decode(mut bytes: &[u8]) -> HeaderMap {
    let mut headers = HeaderMap::new();
    while let Some((name, value)) = next(&mut bytes) {
        headers.append(name, value);
    }
    headers
}

/// Decodes the next header. Names and values were valid when they were copied, so this cannot fail before the end.
fn next(bytes: &mut &[u8]) -> Option<(HeaderName, HeaderValue)> {
    let (lengths, rest) = bytes.split_first_chunk()?;
    let lengths = u32::from_ne_bytes(*lengths);
    let (name, rest) = rest.split_at_checked(((lengths & !SENSITIVE) >> 16) as usize)?;
    let (value, rest) = rest.split_at_checked((lengths & 0xFFFF) as usize)?;
    *bytes = rest;
    let mut value = HeaderValue::from_bytes(value).ok()?;
    value.set_sensitive(lengths & SENSITIVE != 0);
    Some((HeaderName::from_bytes(name).ok()?, value))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn request(long: usize) -> request::Parts {
        let mut secret = HeaderValue::from_static("Bearer 0");
        secret.set_sensitive(true);
        let request = Request::builder()
            .method("PURGE")
            .uri("https://server.test:444/here?a=b")
            .version(Version::HTTP_2)
            .header("x-own", "1")
            .header("authorization", secret)
            .header("accept", "a")
            .header("x-own", "2")
            .header("x-empty", "")
            .header("x-bytes", HeaderValue::from_bytes(b"\xe9t\xe9\tx").unwrap())
            .header("cookie", "c".repeat(long))
            .extension(7_u8);
        request.body(()).unwrap().into_parts().0
    }

    #[test]
    fn a_restored_head_equals_the_original() {
        for long in [0, 9, MAX_COPIED, 1 << 17] {
            let head = request(long);
            let got = SavedHead::new(&head).restore();
            assert_eq!((&got.method, &got.uri, got.version), (&head.method, &head.uri, head.version));
            assert_eq!(got.extensions.get::<u8>(), Some(&7));
            let listed = |headers: &HeaderMap| -> Vec<_> {
                headers.iter().map(|(name, value)| (name.clone(), value.clone(), value.is_sensitive())).collect()
            };
            assert_eq!(listed(&got.headers), listed(&head.headers), "{long}");
        }
    }
}
