use crate::position::{Position, Span};

/// An assignment `Name=value` of a file with sections.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Assignment<'a> {
    pub(crate) section: &'a str,
    pub(crate) name: &'a str,
    /// The value, without the space around it. Continued lines are joined by spaces.
    pub(crate) value: String,
    pub(crate) span: Span,
}

/// Reads the assignments of a file with `[Section]`s, as systemd reads it: comments begin with `#` or `;`, a backslash
/// at the end continues a line. Lines that are nothing of this are skipped.
pub(crate) fn assignments(text: &str) -> Vec<Assignment<'_>> {
    let mut found: Vec<Assignment<'_>> = Vec::new();
    let mut section = "";
    let mut is_continued = false;
    for (at, line) in text.lines().enumerate() {
        let content = line.trim();
        if content.starts_with(['#', ';']) || (content.is_empty() && !is_continued) {
            continue;
        }
        let end = Position::new(at + 1, line.trim_end().chars().count() + 1);
        let (content, continues) = match content.strip_suffix('\\') {
            Some(content) => (content.trim_end(), true),
            None => (content, false),
        };
        if is_continued {
            if let Some(last) = found.last_mut() {
                last.value = format!("{} {content}", last.value).trim().to_owned();
                last.span.end = end;
            }
        } else if let Some(name) = content.strip_prefix('[').and_then(|rest| rest.strip_suffix(']')) {
            section = name.trim();
        } else if let Some((name, value)) = content.split_once('=') {
            let start =
                Position::new(at + 1, line.chars().take_while(|character| character.is_whitespace()).count() + 1);
            let span = Span::new(start, end);
            found.push(Assignment { section, name: name.trim(), value: value.trim().to_owned(), span });
        }
        is_continued = continues;
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn assignments_have_their_section_and_place() {
        let text = "# a comment\n[Unit]\nAfter=a \\\n  b\n\n[Service]\r\n  Restart = always\n;Restart=no\nnonsense\n";
        let found = assignments(text);
        let [after, restart] = &found[..] else { panic!("{found:?}") };
        assert_eq!((after.section, after.name, &*after.value), ("Unit", "After", "a b"));
        assert_eq!((after.span.start, after.span.end.line), (Position::new(3, 1), 4));
        assert_eq!((restart.section, restart.name, &*restart.value), ("Service", "Restart", "always"));
        assert_eq!(restart.span, Span::new(Position::new(7, 3), Position::new(7, 19)));
    }
}
