use core::fmt;

use http::{HeaderMap, HeaderValue, Method, Response, StatusCode, Version, header};

use super::content_range::{ContentRange, number};
use super::validator::{Comparison, Validator, only};

/// Which bodies are resumed, and how far.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[must_use]
pub struct Resume {
    allows_dates: bool,
    reread: u64,
}

impl Resume {
    /// The default of [`reread`](Self::reread): 8 MiB.
    pub const REREAD: u64 = 8 << 20;

    /// Creates settings: strong entity tags only, and at most [`REREAD`](Self::REREAD) bytes read again.
    pub const fn new() -> Self {
        Self { allows_dates: false, reread: Self::REREAD }
    }

    /// Takes a `Last-Modified` as a validator where there is no `ETag`, if it is at least one second before the `Date`.
    pub const fn allow_dates(self) -> Self {
        Self { allows_dates: true, ..self }
    }

    /// Sets how many bytes may be read again and discarded, in bytes, if a server ignores the range and sends the same
    /// representation from its beginning. Default: 8 MiB; 0 for never.
    pub const fn reread(self, bytes: u64) -> Self {
        Self { reread: bytes, ..self }
    }
}

impl Default for Resume {
    fn default() -> Self {
        Self::new()
    }
}

/// What [`Rest`] reads of a response.
#[derive(Clone, Copy, Debug)]
pub struct Head<'a> {
    /// The version that the response came with: HTTP/1 can end a body by closing the connection.
    pub version: Version,
    /// The status.
    pub status: StatusCode,
    /// All headers as the server sent them, with its `Content-Encoding` and `Transfer-Encoding`.
    pub headers: &'a HeaderMap,
}

impl<'a, B> From<&'a Response<B>> for Head<'a> {
    fn from(response: &'a Response<B>) -> Self {
        Self { version: response.version(), status: response.status(), headers: response.headers() }
    }
}

impl Head<'_> {
    /// Returns whether the end of the connection is the only end of the body: then a whole one looks like a cut one
    /// (RFC 9112, §6.3).
    fn ends_by_close(self) -> bool {
        // Only chunks that are the outermost coding show the end.
        let codings = self.headers.get_all(header::TRANSFER_ENCODING).iter().next_back();
        let outermost = codings.and_then(|codings| codings.to_str().ok()?.rsplit(',').next());
        let is_chunked = outermost.is_some_and(|coding| coding.trim().eq_ignore_ascii_case("chunked"));
        self.version <= Version::HTTP_11 && content_length(self.headers).is_none() && !is_chunked
    }
}

/// The rest of a body: a state machine without I/O.
///
/// ```text
/// new ──▶ take … take ──▶ end ──▶ Complete
///           ▲              │ Ask
///           └── Continue ── judge ◀── the request with ask()
/// ```
///
/// It is made from the first response, whose validator holds for all later ones. Positions are those of the
/// representation, and count the bytes that were delivered, not those received.
#[derive(Clone, Debug)]
pub struct Rest {
    settings: Resume,
    validator: Validator,
    /// The `Content-Encoding` of the first response: a range is one of encoded bytes.
    encoding: Option<HeaderValue>,
    /// Length of the representation, if it is known.
    total: Option<u64>,
    /// Where the caller's own range ends, exclusive.
    own_end: Option<u64>,
    /// Position of the next byte to deliver.
    at: u64,
    /// Position of the next byte of the present body; before `at` while bytes are read again.
    read: u64,
    /// Where the present body ends, exclusive, if it says so.
    body_end: Option<u64>,
}

/// What to ask for: the values of `Range` and `If-Range`. All else is as in the first request.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Ask {
    /// `bytes=N-`, or `bytes=N-M` if the first request asked for a range.
    pub range: HeaderValue,
    /// The validator of the first response.
    pub if_range: HeaderValue,
}

/// What an answer to the request for the rest means.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Answer {
    /// Its body continues: pass it to [`Rest::take`].
    Continue,
    /// There is nothing left to read. Its body is not part of the representation.
    Complete,
    /// A failed attempt, as for any request: ask again after the delay of the policy.
    Failed,
}

