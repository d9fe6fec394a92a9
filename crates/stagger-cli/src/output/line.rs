use core::fmt;

use anstyle::Style;

pub(crate) const DIM: Style = Style::new().dimmed();
pub(crate) const PLAIN: Style = Style::new();

/// A log line in parts, the most important first; parts that do not fit the terminal are dropped from the end.
#[derive(Clone, Debug, Default)]
pub(crate) struct Line {
    parts: Vec<(Style, String)>,
    /// Whether the line may wrap instead, because its end matters.
    wraps: bool,
}

impl Line {
    pub(crate) fn part(mut self, style: Style, text: impl fmt::Display) -> Self {
        self.parts.push((style, text.to_string()));
        self
    }

    pub(crate) fn wraps(mut self) -> Self {
        self.wraps = true;
        self
    }

    /// Formats the line with at most `columns` columns. Every character written here takes one column.
    pub(crate) fn render(&self, columns: usize, color: bool) -> String {
        let mut room = if self.wraps { usize::MAX } else { columns };
        let mut line = String::new();
        for (index, (style, text)) in self.parts.iter().enumerate() {
            let width = text.chars().count();
            // The first parts are the attempt and its outcome; they are cut rather than dropped.
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
    fn parts_that_do_not_fit_are_dropped_from_the_end() {
        let bold = Style::new().bold();
        let line = Line::default()
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
