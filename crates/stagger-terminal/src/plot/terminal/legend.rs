use anstyle::{AnsiColor, Style};

use crate::plot::figure::{Entry, Series, Shape, legend};
use crate::plot::render_options::RenderOptions;

const GAP: usize = 3;

/// Formats the legend with the sample and the name of each series, in as many lines as needed.
pub(super) fn lines(series: &[Series], indent: u16, options: RenderOptions) -> String {
    let indent = usize::from(indent);
    let mut out = String::new();
    let mut column = 0;
    for entry in legend(series) {
        let length = width(&entry, options);
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
        out.push_str(&text(&entry, options));
    }
    if column > 0 {
        out.push('\n');
    }
    out
}

fn width(entry: &Entry<'_>, options: RenderOptions) -> usize {
    let swatches = entry.series.iter().map(|one| swatch(one, options).chars().count() + 1);
    swatches.sum::<usize>() + entry.name.chars().count()
}

fn text(entry: &Entry<'_>, options: RenderOptions) -> String {
    let mut out = String::new();
    for one in &entry.series {
        let color = AnsiColor::try_from(one.hue.in_terminal).ok().map(Into::into);
        let style = options.style(Style::new().fg_color(color));
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
    use crate::plot::figure::Point;
    use crate::plot::palette::Hue;
    use crate::plot::render_options::Glyphs;

    fn legend_of(columns: u16) -> String {
        let at = vec![Point { x: 0.0, y: 0.0 }];
        let series = [
            Series::light("median", Hue::nth(0), Shape::Line(at.clone())),
            Series { name: None, ..Series::light("", Hue::nth(1), Shape::Line(at.clone())) },
            Series::light("clients", Hue::nth(1), Shape::Points(at.clone())),
            Series::light("clients", Hue::nth(2), Shape::Points(at)),
        ];
        lines(&series, 2, RenderOptions { columns, glyphs: Glyphs::Ascii, color: false })
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
