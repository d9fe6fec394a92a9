//! Which requests wait together when a server asks for quiet: those to one origin with the same credentials.

use core::fmt::{self, Write as _};
use core::hash::{BuildHasher as _, Hash, Hasher};
use std::hash::{DefaultHasher, RandomState};
use std::sync::LazyLock;

use http::HeaderMap;

use super::request::RequestHead;

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

/// Returns the key of a request by its origin and credentials.
pub(super) fn by_credentials(head: &impl RequestHead) -> u64 {
    let mut hash = HashWriter(SECRET.build_hasher());
    // Writing to a hasher does not fail.
    let _ = head.write_target(&mut hash);
    hash_credentials(head.headers(), &mut hash.0);
    hash.0.finish()
}

/// Returns the key for a value that the application chooses.
pub(crate) fn hash_of(value: &impl Hash) -> u64 {
    SECRET.hash_one(value)
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

/// Hashes what is written, however it is divided.
pub(crate) struct HashWriter(DefaultHasher);

impl fmt::Write for HashWriter {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        self.0.write(text.as_bytes());
        Ok(())
    }
}

impl HashWriter {
    /// Writes an origin and the user information of its URL.
    pub(crate) fn target(&mut self, origin: impl fmt::Display, user: &str, password: &str) -> fmt::Result {
        write!(self, "{origin}\n{user}\n{password}\n")
    }
}

#[cfg(test)]
mod tests {
    use http::Request;

    use super::*;

    fn key(uri: &str, headers: &[(&str, &str)]) -> u64 {
        let request = headers.iter().fold(Request::get(uri), |request, (name, value)| request.header(*name, *value));
        by_credentials(&request.body(()).unwrap().into_parts().0)
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
}
