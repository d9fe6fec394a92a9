use ratatui_core::buffer::Buffer;
use ratatui_core::layout::Rect;

use super::axes::Axes;
use super::{legend, shapes, text};
use crate::plot::figure::Figure;
use crate::plot::render_options::RenderOptions;

/// Minimum width in columns; a narrower plot would be all axis.
const MIN_COLUMNS: u16 = 24;

/// Maximum width in columns; a wider plot shows no more detail.
const MAX_COLUMNS: u16 = 120;

/// Renders a figure as lines of at most `options.columns` characters: title, plot, legend.
pub fn paint(figure: &Figure, options: RenderOptions) -> String {
    let columns = options.columns.clamp(MIN_COLUMNS, MAX_COLUMNS);
    let axes = Axes::new(figure, columns);
    // Below the field are its axis and the labels.
    let mut buffer = Buffer::empty(Rect::new(0, 0, columns, axes.field.height + 2));
    axes.paint(&mut buffer, options.glyphs);
    for series in &figure.series {
        shapes::paint(series, &axes, &mut buffer, options.glyphs);
    }
    let mut out = format!("{}\n", figure.title);
    out.push_str(&text::lines(&buffer, options));
    out.push_str(&legend::lines(&figure.series, axes.field.left(), RenderOptions { columns, ..options }));
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plot::render_options::Glyphs;
    use crate::plot::samples::{band, everything};
    use crate::plot::scale::Spacing;

    const PLAIN: RenderOptions = RenderOptions { columns: 40, glyphs: Glyphs::Unicode, color: false };

    #[test]
    fn a_plot_has_title_field_axis_and_legend() {
        let want = "\
Delay
   4s ┤                              ░░░
      │                          ░░░░░░░
      │                       ░░░░░░░░░░
      │                    ░░░░░░░░░░░░░
   2s ┤                ░░░░░░░░░░░░░░░░░
      │          ░░░░░░░░░░░░░░░░░░░░░░░
      │   ░░░░░░░░░░░░░░░░░░░░░░░░░░░░░░
      │░░░░░░░░░░░░░░░░░░░░░░░░░░░░░░░░░
      │░░░░░░░░░░░░░░░░░░░░░░░░░░░░░░░░░
   0s ┤░░░░░░░░░░░░░░░░░░░░░░░░░░░░░░░░░
      └┬───────────────┬───────────────┬
retry  1               2               3
       ░░ min to max
";
        let got = paint(&band(&[1.0, 2.0, 4.0]), PLAIN);
        assert_eq!(got, want, "got:\n{got}");
    }

    #[test]
    fn no_line_is_wider_than_the_terminal_or_ends_in_spaces() {
        for spacing in [Spacing::Linear, Spacing::Log] {
            for columns in [24, 39, 40, 41, 80, 120] {
                for n in [1, 2, 7, 40] {
                    let picture = paint(&everything(n, spacing), RenderOptions { columns, ..PLAIN });
                    for line in picture.lines() {
                        assert!(line.chars().count() <= usize::from(columns), "{columns}: {line}");
                        assert_eq!(line, line.trim_end());
                    }
                }
            }
        }
    }

    #[test]
    fn the_width_of_a_plot_is_clamped() {
        let width = |columns| {
            let picture = paint(&everything(5, Spacing::Linear), RenderOptions { columns, ..PLAIN });
            picture.lines().map(|line| line.chars().count()).max()
        };
        assert_eq!(width(400), width(MAX_COLUMNS));
        assert_eq!(width(1), width(MIN_COLUMNS));
    }

    #[test]
    fn without_utf_8_a_plot_is_ascii() {
        let picture = paint(&everything(6, Spacing::Linear), RenderOptions { glyphs: Glyphs::Ascii, ..PLAIN });
        assert!(picture.is_ascii(), "{picture}");
        assert!(picture.contains(":::"), "{picture}");
    }

    #[test]
    fn escapes_are_used_only_for_color() {
        let figure = everything(6, Spacing::Linear);
        let plain = paint(&figure, PLAIN);
        let colored = paint(&figure, RenderOptions { color: true, ..PLAIN });
        assert!(!plain.contains('\u{1b}'));
        let mut stripped = String::new();
        for (i, part) in colored.split('\u{1b}').enumerate() {
            let text = if i == 0 { part } else { part.split_once('m').map_or(part, |(_, text)| text) };
            stripped.push_str(text);
        }
        assert_eq!(stripped, plain);
        for line in colored.lines() {
            let (escapes, resets) = (line.matches("\u{1b}[").count(), line.matches("\u{1b}[0m").count());
            assert_eq!(escapes, resets * 2, "{line:?}");
        }
        assert!(colored.contains("\u{1b}[35md\u{1b}[0m"), "{colored:?}");
    }

    #[test]
    fn a_series_with_one_position_is_wide_enough_to_see() {
        let mut figure = band(&[4.0]);
        let picture = paint(&figure, PLAIN);
        assert!(picture.lines().nth(2).is_some_and(|line| line.ends_with(" ░░░░░")), "{picture}");
        figure.series = everything(1, Spacing::Linear).series.split_off(2);
        figure.series.truncate(1);
        let picture = paint(&figure, PLAIN);
        let dots = picture.chars().filter(|c| ('\u{2801}'..='\u{28ff}').contains(c)).count();
        assert!(dots >= 4 + 2, "the line itself and its two in the legend: {picture}");
    }

    #[test]
    fn later_series_are_drawn_on_top() {
        let mut figure = band(&[1.0, 4.0, 9.0]);
        let points = everything(3, Spacing::Linear).series.remove(4);
        let mark = points.hue.mark;
        figure.series.insert(0, points);
        let field = |figure: &Figure| paint(figure, PLAIN).lines().take(11).collect::<String>();
        assert!(!field(&figure).contains(mark));
        figure.series.rotate_left(1);
        assert!(field(&figure).contains(mark));
    }
}
