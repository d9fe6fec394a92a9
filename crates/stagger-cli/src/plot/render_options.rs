use std::borrow::Cow;

use crate::term::{Screen, Term};

/// What the place where pictures are shown can show.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct RenderOptions {
    /// Characters that fit side by side.
    pub(crate) columns: u16,
    pub(crate) glyphs: Glyphs,
    pub(crate) color: ColorMode,
}

impl RenderOptions {
    /// What this screen of the terminal can show.
    pub(crate) fn for_screen(screen: &Screen, term: &Term) -> Self {
        Self {
            columns: u16::try_from(screen.width).unwrap_or(u16::MAX),
            glyphs: if term.utf8 { Glyphs::Unicode } else { Glyphs::Ascii },
            color: if screen.color { ColorMode::On } else { ColorMode::Off },
        }
    }
}

/// The characters that can be shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Glyphs {
    Unicode,
    Ascii,
}

/// Whether to paint in color.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ColorMode {
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
    pub(crate) fn transliterate(self, text: &str) -> Cow<'_, str> {
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