/// How a body ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum End {
    /// The protocol said that it is over: the last chunk, the last frame, the stated length.
    Clean,
    /// The transport failed, or no byte came for too long.
    Broken,
}

/// What follows the end of a body.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Next {
    /// Every byte was delivered.
    Complete,
    /// Ask for the rest.
    Ask,
}

/// Why a response cannot be resumed. Its body is delivered as it comes, with its own error.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum NotResumable {
    /// The request is not a `GET`.
    Method,
    /// The request asks for several ranges, or for the end of unknown length.
    Range,
    /// The status is neither 200 nor, to a request for one range, 206; or the 206 does not fit the request.
    Status,
    /// Neither a strong `ETag` nor a date that is allowed and strong.
    NoValidator,
    /// The body ends with the connection, so that nothing tells its end from a cut.
    NoEnd,
}

impl fmt::Display for NotResumable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Method => "the request is not a GET",
            Self::Range => "the request asks for more than one range of known start",
            Self::Status => "the response is neither 200 nor the part that was asked for",
            Self::NoValidator => "the response has no strong ETag, so nothing proves that the rest belongs to it",
            Self::NoEnd => "the body has no length and ends with the connection, so nothing tells its end from a cut",
        })
    }
}

impl core::error::Error for NotResumable {}

/// Why a body that broke is not continued.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum ResumeError {
    /// The representation has changed since the first response: the bytes so far are those of the old one.
    Changed,
    /// The server sent a part that was not asked for, or that contradicts itself or what was known.
    BadRange(&'static str),
    /// The server ignored the range, and to read again what was delivered would exceed [`Resume::reread`].
    RangeIgnored {
        /// Number of bytes to read again.
        delivered: u64,
    },
    /// The answer has another status, which no delay changes.
    Status(StatusCode),
}

impl fmt::Display for ResumeError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Changed => f.write_str(
                "the representation has changed since the body began; discard what was read, and request it anew",
            ),
            Self::BadRange(why) => write!(f, "the server answered the request for the rest with a wrong part: {why}"),
            Self::RangeIgnored { delivered } => write!(
                f,
                "the server ignores ranges, and {delivered} bytes are more than may be read again; raise \
                 Resume::reread, or request it anew"
            ),
            Self::Status(status) => write!(f, "the request for the rest was answered with {status}"),
        }
    }
}

impl core::error::Error for ResumeError {}

impl Rest {
    /// Creates the state after the head of the first response.
    ///
    /// # Errors
    ///
    /// [`NotResumable`] if the request or the response is of a kind that is not resumed.
    pub fn new(
        method: &Method,
        request: &HeaderMap,
        response: Head<'_>,
        settings: Resume,
    ) -> Result<Self, NotResumable> {
        if method != Method::GET {
            return Err(NotResumable::Method);
        }
        let own = own_range(request)?;
        let Head { status, headers, .. } = response;
        let validator = Validator::of(headers, settings.allows_dates).ok_or(NotResumable::NoValidator)?;
        let length = content_length(headers);
        let mut rest = Self {
            settings,
            validator,
            encoding: headers.get(header::CONTENT_ENCODING).cloned(),
            total: None,
            own_end: None,
            at: 0,
            read: 0,
            body_end: None,
        };
        match (status, own) {
            (StatusCode::OK, _) if response.ends_by_close() => return Err(NotResumable::NoEnd),
            // A server may ignore the range of the caller, who then gets the whole.
            (StatusCode::OK, _) => {
                rest.total = length;
                rest.body_end = length;
            }
            (StatusCode::PARTIAL_CONTENT, Some((from, until))) => {
                let Some(ContentRange::Part { first, last, total }) = ContentRange::of(headers) else {
                    return Err(NotResumable::Status);
                };
                let end = last + 1;
                let fits = first == from && until.is_none_or(|until| end <= until);
                if !fits || length.is_some_and(|length| length != end - first) {
                    return Err(NotResumable::Status);
                }
                (rest.at, rest.read, rest.total, rest.body_end) = (first, first, total, Some(end));
                rest.own_end = until;
            }
            _ => return Err(NotResumable::Status),
        }
        Ok(rest)
    }

