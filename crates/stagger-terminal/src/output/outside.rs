//! Text from outside on its way to a terminal.

use std::borrow::Cow;
use std::ffi::OsStr;

use stagger_core::text::Outside;

/// Escapes what a terminal would obey in text that has no line breaks of ours: a cell, a paragraph, a part of a line.
pub fn in_line(text: &str) -> Cow<'_, str> {
    escaped(text, Outside::shows)
}

/// Escapes what a terminal would obey in text with line breaks of ours: a message.
pub fn in_lines(text: &str) -> Cow<'_, str> {
    escaped(text, |character| character == '\n' || Outside::shows(character))
}

/// Escapes what a terminal would obey in the path of a file.
pub fn path_shown(path: impl AsRef<OsStr>) -> String {
    in_line(&path.as_ref().to_string_lossy()).into_owned()
}

fn escaped(text: &str, is_kept: impl Fn(char) -> bool) -> Cow<'_, str> {
    if text.chars().all(&is_kept) {
        return text.into();
    }
    let mut out = String::new();
    for character in text.chars() {
        if is_kept(character) {
            out.push(character);
        } else {
            out.extend(character.escape_default());
        }
    }
    out.into()
}
