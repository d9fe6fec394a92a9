//! Files with spans, as a stream.

mod attributes;
mod jaeger;
mod otlp;
mod stream;
mod values;

pub use stream::ReadError;
pub(crate) use stream::{FoundSpan, Sink, read};
