//! Files with spans, as a stream.

mod attributes;
mod bounded;
mod jaeger;
mod otlp;
mod scalar;
mod sink;
mod walk;

use std::io::{BufReader, Read};

use serde::de::{DeserializeSeed, IgnoredAny, MapAccess};

use crate::error::ReadError;
use bounded::Bounded;
use walk::{List, Members, Object};

pub(crate) use sink::{FoundSpan, Sink};

/// Longest text within quotes, in bytes: the parser has it in memory as a whole.
const MAX_TEXT: usize = 16 << 20;

/// Bytes that are read at once.
const BUFFER: usize = 1 << 16;

/// Reads all values of a file.
pub(crate) fn read(reader: impl Read, sink: &mut impl Sink) -> Result<(), ReadError> {
    let reader = BufReader::with_capacity(BUFFER, Bounded::new(reader, MAX_TEXT));
    let mut values = serde_json::Deserializer::from_reader(reader);
    // The end is reached if nothing but white space is left.
    while let Err(more) = values.end() {
        if more.is_io() {
            return Err(ReadError::new(&more));
        }
        let document = Document { sink: &mut *sink, is_known: false };
        Object(document).deserialize(&mut values).map_err(|error| ReadError::new(&error))?;
    }
    Ok(())
}

/// A value at the top of a file, of whichever format.
struct Document<'a, S> {
    sink: &'a mut S,
    is_known: bool,
}

impl<S: Sink> Members for Document<'_, S> {
    const EXPECTED: &'static str = "an object with resourceSpans (OTLP) or data (Jaeger)";

    fn member<'de, A: MapAccess<'de>>(&mut self, key: &str, map: &mut A) -> Result<(), A::Error> {
        match key {
            "resourceSpans" | "resource_spans" => {
                map.next_value_seed(List(otlp::ResourceSpans { sink: &mut *self.sink }))?;
            }
            "data" => map.next_value_seed(List(jaeger::Traces { sink: &mut *self.sink }))?,
            _ => return map.next_value::<IgnoredAny>().map(drop),
        }
        self.is_known = true;
        Ok(())
    }

    fn end(&mut self) {
        if !self.is_known {
            self.sink.unknown();
        }
    }
}