    /// Returns the position of the next byte to deliver.
    #[must_use]
    pub const fn position(&self) -> u64 {
        self.at
    }

    /// Returns where the bytes to deliver end, exclusive, if that is known.
    #[must_use]
    pub fn known_end(&self) -> Option<u64> {
        match (self.own_end, self.total) {
            (Some(own), Some(total)) => Some(own.min(total)),
            (own, total) => own.or(total),
        }
    }

    /// Returns what to ask for.
    #[must_use]
    pub fn ask(&self) -> Ask {
        let range = match self.own_end {
            // Its end is inclusive there.
            Some(end) => format!("bytes={}-{}", self.at, end.saturating_sub(1).max(self.at)),
            None => format!("bytes={}-", self.at),
        };
        // Digits, a dash and `bytes=` are valid in a header.
        let range = HeaderValue::from_str(&range).unwrap_or_else(|_| HeaderValue::from_static("bytes=0-"));
        Ask { range, if_range: self.validator.if_range().clone() }
    }

    /// Judges the head of the answer to the request for the rest.
    ///
    /// # Errors
    ///
    /// [`ResumeError`] if the body cannot be continued. Nothing of this answer may then be delivered.
    pub fn judge(&mut self, answer: Head<'_>) -> Result<Answer, ResumeError> {
        match answer.status {
            StatusCode::PARTIAL_CONTENT => self.part(answer.headers),
            StatusCode::OK => self.whole(answer),
            StatusCode::RANGE_NOT_SATISFIABLE => self.unsatisfied(answer.headers),
            StatusCode::PRECONDITION_FAILED => Err(ResumeError::Changed),
            StatusCode::REQUEST_TIMEOUT
            | StatusCode::TOO_EARLY
            | StatusCode::TOO_MANY_REQUESTS
            | StatusCode::INTERNAL_SERVER_ERROR
            | StatusCode::BAD_GATEWAY
            | StatusCode::SERVICE_UNAVAILABLE
            | StatusCode::GATEWAY_TIMEOUT => Ok(Answer::Failed),
            other => Err(ResumeError::Status(other)),
        }
    }

    /// A part: it has to begin where the last one ended, and to belong to the same representation.
    fn part(&mut self, headers: &HeaderMap) -> Result<Answer, ResumeError> {
        // A server that honored `If-Range` may leave out the validator (§15.3.7).
        if self.validator.compare(headers) == Comparison::Different {
            return Err(ResumeError::BadRange("it has another validator"));
        }
        let Some(ContentRange::Part { first, last, total }) = ContentRange::of(headers) else {
            return Err(ResumeError::BadRange("it has no valid Content-Range"));
        };
        if headers.get(header::CONTENT_ENCODING) != self.encoding.as_ref() {
            return Err(ResumeError::BadRange("it has another Content-Encoding"));
        }
        if first != self.at {
            return Err(ResumeError::BadRange("it begins at another position"));
        }
        let end = last + 1;
        if content_length(headers).is_some_and(|length| length != end - first) {
            return Err(ResumeError::BadRange("its Content-Length and its Content-Range contradict each other"));
        }
        match (self.total, total) {
            (Some(known), Some(total)) if known != total => {
                return Err(ResumeError::BadRange("the length of the whole has changed"));
            }
            (Some(known), None) if end > known => {
                return Err(ResumeError::BadRange("it ends after the end of the whole"));
            }
            (None, total) => self.total = total,
            _ => {}
        }
        if self.own_end.is_some_and(|own| end > own) {
            return Err(ResumeError::BadRange("it is longer than what was asked for"));
        }
        (self.read, self.body_end) = (first, Some(end));
        Ok(Answer::Continue)
    }

