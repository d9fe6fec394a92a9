use http::{HeaderMap, HeaderValue, Method};
use stagger_http::{Idempotency, header};

/// What the arguments of a client say.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Arguments {
    /// `None` if it cannot be told.
    pub(super) method: Option<Method>,
    /// Whether there is an `Idempotency-Key`.
    pub(super) has_key: bool,
    /// Whether there is exactly one request, not counting redirects.
    pub(super) is_single: bool,
    /// Whether a part of the request is read from standard input.
    pub(super) reads_stdin: bool,
    /// Whether a part of the request is read from another descriptor, as a shell's `<(command)` is.
    pub(super) reads_descriptor: bool,
    /// The flag with which the client retries by itself, and how to prevent that.
    pub(super) own_retries: Option<OwnRetries>,
    /// An option that stagger needs for itself.
    pub(super) conflict: Option<&'static str>,
    /// Whether the client was told to print headers to its log.
    pub(super) prints_headers: bool,
    /// Index among the arguments at which options can be added.
    pub(super) options_end: usize,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct OwnRetries {
    /// "--retry 3".
    pub(super) setting: String,
    /// "remove --retry".
    pub(super) remedy: &'static str,
}

impl Arguments {
    pub(super) fn idempotency(&self) -> Idempotency {
        let Some(method) = &self.method else { return Idempotency::OnlyIfUnsent };
        let mut headers = HeaderMap::new();
        if self.has_key {
            headers.insert(header::IDEMPOTENCY_KEY, HeaderValue::from_static("present"));
        }
        Idempotency::from_request(method, &headers)
    }
}

/// Returns whether a header argument, `Name: value`, is an `Idempotency-Key` with a value.
pub(super) fn is_key(header: &[u8]) -> bool {
    let Some(colon) = header.iter().position(|&byte| byte == b':') else { return false };
    let (name, value) = header.split_at(colon);
    name.trim_ascii().eq_ignore_ascii_case(header::IDEMPOTENCY_KEY.as_str().as_bytes())
        && !value[1..].trim_ascii().is_empty()
}

/// Returns whether a file name is that of an open descriptor. Standard input is not meant.
pub(super) fn names_descriptor(value: &[u8]) -> bool {
    let names = |prefix: &[u8]| {
        value.windows(prefix.len() + 1).any(|found| found.starts_with(prefix) && !found.ends_with(b"0"))
    };
    names(b"/dev/fd/") || names(b"/proc/self/fd/")
}
