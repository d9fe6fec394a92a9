//! What is kept of a span.

use crate::names::Name;

/// Which side of a call a span is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Kind {
    #[default]
    Internal,
    Server,
    Client,
}

/// How the operation of a span ended.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Ending {
    #[default]
    Good,
    /// Another request was wanted: a redirect, or credentials.
    Moved,
    Failed,
    /// The caller gave up waiting.
    TimedOut,
}

impl Ending {
    pub(crate) const fn is_failure(self) -> bool {
        matches!(self, Self::Failed | Self::TimedOut)
    }
}

/// A span of a trace. Times are nanoseconds since 1970 by the clock of its service.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Span {
    pub(crate) id: u64,
    /// 0 for a root.
    pub(crate) parent: u64,
    pub(crate) service: Name,
    pub(crate) name: Name,
    /// The callee, as far as the attributes tell.
    pub(crate) peer: Name,
    pub(crate) kind: Kind,
    pub(crate) ending: Ending,
    /// How often the request had been sent before, if the span says so.
    pub(crate) resends: u32,
    pub(crate) start: u64,
    pub(crate) end: u64,
    /// How long the server asked the client to wait, in nanoseconds; 0 if it did not.
    pub(crate) hint: u64,
}
