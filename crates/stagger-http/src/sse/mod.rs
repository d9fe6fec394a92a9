//! A client for [server-sent events](https://html.spec.whatwg.org/multipage/server-sent-events.html) that reconnects without
//! stampedes.

mod builder;
mod classify;
mod client;
mod connect;
mod error;
mod event;
mod parser;
mod stream;
mod transport;

pub use builder::ClientBuilder;
pub use client::{Client, Messages};
pub use connect::ConnectAttempt;
pub use error::{BoxError, ConnectionError, StreamRejected};
pub use event::{Closed, Event, Fatal, Opened};
pub use parser::{Message, ParseError, Parser};
