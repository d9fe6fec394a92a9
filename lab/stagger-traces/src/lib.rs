//! Finds retries in traces, and what makes them storms.
//!
//! An [`Analyzer`] reads OTLP/JSON (an object, or one per line as collectors write it), what Tempo answers with, and
//! Jaeger's JSON as a stream, in memory that does not grow with the file, and returns a [`Report`]: the services that
//! call one another and how often, layers that multiply one another, delays that are equal for all, attempts whose
//! caller has given up, hints that are ignored, and storms.
//!
//! ```
//! use stagger_traces::Analyzer;
//!
//! let span = |id: u32, start_ms: u64, code: u32| {
//!     format!(
//!         r#"{{"traceId": "0a", "spanId": "{id:x}", "parentSpanId": "ff", "name": "GET", "kind": 3,
//!             "startTimeUnixNano": "{start_ms}000000", "endTimeUnixNano": "{}000000",
//!             "status": {{"code": {code}}}}}"#,
//!         start_ms + 5
//!     )
//! };
//! let file = format!(
//!     r#"{{"resourceSpans": [{{
//!         "resource": {{"attributes": [{{"key": "service.name", "value": {{"stringValue": "shop"}}}}]}},
//!         "scopeSpans": [{{"spans": [{}, {}]}}]}}]}}"#,
//!     span(1, 1_000, 2),
//!     span(2, 1_200, 1),
//! );
//! let mut analyzer = Analyzer::new();
//! analyzer.read(file.as_bytes())?;
//! let report = analyzer.finish();
//! // One call, whose first attempt failed.
//! assert_eq!((report.edges[0].calls, report.edges[0].attempts), (1, 2));
//! assert!(report.is_clean());
//! # Ok::<(), stagger_traces::ReadError>(())
//! ```
//!
//! # What is a retry
//!
//! Client spans with the same parent, name and peer, one after the other, each but the last failed; or those that say
//! so with `http.request.resend_count`. A redirect or a request for credentials before it is no failure, spans that
//! overlap are parallel, and a success before it makes it another call. Times are compared within a service only,
//! because clocks differ.

mod analyzer;
mod attributes;
mod jaeger;
mod otlp;
mod report;
mod span;
mod stream;
mod totals;
mod trace;
mod values;

pub use analyzer::{Analyzer, FileRead};
pub use report::{
    DelayFrom, EdgeReport, Evidence, HintsIgnored, InStep, LateAttempts, Layer, Multiplication, Report, Storm,
};
pub use stream::ReadError;
