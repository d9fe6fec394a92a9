//! Keys for the guards of a client: which of its requests share a budget, a breaker, a quiet period or a guard of your
//! own.
//!
//! A client has the guards of its retrier once for each key: a server that is down, a customer whose quota is used up
//! or a route that is limited does not stop the other requests. By default the key is the [`origin`]. `guards_by` of
//! the tower layer and the reqwest middleware takes another one: that of the [`credentials`], or any function of the
//! request's head.
//!
//! ```
//! # #[cfg(all(feature = "tower", feature = "tokio"))] {
//! use stagger::guard::QuietPeriod;
//! use stagger::{Policy, Retrier};
//! use stagger_http::key;
//! use stagger_http::tower::RetryLayer;
//!
//! let quiet = || Retrier::new(Policy::DEFAULT).guard(QuietPeriod::new());
//! // The server limits each customer.
//! let by_customer = RetryLayer::new(quiet()).guards_by(key::credentials);
//! // The server limits each route.
//! let by_route = RetryLayer::new(quiet()).guards_by(|request| format!("{} {}", request.method, request.uri.path()));
//! # drop((by_customer, by_route));
//! # }
//! ```
//!
//! Up to 1,000 keys have guards of their own at a time, and further ones share some: see
//! [`Keyed`](stagger::guard::Keyed). So let a key be one of few. Guards that are
//! [shared](stagger::Retrier::shared_guard) serve all keys.

use core::fmt;
use core::hash::{BuildHasher as _, Hash, Hasher};
use std::hash::{DefaultHasher, RandomState};
use std::sync::LazyLock;

use http::HeaderMap;
#[cfg(any(feature = "tower", test))]
use http::{request, uri::Authority};

#[cfg(any(feature = "tower", test))]
use crate::client::OriginOf;

/// Hashes under a secret that each process draws, so that a key reveals no credential.
static SECRET: LazyLock<RandomState> = LazyLock::new(RandomState::new);

/// The headers whose values are credentials.
const CREDENTIALS: [&str; 11] = [
    "authorization",
    "proxy-authorization",
    "cookie",
    "x-api-key",
    "api-key",
    "apikey",
    "x-goog-api-key",
    "x-auth-token",
    "x-access-token",
    "private-token",
    "ocp-apim-subscription-key",
];

/// The parameters of a signature that say who has signed. The others differ from request to request.
const SIGNER: [&str; 6] = ["credential", "keyid", "id", "username", "oauth_consumer_key", "oauth_token"];
/// Schemes whose value is an account, a colon and a signature.
const ACCOUNT_AND_SIGNATURE: [&str; 4] = ["aws", "goog1", "sharedkey", "sharedkeylite"];
/// Schemes whose value is a credential, whatever it looks like.
const OPAQUE: [&str; 2] = ["basic", "bearer"];

/// Returns the origin that a request is sent to: its scheme, host and port, such as `https://api.example:443`. The
/// default key.
#[must_use]
pub fn origin(request: &impl Head) -> String {
    OriginDisplay(request).to_string()
}

/// Returns the origin that a request is sent to, and a hash of its credentials: the user information of its URL, and
/// the headers `Authorization`, `Proxy-Authorization`, `Cookie`, `x-api-key`, `api-key`, `apikey`, `x-goog-api-key`,
/// `x-auth-token`, `x-access-token`, `private-token` and `ocp-apim-subscription-key`.
///
/// Of a signature, who has signed counts. The hash is under a secret of the process, so that a key reveals no
/// credential. The query does not count.
#[must_use]
pub fn credentials(request: &impl Head) -> String {
    let mut hash = SECRET.build_hasher();
    request.user_info().hash(&mut hash);
    hash_credentials(request.headers(), &mut hash);
    format!("{} {:016x}", OriginDisplay(request), hash.finish())
}

/// The head of a request: [`http::request::Parts`] in the tower layer, `reqwest::Request` in the middleware for
/// reqwest.
///
/// Sealed: it is implemented for these.
pub trait Head: sealed::Head {}

impl<H: sealed::Head> Head for H {}

pub(crate) mod sealed {
    use core::fmt;

    use http::HeaderMap;

    pub trait Head {
        /// Writes the origin of the request.
        fn write_origin(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result;
        /// Returns the user name and the password of its URL.
        fn user_info(&self) -> (&str, &str);
        fn headers(&self) -> &HeaderMap;
    }
}

#[cfg(any(feature = "tower", test))]
impl sealed::Head for request::Parts {
    fn write_origin(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(&OriginOf { uri: &self.uri, headers: &self.headers }, f)
    }

    fn user_info(&self) -> (&str, &str) {
        let authority = self.uri.authority().map_or("", Authority::as_str);
        let (user_info, _) = authority.rsplit_once('@').unwrap_or(("", authority));
        user_info.split_once(':').unwrap_or((user_info, ""))
    }

    fn headers(&self) -> &HeaderMap {
        &self.headers
    }
}

/// The origin of a request, found when it is written.
pub(crate) struct OriginDisplay<'r, H>(pub(crate) &'r H);

impl<H: sealed::Head> fmt::Display for OriginDisplay<'_, H> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.write_origin(f)
    }
}

