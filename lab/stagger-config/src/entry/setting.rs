use core::fmt;

use crate::position::Span;

/// A value and who set it.
#[derive(Clone, Copy, Debug, PartialEq)]
#[non_exhaustive]
pub struct Setting<T> {
    /// The value, in the terms of this library: attempts count the first one, also if the system counts retries.
    pub value: T,
    /// Who set it.
    pub origin: Origin,
}

/// Who set a value.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Origin {
    /// The file, here.
    Stated(Span),
    /// The system, because the file does not state it.
    Default,
}

impl<T> Setting<T> {
    pub(crate) const fn stated(value: T, span: Span) -> Self {
        Self { value, origin: Origin::Stated(span) }
    }

    pub(crate) const fn default(value: T) -> Self {
        Self { value, origin: Origin::Default }
    }

    pub(crate) fn map<U>(self, convert: impl FnOnce(T) -> U) -> Setting<U> {
        Setting { value: convert(self.value), origin: self.origin }
    }

    /// Returns whether the file states the value.
    #[must_use]
    pub const fn is_stated(&self) -> bool {
        matches!(self.origin, Origin::Stated(_))
    }

    /// Returns where the file states the value.
    #[must_use]
    pub const fn span(&self) -> Option<Span> {
        match self.origin {
            Origin::Stated(span) => Some(span),
            Origin::Default => None,
        }
    }
}

/// A value, or no limit.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Limit<T> {
    /// At most this.
    At(T),
    /// No limit.
    None,
}

impl<T> Limit<T> {
    /// Returns the value, `None` if there is no limit.
    #[must_use]
    pub fn at(self) -> Option<T> {
        match self {
            Self::At(value) => Some(value),
            Self::None => None,
        }
    }
}

impl<T: fmt::Display> fmt::Display for Limit<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::At(value) => value.fmt(f),
            Self::None => f.write_str("no limit"),
        }
    }
}
