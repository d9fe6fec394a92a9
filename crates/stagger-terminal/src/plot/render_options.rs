use std::borrow::Cow;

use anstyle::Style;

use crate::output::terminal::{Screen, Term};

/// The capabilities of the output that text is rendered for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RenderOptions {
    /// Width in characters.
    pub columns: u16,
    pub glyphs: Glyphs,
    pub color: bool,
}

impl RenderOptions {
    pub fn for_screen(screen: &Screen, term: &Term) -> Self {
        Self {
            columns: u16::try_from(screen.width).unwrap_or(u16::MAX),
            glyphs: if term.utf8 { Glyphs::Unicode } else { Glyphs::Ascii },
            color: screen.color,
        }
    }

    /// Returns `style` if color is enabled.
    pub fn style(&self, style: Style) -> Style {
        if self.color { style } else { Style::new() }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Glyphs {
    Unicode,
    Ascii,
}

impl Glyphs {
    pub fn pick<T>(self, unicode: T, ascii: T) -> T {
        match self {
            Self::Unicode => unicode,
            Self::Ascii => ascii,
        }
    }

    /// Replaces the non-ASCII characters of messages if the output is ASCII: `±20%` becomes `+-20%`, which the policy
    /// language accepts, too.
    pub fn transliterate(self, text: &str) -> Cow<'_, str> {
        match self {
            Self::Unicode => Cow::Borrowed(text),
            Self::Ascii if text.is_ascii() => Cow::Borrowed(text),
            Self::Ascii => Cow::Owned(text.replace('±', "+-").replace('–', "-")),
        }
    }

    /// Returns characters from an empty to a full cell, in equal steps of height or of darkness.
    pub fn levels(self) -> &'static [char] {
        const EIGHTHS: [char; 9] = [' ', '▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'];
        const SHADES: [char; 8] = [' ', '.', ':', '-', '=', '+', '*', '#'];
        self.pick(&EIGHTHS, &SHADES)
    }
}