    /// The whole, from its beginning: the server ignored the range, or the representation has changed.
    fn whole(&mut self, answer: Head<'_>) -> Result<Answer, ResumeError> {
        let headers = answer.headers;
        if self.validator.compare(headers) != Comparison::Equal {
            return Err(ResumeError::Changed);
        }
        if headers.get(header::CONTENT_ENCODING) != self.encoding.as_ref() {
            return Err(ResumeError::BadRange("it has another Content-Encoding"));
        }
        let length = content_length(headers);
        match (self.total, length) {
            (Some(known), Some(length)) if known != length => {
                return Err(ResumeError::BadRange("the length of the whole has changed"));
            }
            (None, length) => self.total = length,
            _ => {}
        }
        if self.total.is_none() && answer.ends_by_close() {
            return Err(ResumeError::BadRange("it ends with the connection, so nothing tells its end from a cut"));
        }
        if self.total.is_some_and(|total| total < self.at) {
            return Err(ResumeError::BadRange("the whole ends before what was delivered"));
        }
        if self.at > self.settings.reread {
            return Err(ResumeError::RangeIgnored { delivered: self.at });
        }
        (self.read, self.body_end) = (0, self.total);
        Ok(Answer::Continue)
    }

    /// Nothing is left from this position on: the body is complete if this is its end.
    fn unsatisfied(&self, headers: &HeaderMap) -> Result<Answer, ResumeError> {
        if self.validator.compare(headers) == Comparison::Different {
            return Err(ResumeError::Changed);
        }
        match (ContentRange::of(headers), self.total) {
            (Some(ContentRange::Unsatisfied { total }), Some(known)) if total != known => Err(ResumeError::Changed),
            (Some(ContentRange::Unsatisfied { total }), _) if total == self.at => Ok(Answer::Complete),
            _ => Err(ResumeError::BadRange("it refuses a range that exists")),
        }
    }

    /// Returns the bytes of the present body to deliver: all of them, or those that were not delivered before.
    ///
    /// # Errors
    ///
    /// [`ResumeError::BadRange`] if the body is longer than its head says.
    pub fn take<'a>(&mut self, bytes: &'a [u8]) -> Result<&'a [u8], ResumeError> {
        let end = self.read.saturating_add(bytes.len() as u64);
        if self.body_end.is_some_and(|body_end| end > body_end) {
            return Err(ResumeError::BadRange("its body is longer than its head says"));
        }
        // What was delivered is read again after a range that was ignored.
        let again = self.at.saturating_sub(self.read).min(bytes.len() as u64);
        // The whole goes on after the end of the caller's own range.
        let limit = self.own_end.unwrap_or(u64::MAX).max(self.at);
        let until = end.min(limit).saturating_sub(self.read).max(again);
        self.read = end;
        self.at = self.at.max(end.min(limit));
        // Both are at most the length.
        let part = |position: u64| usize::try_from(position).unwrap_or(usize::MAX).min(bytes.len());
        Ok(&bytes[part(again)..part(until)])
    }

    /// Returns whether all bytes were delivered, so that the body need not be read to its end.
    #[must_use]
    pub fn is_complete(&self) -> bool {
        self.known_end().is_some_and(|end| self.at >= end)
    }

    /// Says what follows the end of the present body.
    pub fn end(&mut self, how: End) -> Next {
        if self.is_complete() {
            return Next::Complete;
        }
        // Without any length, the protocol's own end is the end of the whole, unless this was a part of it.
        let is_whole = self.known_end().is_none() && self.body_end.is_none();
        if how == End::Clean && is_whole && self.read >= self.at { Next::Complete } else { Next::Ask }
    }
}

/// Returns the range that the caller asked for: its start and its end, exclusive. `None` without one.
fn own_range(request: &HeaderMap) -> Result<Option<(u64, Option<u64>)>, NotResumable> {
    if !request.contains_key(header::RANGE) {
        return Ok(None);
    }
    let text = only(request, header::RANGE).and_then(|value| value.to_str().ok()).ok_or(NotResumable::Range)?;
    let (from, until) =
        text.strip_prefix("bytes=").and_then(|range| range.split_once('-')).ok_or(NotResumable::Range)?;
    let from = number(from).ok_or(NotResumable::Range)?;
    if until.is_empty() {
        return Ok(Some((from, None)));
    }
    let until = number(until).and_then(|last| last.checked_add(1)).filter(|until| *until > from);
    Ok(Some((from, Some(until.ok_or(NotResumable::Range)?))))
}

/// Returns the only `Content-Length`, if it is a number.
fn content_length(headers: &HeaderMap) -> Option<u64> {
    number(only(headers, header::CONTENT_LENGTH)?.to_str().ok()?)
}
