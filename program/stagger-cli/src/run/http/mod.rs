//! What HTTP says about an attempt: for `--http`, and for headers in the advice file.
//!
//! The rules are those of `stagger_http`. [`client`] recognizes the HTTP client and reads its request from its
//! arguments, [`response`] reads the headers that it received, and [`finding`] draws the conclusion.

mod arguments;
mod client;
mod curl;
mod finding;
mod response;
mod wget;

pub(super) use client::HttpClient;
pub(super) use finding::{AnnouncedWaits, Finding, Verdict};
pub(super) use response::{Response, ResponseReader, next_line};
pub(super) use wget::relay_log;
