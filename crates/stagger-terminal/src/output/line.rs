//! The live status line on a terminal: its timing, its characters and its durations.

use core::fmt;
use core::time::Duration;

use anstyle::Style;
use stagger_core::text::Compact;

use super::outside::in_line;

pub const DIM: Style = Style::new().dimmed();
pub const PLAIN: Style = Style::new();

/// A log line in parts, the most important first.
#[derive(Clone, Debug, Default)]
pub struct Line {
    parts: Vec<(Style, String)>,
    wraps: bool,
}

/// Before each row of a wrapped line but the first.
const INDENT: &str = "    ";

impl Line {
    pub fn part(mut self, style: Style, text: impl fmt::Display) -> Self {
        self.parts.push((style, in_line(&text.to_string()).into_owned()));
        self
    }

    /// Lets the line wrap instead of dropping parts.
    pub fn wraps(mut self) -> Self {
        self.wraps = true;
        self
    }

    /// Formats the line for this many columns. Every character written here takes one column.
    pub fn render(&self, columns: usize, color: bool) -> String {
        if self.wraps { self.wrapped(columns, color) } else { self.cut(columns, color) }
    }

    /// Formats the line in one row of at most `columns` columns, for a line that is redrawn in place: drops parts that
    /// do not fit from the end.
    fn cut(&self, columns: usize, color: bool) -> String {
        let mut room = columns;
        let mut line = String::new();
        for (index, (style, text)) in self.parts.iter().enumerate() {
            let width = text.chars().count();
            // The first parts are the attempt and what it does; they are cut rather than dropped.
            if width > room && index > 1 {
                break;
            }
            let text: String = text.chars().take(room).collect();
            room -= width.min(room);
            push(&mut line, *style, &text, color);
        }
        line
    }

    /// Formats the whole line, wrapped to rows of at most `columns` columns: before a part if that fits a row, else
    /// between words. A word that is longer than a row is not broken.
    fn wrapped(&self, columns: usize, color: bool) -> String {
        let mut out = String::new();
        let mut column = 0;
        for (style, text) in &self.parts {
            let width = text.trim_end().chars().count();
            let alone = INDENT.len() + text.trim_start_matches([' ', ',']).trim_end().chars().count();
            let moves = column > INDENT.len() && column + width > columns && alone <= columns;
            let mut rest = text.as_str();
            if moves {
                out.push('\n');
                out.push_str(INDENT);
                column = INDENT.len();
                rest = text.trim_start_matches([' ', ',']);
            }
            let mut row = String::new();
            while !rest.is_empty() {
                let start = rest.find(|c: char| c != ' ').unwrap_or(rest.len());
                let end = rest[start..].find(' ').map_or(rest.len(), |length| start + length);
                let (mut word, after) = rest.split_at(end);
                rest = after;
                if column > INDENT.len() && column + word.chars().count() > columns {
                    word = word.trim_start();
                    if word.is_empty() {
                        continue;
                    }
                    push(&mut out, *style, &core::mem::take(&mut row), color);
                    out.push('\n');
                    out.push_str(INDENT);
                    column = INDENT.len();
                }
                row.push_str(word);
                column += word.chars().count();
            }
            push(&mut out, *style, &row, color);
        }
        out
    }
}

fn push(line: &mut String, style: Style, text: &str, color: bool) {
    if color && style != Style::new() && !text.is_empty() {
        line.push_str(&format!("{style}{text}{style:#}"));
    } else {
        line.push_str(text);
    }
}

/// Time before the line is first shown, so that short activities do not flicker.
pub const SHOW_AFTER: Duration = Duration::from_millis(150);
pub const REDRAW_INTERVAL: Duration = Duration::from_millis(100);

/// Erases from the cursor to the end of the line (ECMA-48 EL).
pub const CLEAR_REST: &str = "\x1b[K";

/// Returns a frame of the spinner.
pub fn spinner(utf8: bool, frame: usize) -> char {
    let frames: &[char] = if utf8 {
        &['⠋', '⠙', '⠹', '⠸', '⠼', '⠴', '⠦', '⠧', '⠇', '⠏']
    } else {
        &['|', '/', '-', '\\']
    };
    frames[frame % frames.len()]
}

/// Formats a duration with up to three digits.
pub fn short(length: Duration) -> String {
    let decimals = match length {
        length if length < Duration::from_secs(1) => 0,
        length if length < Duration::from_secs(10) => 2,
        length if length < Duration::from_secs(60) => 1,
        _ => 0,
    };
    format!("{:.decimals$}", Compact(length))
}

/// Formats a duration to a tenth of a second, so that the width is stable.
pub fn tenths(length: Duration) -> String {
    if length < Duration::from_secs(60) { format!("{:.1}s", length.as_secs_f64()) } else { short(length) }
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
    }

    #[test]
    fn a_wrapped_line_keeps_every_word_within_its_columns() {
        let text = "giving up: the next attempt would start later than 500ms";
        let line =
            Line::default().part(Style::new(), "x 2/9  exit 1 in 1ms     ").part(Style::new().bold(), text).wraps();
        assert_eq!(line.render(80, false), format!("x 2/9  exit 1 in 1ms     \n    {text}"));
        assert_eq!(line.render(120, false), format!("x 2/9  exit 1 in 1ms     {text}"));
        assert_eq!(line.render(usize::MAX, false), line.render(120, false));
        for columns in [20, 30, 40, 60] {
            let wrapped = line.render(columns, false);
            assert!(wrapped.lines().all(|row| row.chars().count() <= columns), "{columns}: {wrapped}");
            let words = |text: &str| text.split_whitespace().map(str::to_owned).collect::<Vec<_>>();
            assert_eq!(words(&wrapped), words(&line.render(usize::MAX, false)), "{columns}");
        }
        assert!(line.render(80, true).ends_with(&format!("\n    \u{1b}[1m{text}\u{1b}[0m")));
    }

    #[test]
    fn a_word_longer_than_the_row_is_kept() {
        let line = Line::default().part(Style::new(), format!("a {}", "b".repeat(50))).wraps();
        assert_eq!(line.render(20, false).split_whitespace().last(), Some(&*"b".repeat(50)));
    }
}
