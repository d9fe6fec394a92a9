use core::fmt;

use anstyle::Style;

/// A line in parts, the most important first: what does not fit the terminal is left out from the end.
#[derive(Clone, Debug)]
pub(super) struct Line {
    parts: Vec<(Style, String)>,
    /// It may wrap: it says something that must be read to its end.
    wraps: bool,
}

impl Line {
    pub(super) fn new() -> Self {
        Self { parts: Vec::new(), wraps: false }
    }

    pub(super) fn part(mut self, style: Style, text: impl fmt::Display) -> Self {
        self.parts.push((style, text.to_string()));
        self
    }

    pub(super) fn wraps(mut self) -> Self {
        self.wraps = true;
        self
    }

    /// At most `columns` wide. All that is ever written here is one column a character.
    pub(super) fn render(&self, columns: usize, color: bool) -> String {
        let mut room = if self.wraps { usize::MAX } else { columns };
        let mut line = String::new();
        for (index, (style, text)) in self.parts.iter().enumerate() {
            let width = text.chars().count();
            // The first parts say which attempt it was and what came of it; they are rather cut than left out.
            if width > room && index > 1 {
                break;
            }
            let text: String = text.chars().take(room).collect();
            room -= width.min(room);
            if color && *style != Style::new() {
                line.push_str(&format!("{style}{text}{style:#}"));
            } else {
                line.push_str(&text);
            }
        }
        line
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_does_not_fit_is_left_out_from_the_end() {
        let bold = Style::new().bold();
        let line = Line::new()
            .part(bold, "x")
            .part(Style::new(), " 1/6  exit 22")
            .part(bold, "  waiting 1s")
            .part(bold, "  (0-1s)");
        assert_eq!(line.render(80, false), "x 1/6  exit 22  waiting 1s  (0-1s)");
        assert_eq!(line.render(30, false), "x 1/6  exit 22  waiting 1s");
        assert_eq!(line.render(15, false), "x 1/6  exit 22");
        assert_eq!(line.render(8, false), "x 1/6  e");
        assert_eq!(line.render(8, true), "\u{1b}[1mx\u{1b}[0m 1/6  e");
        assert_eq!(line.wraps().render(8, false), "x 1/6  exit 22  waiting 1s  (0-1s)");
    }
}
