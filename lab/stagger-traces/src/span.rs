//! What is kept of a span, and the names of services, peers and operations, each kept once.

use std::collections::HashMap;

use stagger_core::text::Outside;

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

/// Most names that are kept: operations that contain identifiers have no end of them.
const MAX_NAMES: usize = 20_000;

/// Longest name that is read, in bytes.
const MAX_LENGTH: usize = 200;

/// A name that is kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct Name(u32);

impl Name {
    /// No name.
    pub(crate) const NONE: Self = Self(0);
    /// Stands for all names beyond the most that are kept.
    const OTHERS: Self = Self(1);
}

#[derive(Debug)]
pub(crate) struct Names {
    texts: Vec<String>,
    index: HashMap<String, Name>,
}

impl Names {
    pub(crate) fn new() -> Self {
        Self { texts: vec![String::new(), "(others)".to_owned()], index: HashMap::new() }
    }

    /// Returns the name of a text, and keeps it if there is room.
    pub(crate) fn keep(&mut self, text: &str) -> Name {
        let end = (0..=MAX_LENGTH.min(text.len())).rev().find(|end| text.is_char_boundary(*end));
        let text = &text[..end.unwrap_or_default()];
        if text.is_empty() {
            return Name::NONE;
        }
        if let Some(name) = self.index.get(text) {
            return *name;
        }
        if self.texts.len() >= MAX_NAMES {
            return Name::OTHERS;
        }
        let name = Name(u32::try_from(self.texts.len()).unwrap_or(Name::OTHERS.0));
        self.texts.push(Outside(text).to_string());
        self.index.insert(text.to_owned(), name);
        name
    }

    /// Returns the text of a name.
    pub(crate) fn text(&self, name: Name) -> &str {
        self.texts.get(name.0 as usize).map_or("", String::as_str)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_kept_once_cut_and_bounded() {
        let mut names = Names::new();
        let a = names.keep("a");
        assert_eq!((names.keep("a"), names.keep("")), (a, Name::NONE));
        assert_eq!(names.text(a), "a");
        let long = names.keep(&"ß".repeat(1_000));
        assert_eq!(names.text(long).len(), MAX_LENGTH);
        for number in 0..2 * MAX_NAMES {
            names.keep(&format!("/user/{number}"));
        }
        assert_eq!(names.keep("one more"), Name::OTHERS);
        assert_eq!(names.texts.len(), MAX_NAMES);
        assert_eq!(names.keep("a"), a);
    }
}
