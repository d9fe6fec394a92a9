//! A client for [server-sent events](https://html.spec.whatwg.org/multipage/server-sent-events.html) that reconnects
//! without a stampede, over any HTTP client.
//!
//! ```
//! use http::header::CONTENT_TYPE;
//! use http::{Request, Response};
//! use http_body_util::Full;
//! use stagger_http::sse::{Client, Event};
//! # let server = tower::service_fn(|request: Request<Full<bytes::Bytes>>| async move {
//! #     let stream = Response::builder().header(CONTENT_TYPE, "text/event-stream");
//! #     Ok::<_, std::io::Error>(match request.headers().get("last-event-id") {
//! #         None => stream.body(Full::<bytes::Bytes>::from("id: 1\ndata: 42\n\n")).unwrap(),
//! #         Some(_) => Response::builder().status(204).body(Full::default()).unwrap(),
//! #     })
//! # });
//!
//! # tokio::runtime::Builder::new_current_thread().enable_time().start_paused(true).build().unwrap().block_on(async {
//! let mut prices = Client::with_service(server).url("https://feed.example/prices").connect();
//! # let mut seen = Vec::new();
//! while let Some(event) = prices.next().await {
//!     match event? {
//!         Event::Message(message) => seen.push(message.data),
//!         Event::Closed(closed) => eprintln!("{}, next attempt in {:?}", closed.cause, closed.retry_in),
//!         _ => {}
//!     }
//! }
//! assert_eq!(seen, ["42"]);
//! # Ok::<(), stagger_http::sse::Fatal>(()) }).unwrap();
//! ```
//!
//! A browser's `EventSource` waits exactly as long as the server said with `retry`, and otherwise a few seconds: after
//! a restart, all clients come back in the same instant. Here every loss is *spread*, and failed attempts are backed
//! off:
//!
//! ```text
//! streams lost ──▶ random spread ──▶ attempt ──▶ backoff ──▶ attempt ──▶ … ──▶ open
//!      ▲           [0, 10 s]                     equal jitter, 15 to 30 s       │
//!      └────── the count restarts only after a stream was open for 10 s ◀───────┘
//! ```
//!
//! A [`ReconnectDriver`](stagger::reconnect::ReconnectDriver) makes every decision, as for WebSockets. `retry: 3000` is
//! a hint: the wait is at least 3 s, with the spread above it. A hint of zero changes nothing, and one above 5 min
//! ([`max_retry`](ClientBuilder::max_retry)) is capped and reported. Every attempt sends `Last-Event-ID`.
//!
//! # What a failure means
//!
//! | failure | reaction |
//! |---|---|
//! | the server ends the stream, or the connection is lost | spread, then backoff |
//! | refused, unknown host name, connect timeout; no line for 90 s | the same |
//! | 204 | the end, without an error |
//! | 401, 403 | one more attempt, with fresh [credentials](ConnectAttempt::auth_rejection); then fatal |
//! | 408, 425, 429, 5xx except 501, 505 to 508, 510 and 511 | backoff above `Retry-After` |
//! | 3xx that the HTTP client does not follow, other 2xx, any other status | fatal |
//! | 200 with another content type than `text/event-stream` | fatal |
//! | a line, an event or an id that exceeds its limit | fatal: the server would send it again |
//! | another POST would be sent, without an `Idempotency-Key` | fatal: [`ConnectionError::UnsafeToRetry`] |
//!
//! A rule of the client's [retrier](ClientBuilder::retrier) for [`ConnectionError`], or for the HTTP client's error in
//! it, takes the place of this table. This layer cannot tell a bad certificate from a broken handshake, so it retries
//! both; if your HTTP client can, add a rule.
//!
//! # What a hostile server can do
//!
//! It can make the client hold one event: at most 1 MiB ([`max_event_bytes`](ClientBuilder::max_event_bytes)) of data,
//! as much of the current line, and an id of 4 KiB, beside what the HTTP client buffers. It cannot keep an attempt open
//! for more than 30 s, or a stream for more than 90 s without the end of a line. It cannot make the client reconnect
//! faster than the policy does.
//!
//! # Delivery
//!
//! An event that the server did not complete is discarded, and its id does not count. So a server that repeats
//! what comes after `Last-Event-ID` delivers each event at least once, and one that does not, at most once.
//!
//! The [`Parser`] can be used alone. The crates for this format (sse-stream 0.3, sseer 0.3, eventsource-stream 0.2)
//! limit neither lines nor events.

mod builder;
mod classify;
mod client;
mod connect;
mod event;
mod parser;
mod stream;
mod transport;

pub use builder::ClientBuilder;
pub use client::{Client, Messages};
pub use connect::ConnectAttempt;
pub use event::{BoxError, Closed, ConnectionError, Event, Fatal, Opened, StreamRejected};
pub use parser::{Message, ParseError, Parser};
