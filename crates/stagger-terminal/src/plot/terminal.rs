use anstyle::Style;

use super::axes::Axes;
use super::canvas::Canvas;
use super::shapes;
use crate::plot::figure::{Entry, Figure, Series, Shape, legend};
use crate::plot::text::RenderOptions;

/// Minimum width in columns; a narrower plot would be all axis.
const MIN_COLUMNS: u16 = 24;

/// Maximum width in columns; a wider plot shows no more detail.
const MAX_COLUMNS: u16 = 120;

/// Renders a figure as lines of at most `options.columns` characters: title, plot, legend.
pub fn paint(figure: &Figure, options: RenderOptions) -> String {
    let columns = options.columns.clamp(MIN_COLUMNS, MAX_COLUMNS);
    let axes = Axes::new(figure, columns);
    // Below the field are its axis and the labels.
    let mut canvas = Canvas::new(columns, axes.field.height + 2);
    axes.paint(&mut canvas, options.glyphs);
    for series in &figure.series {
        shapes::paint(series, &axes, &mut canvas, options.glyphs);
    }
    let mut out = format!("{}\n", figure.title);
    out.push_str(&canvas.lines(options));
    out.push_str(&legend_lines(&figure.series, axes.field.left, RenderOptions { columns, ..options }));
    out
}

const GAP: usize = 3;

/// Formats the legend with the sample and the name of each series, in as many lines as needed.
fn legend_lines(series: &[Series], indent: u16, options: RenderOptions) -> String {
    let indent = usize::from(indent);
    let mut out = String::new();
    let mut column = 0;
    for entry in legend(series) {
        let length = entry_width(&entry, options);
        if column > 0 && column + GAP + length <= usize::from(options.columns) {
            out.push_str(&" ".repeat(GAP));
            column += GAP + length;
        } else {
            if column > 0 {
                out.push('\n');
            }
            out.push_str(&" ".repeat(indent));
            column = indent + length;
        }
        out.push_str(&entry_text(&entry, options));
    }
    if column > 0 {
        out.push('\n');
    }
    out
}

fn entry_width(entry: &Entry<'_>, options: RenderOptions) -> usize {
    let swatches = entry.series.iter().map(|one| swatch(one, options).chars().count() + 1);
    swatches.sum::<usize>() + entry.name.chars().count()
}

fn entry_text(entry: &Entry<'_>, options: RenderOptions) -> String {
    let mut out = String::new();
    for one in &entry.series {
        let style = options.style(Style::new().fg_color(one.hue.in_terminal.map(Into::into)));
        out.push_str(&format!("{style}{}{style:#} ", swatch(one, options)));
    }
    out + entry.name
}

fn swatch(series: &Series, options: RenderOptions) -> String {
    match series.shape {
        Shape::Line(_) | Shape::Steps(_) => options.glyphs.pick("⠒⠒", "--").to_owned(),
        Shape::Points(_) => series.hue.mark.to_string(),
        Shape::Band(_) => options.glyphs.pick("░░", "::").to_owned(),
        Shape::Bars(_) => options.glyphs.pick("█", "#").to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plot::figure::{Hue, Point};
    use crate::plot::samples::{band, everything};
    use crate::plot::scale::Spacing;
    use crate::plot::text::Glyphs;

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

    fn legend_of(columns: u16) -> String {
        let at = vec![Point { x: 0.0, y: 0.0 }];
        let series = [
            Series::light("median", Hue::nth(0), Shape::Line(at.clone())),
            Series { name: None, ..Series::light("", Hue::nth(1), Shape::Line(at.clone())) },
            Series::light("clients", Hue::nth(1), Shape::Points(at.clone())),
            Series::light("clients", Hue::nth(2), Shape::Points(at)),
        ];
        legend_lines(&series, 2, RenderOptions { columns, glyphs: Glyphs::Ascii, color: false })
    }

    #[test]
    fn series_of_one_name_share_an_entry_and_unnamed_series_have_none() {
        assert_eq!(legend_of(80), "  -- median   b c clients\n");
    }

    #[test]
    fn entries_that_do_not_fit_wrap() {
        assert_eq!(legend_of(20), "  -- median\n  b c clients\n");
    }
}
