//! What receives the spans of a file.

use crate::span::{Ending, Kind};

/// A span as a file has it.
#[derive(Debug)]
pub(crate) struct FoundSpan<'a> {
    pub(crate) trace: u128,
    pub(crate) id: u64,
    pub(crate) parent: u64,
    pub(crate) service: &'a str,
    pub(crate) name: &'a str,
    pub(crate) peer: &'a str,
    pub(crate) kind: Kind,
    pub(crate) ending: Ending,
    pub(crate) resends: u32,
    pub(crate) start: u64,
    pub(crate) end: u64,
    pub(crate) hint: u64,
}

pub(crate) trait Sink {
    fn span(&mut self, span: FoundSpan<'_>);

    /// Is called for a value of the file that is of none of the formats.
    fn unknown(&mut self);
}
