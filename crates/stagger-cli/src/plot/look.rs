use std::borrow::Cow;

use crate::term::{Screen, Term};

/// What the place where pictures are shown can show.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Look {
    /// Characters that fit side by side.
    pub(crate) columns: u16,
    pub(crate) glyphs: Glyphs,
    pub(crate) colour: Colour,
}

impl Look {
    /// What this screen of the terminal can show.
    pub(crate) fn of(screen: &Screen, term: &Term) -> Self {
        Self {
            columns: u16::try_from(screen.width).unwrap_or(u16::MAX),
            glyphs: if term.utf8 { Glyphs::Unicode } else { Glyphs::Ascii },
            colour: if screen.colour { Colour::On } else { Colour::Off },
        }
    }
}

/// The characters that can be shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Glyphs {
    Unicode,
    Ascii,
}

/// Whether to paint in colour.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Colour {
    On,
    Off,
}

impl Glyphs {
    /// The one of two spellings that can be shown.
    pub(crate) fn pick<T>(self, unicode: T, ascii: T) -> T {
        match self {
            Self::Unicode => unicode,
            Self::Ascii => ascii,
        }
    }

    /// Text with the few signs that this program writes beyond ASCII put in ASCII, where they must
    /// be: `±20%` is `+-20%`, which the policy language reads as well.
    pub(crate) fn spell(self, text: &str) -> Cow<'_, str> {
        match self {
            Self::Unicode => Cow::Borrowed(text),
            Self::Ascii if text.is_ascii() => Cow::Borrowed(text),
            Self::Ascii => Cow::Owned(text.replace('±', "+-").replace('–', "-")),
        }
    }

    /// From nothing to a whole cell, in equal steps of height or of darkness.
    pub(crate) fn levels(self) -> &'static [char] {
        const EIGHTHS: [char; 9] = [' ', '▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'];
        const SHADES: [char; 8] = [' ', '.', ':', '-', '=', '+', '*', '#'];
        self.pick(&EIGHTHS, &SHADES)
    }
}
