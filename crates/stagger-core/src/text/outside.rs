use core::fmt::{self, Write};

/// Text that somebody else wrote: a name, a file, the answer of a server. It is printed so that a terminal shows it and
/// does nothing else, in one line of at most 200 characters and `...`.
///
/// Control characters, line breaks and characters that reorder or hide text are escaped as in Rust: `\n`, `\u{1b}`.
///
/// ```
/// use stagger_core::text::Outside;
///
/// assert_eq!(Outside("pay\u{1b}[2J\nments").to_string(), r"pay\u{1b}[2J\nments");
/// ```
#[derive(Clone, Copy, Debug)]
pub struct Outside<'a>(pub &'a str);

impl Outside<'_> {
    const LONGEST: usize = 200;

    /// Returns whether a terminal shows this character, and does nothing else with it.
    ///
    /// It does not if it is a control character (Unicode's category Cc), a line or paragraph separator, one of the
    /// property `Bidi_Control` (UAX #9), or an invisible one that stands between no letters (word joiner, byte order
    /// mark, tags). Joiners of letters and emoji are shown.
    #[must_use]
    pub const fn shows(character: char) -> bool {
        !matches!(
            character,
            '\0'..='\u{1f}'
                | '\u{7f}'..='\u{9f}'
                | '\u{61c}'
                | '\u{200e}'..='\u{200f}'
                | '\u{2028}'..='\u{202e}'
                | '\u{2060}'..='\u{206f}'
                | '\u{feff}'
                | '\u{e0000}'..='\u{e007f}'
        )
    }
}

impl fmt::Display for Outside<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (at, character) in self.0.chars().enumerate() {
            if at == Self::LONGEST {
                return f.write_str("...");
            }
            if Self::shows(character) {
                f.write_char(character)?;
            } else {
                write!(f, "{}", character.escape_default())?;
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::string::ToString;

    #[test]
    fn what_a_terminal_obeys_is_escaped_and_what_it_shows_is_kept() {
        for shown in ["pay", "Zahlung ß", "支払い", "👩\u{200d}🚒", "می\u{200c}خواهم", r"C:\stagger"] {
            assert_eq!(Outside(shown).to_string(), shown);
        }
        for (hostile, shown) in [
            ("\u{1b}]0;x\u{7}", r"\u{1b}]0;x\u{7}"),
            ("\u{9b}2J\u{7f}", r"\u{9b}2J\u{7f}"),
            ("a\r\nb\tc", r"a\r\nb\tc"),
            ("\u{202e}txt\u{2066}\u{2028}", r"\u{202e}txt\u{2066}\u{2028}"),
            ("\u{2060}\u{2061}\u{feff}\u{e0041}", r"\u{2060}\u{2061}\u{feff}\u{e0041}"),
        ] {
            assert_eq!(Outside(hostile).to_string(), shown);
        }
        assert!(('\0'..=char::MAX).all(|c| !(c.is_control() && Outside::shows(c))));
    }

    #[test]
    fn it_is_cut_after_200_characters() {
        let long = "ß".repeat(1_000_000);
        assert_eq!(Outside(&long).to_string(), "ß".repeat(200) + "...");
        assert_eq!(Outside(&long[..400]).to_string(), long[..400]);
    }
}
