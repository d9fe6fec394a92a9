use http::{Extensions, HeaderMap, HeaderName, HeaderValue, Method, Request, Uri, Version, request};

/// The most bytes of headers that are copied; larger header maps are cloned.
const MAX_COPIED: usize = 2048;
/// Bytes to reserve for each header.
const RESERVED_PER_HEADER: usize = 64;
/// The bit beside the lengths of a header that marks its value as sensitive.
const SENSITIVE: u32 = 1 << 31;

/// A copy of the head of a request during its first attempt. It is restored only if the attempt fails, which is rare, so
/// it is optimized for being created.
#[derive(Debug)]
pub(super) struct SavedHead {
    method: Method,
    uri: Uri,
    version: Version,
    headers: SavedHeaders,
    extensions: Extensions,
}

/// Copied headers. Cloning a header map increments an atomic reference count for each value, and dropping it decrements it
/// again; for headers of common size, copying the bytes is cheaper.
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

    pub(super) fn restore(self) -> request::Parts {
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