fn hash_credentials(headers: &HeaderMap, hash: &mut DefaultHasher) {
    for (number, name) in CREDENTIALS.iter().enumerate() {
        for value in headers.get_all(*name) {
            number.hash(hash);
            match value.to_str() {
                Ok(text) if name.ends_with("authorization") => hash_authorization(text, hash),
                _ => value.as_bytes().hash(hash),
            }
        }
    }
}

/// Hashes who sends a request, and of a signature not what it signs.
fn hash_authorization(value: &str, hash: &mut DefaultHasher) {
    let (scheme, rest) = value.split_once(' ').unwrap_or((value, ""));
    let is_one_of = |schemes: &[&str]| schemes.iter().any(|name| scheme.eq_ignore_ascii_case(name));
    if is_one_of(&OPAQUE) {
        return value.hash(hash);
    }
    if is_one_of(&ACCOUNT_AND_SIGNATURE) {
        return (scheme, rest.split(':').next()).hash(hash);
    }
    let mut has_signer = false;
    for (name, text) in rest.split(',').filter_map(|parameter| parameter.trim().split_once('=')) {
        if SIGNER.iter().any(|signer| name.eq_ignore_ascii_case(signer)) {
            has_signer = true;
            // `Credential` of AWS: the id of the key, and then the date, region and service.
            let text =
                if name.eq_ignore_ascii_case("credential") { text.split('/').next().unwrap_or(text) } else { text };
            (name, text).hash(hash);
        }
    }
    if has_signer { scheme.hash(hash) } else { value.hash(hash) }
}

#[cfg(test)]
mod tests {
    use http::Request;

    use super::*;

    fn key(uri: &str, headers: &[(&str, &str)]) -> String {
        let request = headers.iter().fold(Request::get(uri), |request, (name, value)| request.header(*name, *value));
        credentials(&request.body(()).unwrap().into_parts().0)
    }

    const URI: &str = "https://api.example/a";

    #[test]
    fn requests_to_an_origin_with_the_same_credentials_have_one_key() {
        assert_eq!(key(URI, &[]), key("HTTPS://API.example:443/b?c", &[("accept", "*/*")]));
        let token = ("authorization", "Bearer one");
        assert_eq!(key(URI, &[token]), key("https://api.example/z", &[token]));
        for (one, other) in [
            (
                "AWS4-HMAC-SHA256 Credential=AK1/20260101/us/s3/aws4_request, SignedHeaders=host, Signature=01",
                "AWS4-HMAC-SHA256 Credential=AK1/20260102/eu/s3/aws4_request, SignedHeaders=host, Signature=02",
            ),
            ("SharedKey account:01", "SharedKey account:02"),
            (
                "Digest username=\"me\", nonce=\"1\", response=\"2\"",
                "Digest username=\"me\", nonce=\"3\", response=\"4\"",
            ),
        ] {
            assert_eq!(key(URI, &[("authorization", one)]), key(URI, &[("authorization", other)]), "{one}");
        }
    }

    #[test]
    fn every_other_origin_and_credential_has_a_key_of_its_own() {
        let requests: &[(&str, &[(&str, &str)])] = &[
            (URI, &[]),
            ("http://api.example/a", &[]),
            ("https://api.example:444/a", &[]),
            ("https://other.example/a", &[]),
            ("https://me@api.example/a", &[]),
            ("https://me:pw@api.example/a", &[]),
            ("https://mepw@api.example/a", &[]),
            (URI, &[("authorization", "Bearer one")]),
            (URI, &[("authorization", "Bearer two")]),
            (URI, &[("authorization", "Basic id=1,id=2")]),
            (URI, &[("authorization", "Basic id=1,id=3")]),
            (URI, &[("authorization", "AWS4-HMAC-SHA256 Credential=AK1/20260101/us/s3/aws4_request, Signature=1")]),
            (URI, &[("authorization", "AWS4-HMAC-SHA256 Credential=AK2/20260101/us/s3/aws4_request, Signature=1")]),
            (URI, &[("authorization", "SharedKey account:01")]),
            (URI, &[("authorization", "SharedKey other:01")]),
            (URI, &[("authorization", "Digest username=\"me\", nonce=\"1\"")]),
            (URI, &[("authorization", "Digest username=\"you\", nonce=\"1\"")]),
            (URI, &[("proxy-authorization", "Bearer one")]),
            (URI, &[("cookie", "session=1")]),
            (URI, &[("cookie", "session=2")]),
            (URI, &[("x-api-key", "1")]),
            (URI, &[("x-api-key", "2")]),
            (URI, &[("api-key", "1")]),
            (URI, &[("x-goog-api-key", "1")]),
        ];
        let keys: std::collections::HashSet<_> = requests.iter().map(|(uri, headers)| key(uri, headers)).collect();
        assert_eq!(keys.len(), requests.len());
    }

    #[test]
    fn a_key_names_the_origin_and_reveals_no_credential() {
        let request =
            Request::get("https://me:pw@api.example/a").header("authorization", "Bearer one").body(()).unwrap();
        let head = request.into_parts().0;
        assert_eq!(origin(&head), "https://api.example:443");
        let key = credentials(&head);
        assert!(key.starts_with("https://api.example:443 "), "{key}");
        assert!(["me", "pw", "one"].iter().all(|secret| !key["https://api.example:443 ".len()..].contains(secret)));
    }
}
