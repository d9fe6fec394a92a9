use std::borrow::Cow;

use anstyle::Style;
use textwrap::{Options, WordSplitter};

use crate::output::outside::in_line;
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

/// Wraps text to lines of at most `columns` characters, at spaces only: `max-attempts` stays one word. Every line but
/// the first begins with `indent`.
pub fn wrap(text: &str, columns: usize, indent: &str) -> Vec<String> {
    let options = Options::new(columns)
        .subsequent_indent(indent)
        .word_separator(textwrap::WordSeparator::AsciiSpace)
        .word_splitter(WordSplitter::NoHyphenation)
        .break_words(false);
    textwrap::wrap(text, options).into_iter().map(Into::into).collect()
}

/// Wraps text to the width of the output and adds a final newline.
pub fn paragraph(text: &str, indent: &str, options: RenderOptions) -> String {
    wrap(&in_line(text), usize::from(options.columns), indent).join("\n") + "\n"
}

/// Formats values as one character each, with a height relative to the maximum: `▂▅▇█▃▁`.
///
/// A value above zero is never blank.
pub fn sparkline(values: &[f64], glyphs: Glyphs) -> String {
    let levels = glyphs.levels();
    let top = levels.len() - 1;
    let max = values.iter().copied().filter(|v| v.is_finite()).fold(0.0, f64::max);
    let level = |value: f64| {
        // NaN and negative values are blank.
        if value > 0.0 && max > 0.0 { ((value / max * top as f64).round() as usize).clamp(1, top) } else { 0 }
    };
    values.iter().map(|value| levels[level(*value)]).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hyphenated_words_are_not_broken() {
        let lines = wrap("jitter=full max-attempts=6 max-elapsed=5m", 24, "  ");
        assert_eq!(lines, ["jitter=full", "  max-attempts=6", "  max-elapsed=5m"]);
    }

    #[test]
    fn a_word_longer_than_the_line_is_not_broken() {
        assert_eq!(wrap("a incomprehensible b", 5, ""), ["a", "incomprehensible", "b"]);
    }

    #[test]
    fn the_maximum_fills_its_cell_and_only_zero_is_blank() {
        assert_eq!(sparkline(&[0.0, 1e-9, 4.0, 8.0], Glyphs::Unicode), " ▁▄█");
        assert_eq!(sparkline(&[0.0, 1e-9, 4.0, 7.0], Glyphs::Ascii), " .=#");
    }

    #[test]
    fn values_that_cannot_be_drawn_are_blank() {
        assert_eq!(sparkline(&[f64::NAN, -1.0, 2.0], Glyphs::Unicode), "  █");
        assert_eq!(sparkline(&[0.0, 0.0], Glyphs::Unicode), "  ");
        assert_eq!(sparkline(&[], Glyphs::Unicode), "");
    }
}
