//! Response bodies that are continued after they broke: every byte once and in order, or an error, and never a mixture
//! of two representations.
//!
//! [`Rest`] decides, without I/O: which range to ask for, whether an answer continues the body, which of its bytes to
//! deliver, and whether the body is complete. The clients of this crate drive it; drive it yourself for any other.
//!
//! ```
//! use http::{HeaderMap, HeaderValue, Method, Response};
//! use stagger_http::resume::{Answer, End, Head, Next, Rest, Resume};
//!
//! let first = Response::builder().header("etag", "\"v1\"").header("content-length", "5").body(()).unwrap();
//! let mut rest = Rest::new(&Method::GET, &HeaderMap::new(), Head::from(&first), Resume::new()).unwrap();
//! assert_eq!(rest.take(b"he"), Ok(&b"he"[..]));
//! assert_eq!(rest.end(End::Broken), Next::Ask);
//!
//! let ask = rest.ask();
//! assert_eq!((ask.range, ask.if_range), (HeaderValue::from_static("bytes=2-"), HeaderValue::from_static("\"v1\"")));
//! let second = Response::builder().status(206).header("content-range", "bytes 2-4/5").body(()).unwrap();
//! assert_eq!(rest.judge(Head::from(&second)), Ok(Answer::Continue));
//! assert_eq!(rest.take(b"llo"), Ok(&b"llo"[..]));
//! assert_eq!(rest.end(End::Clean), Next::Complete);
//! ```
//!
//! # What it needs
//!
//! A `GET` whose answer had a strong validator: an `ETag` that is not weak, or, if [`Resume::allow_dates`] says so, a
//! `Last-Modified` at least one second before the `Date`. Without one nothing proves that the rest belongs to the same
//! representation, so the body is not resumed. Nor is one of HTTP/1 that has neither a `Content-Length` nor chunks: it
//! ends with the connection, and nothing tells its end from a cut.
//!
//! A server that sends bytes of another version behind the validator of the first cannot be detected by any client. If
//! that matters, compare a checksum of the whole.

mod content_range;
mod rest;
mod validator;

pub use rest::{Answer, Ask, End, Head, Next, NotResumable, Rest, Resume, ResumeError};
