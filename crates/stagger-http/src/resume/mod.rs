//! Response bodies that are continued after they broke: every byte once and in order, or an error, and never a mixture
//! of two representations.
//!
//! [`Rest`] decides, without I/O: which range to ask for, whether an answer continues the body, which of its bytes to
//! deliver, and whether the body is complete. The clients of this crate drive it; drive it yourself for any other.
//!
//! ```
//! use http::{HeaderMap, HeaderValue, Method, StatusCode, header};
//! use stagger_http::resume::{Answer, End, Next, Rest, Resume};
//!
//! let mut headers = HeaderMap::new();
//! headers.insert(header::ETAG, HeaderValue::from_static("\"v1\""));
//! headers.insert(header::CONTENT_LENGTH, HeaderValue::from_static("5"));
//! let mut rest = Rest::new(&Method::GET, &HeaderMap::new(), StatusCode::OK, &headers, Resume::new()).unwrap();
//! assert_eq!(rest.take(b"he"), Ok(&b"he"[..]));
//! assert_eq!(rest.end(End::Broken), Next::Ask);
//!
//! let ask = rest.ask();
//! assert_eq!((ask.range, ask.if_range), (HeaderValue::from_static("bytes=2-"), HeaderValue::from_static("\"v1\"")));
//! headers.insert(header::CONTENT_RANGE, HeaderValue::from_static("bytes 2-4/5"));
//! headers.insert(header::CONTENT_LENGTH, HeaderValue::from_static("3"));
//! assert_eq!(rest.judge(StatusCode::PARTIAL_CONTENT, &headers), Ok(Answer::Continue));
//! assert_eq!(rest.take(b"llo"), Ok(&b"llo"[..]));
//! assert_eq!(rest.end(End::Clean), Next::Complete);
//! ```
//!
//! # What it needs
//!
//! A `GET` whose answer had a strong validator: an `ETag` that is not weak, or, if [`Resume::allow_dates`] says so, a
//! `Last-Modified` at least one second before the `Date`. Without one nothing proves that the rest belongs to the same
//! representation, so the body is not resumed.
//!
//! A server that sends bytes of another version behind the validator of the first cannot be detected by any client. If
//! that matters, compare a checksum of the whole.

mod content_range;
mod rest;
mod validator;

pub use rest::{Answer, Ask, End, Next, NotResumable, Rest, Resume, ResumeError};
