use anstyle::Style;
use comfy_table::presets::NOTHING;
use comfy_table::{CellAlignment, ColumnConstraint, ContentArrangement, Table, Width};

use super::text::RenderOptions;
use crate::output::outside::in_line;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Column<'a> {
    /// Heading, wrapped at its spaces if the table is too wide.
    pub heading: &'a str,
    pub align: CellAlignment,
    pub keep: Keep,
}

impl<'a> Column<'a> {
    pub const fn left(heading: &'a str) -> Self {
        Self { heading, align: CellAlignment::Left, keep: Keep::Always }
    }

    pub const fn right(heading: &'a str) -> Self {
        Self { heading, align: CellAlignment::Right, keep: Keep::Always }
    }

    /// Lets the column be dropped from a narrow table.
    pub const fn optional(self) -> Self {
        Self { keep: Keep::WithRoom, ..self }
    }
}

/// Whether a column may be dropped from a narrow table.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Keep {
    Always,
    /// Dropped if the table is too wide, the last such column first.
    WithRoom,
}

/// The text of a cell, in one line.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Cell {
    text: String,
    is_bold: bool,
}

impl<T: ToString> From<T> for Cell {
    fn from(text: T) -> Self {
        Self { text: in_line(&text.to_string()).into_owned(), is_bold: false }
    }
}

/// Returns a cell that is bold if color is enabled.
pub fn bold(text: impl Into<Cell>) -> Cell {
    Cell { is_bold: true, ..text.into() }
}

/// Stand for the escape sequences around bold text while the columns are laid out: invisible characters (word joiner,
/// function application) that take no column, where a sequence would count as text.
const BOLD: [char; 2] = ['\u{2060}', '\u{2061}'];

/// Output width from which the columns of a table are separated by wide gaps.
const ROOMY: u16 = 60;

/// Formats a table with lines of at most `options.columns` characters, unless the columns that are always kept need
/// more. Cells are never wrapped.
pub fn table(
    columns: &[Column<'_>],
    rows: impl IntoIterator<Item = Vec<impl Into<Cell>>>,
    options: RenderOptions,
) -> String {
    let rows: Vec<Vec<Cell>> = rows.into_iter().map(|row| row.into_iter().map(Into::into).collect()).collect();
    let least: Vec<u16> = columns.iter().enumerate().map(|(i, column)| least_width(column, i, &rows)).collect();
    let gap = gap(columns, &least, options.columns);
    let shown = fitting(columns, &least, gap, options.columns);
    let mut table = Table::new();
    table
        .load_style(NOTHING)
        .set_content_arrangement(ContentArrangement::Dynamic)
        // The gap after the last column is cut off below.
        .set_width(options.columns.saturating_add(gap))
        .set_header(shown.iter().map(|i| columns[*i].heading));
    for row in &rows {
        table.add_row(shown.iter().filter_map(|i| row.get(*i)).map(|cell| {
            if cell.is_bold && options.color {
                format!("{}{}{}", BOLD[0], cell.text, BOLD[1])
            } else {
                cell.text.clone()
            }
        }));
    }
    for (i, styled) in shown.iter().zip(table.column_iter_mut()) {
        styled.set_padding((0, gap));
        styled.set_constraint(ColumnConstraint::LowerBoundary(Width::Fixed(least[*i] + gap)));
        styled.set_cell_alignment(columns[*i].align);
    }
    let mut out = String::new();
    for line in table.lines() {
        out.push_str(line.trim_end());
        out.push('\n');
    }
    let bold = options.style(Style::new().bold());
    out.replace(BOLD[0], &bold.render().to_string()).replace(BOLD[1], &bold.render_reset().to_string())
}

/// Returns the width of the gaps between columns: narrow ones in a narrow terminal, and where the columns that are
/// always kept would not fit otherwise.
fn gap(columns: &[Column<'_>], least: &[u16], room: u16) -> u16 {
    if room < ROOMY {
        return 1;
    }
    let kept = || columns.iter().zip(least).filter(|(column, _)| column.keep == Keep::Always);
    let width: usize = kept().map(|(_, width)| usize::from(*width)).sum();
    let gaps = kept().count().saturating_sub(1);
    [3, 2].into_iter().find(|gap| width + gaps * usize::from(*gap) <= usize::from(room)).unwrap_or(1)
}

/// Returns the width of the longest cell of a column and of the longest word of its heading.
fn least_width(column: &Column<'_>, at: usize, rows: &[Vec<Cell>]) -> u16 {
    let cells = rows.iter().filter_map(|row| row.get(at)).map(|cell| cell.text.chars().count());
    let widest = cells.chain(column.heading.split(' ').map(|word| word.chars().count())).max();
    u16::try_from(widest.unwrap_or(0)).unwrap_or(u16::MAX)
}

/// Returns the indices of the columns that fit.
fn fitting(columns: &[Column<'_>], least: &[u16], gap: u16, room: u16) -> Vec<usize> {
    let mut shown: Vec<usize> = (0..columns.len()).collect();
    loop {
        let gaps = usize::from(gap) * shown.len().saturating_sub(1);
        let needed = shown.iter().map(|i| usize::from(least[*i])).sum::<usize>() + gaps;
        let optional = shown.iter().rposition(|i| columns[*i].keep == Keep::WithRoom);
        match optional {
            Some(optional) if needed > usize::from(room) => shown.remove(optional),
            _ => return shown,
        };
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plot::text::Glyphs;

    const COLUMNS: [Column<'_>; 3] =
        [Column::right("retry"), Column::left("delay").optional(), Column::right("at least p50")];

    fn lines(columns: u16) -> Vec<String> {
        let rows = [["1", "0–1s", "500ms"], ["10", "0–30s", "1m5s"]].map(Vec::from);
        let options = RenderOptions { columns, glyphs: Glyphs::Unicode, color: false };
        table(&COLUMNS, rows, options).lines().map(str::to_owned).collect()
    }

    #[test]
    fn cells_are_aligned_with_their_headings() {
        assert_eq!(
            lines(80),
            ["retry   delay   at least p50", "    1   0–1s           500ms", "   10   0–30s           1m5s"]
        );
    }

    #[test]
    fn a_highlighted_cell_is_bold_in_color_and_stays_aligned() {
        let rows =
            || [vec!["1".into(), "0–1s".into(), "500ms".into()], vec![bold("10"), "0–30s".into(), "1m5s".into()]];
        let options = |color| RenderOptions { columns: 80, glyphs: Glyphs::Unicode, color };
        assert_eq!(table(&COLUMNS, rows(), options(false)), lines(80).join("\n") + "\n");
        let colored = table(&COLUMNS, rows(), options(true));
        assert_eq!(colored.lines().nth(2), Some("   \u{1b}[1m10\u{1b}[0m   0–30s           1m5s"));
    }

    #[test]
    fn a_narrow_table_has_narrow_gaps() {
        assert_eq!(lines(40)[2], "   10 0–30s         1m5s");
    }

    #[test]
    fn gaps_become_narrower_before_a_kept_column_exceeds_the_width() {
        let (wide, narrow) =
            ([Column::left("a"); 3], [Column::left("a"), Column::left("a").optional(), Column::left("a")]);
        for (least, room, want) in [(20, 66, 3), (20, 65, 2), (20, 64, 2), (20, 63, 1), (30, 60, 1), (5, 59, 1)] {
            assert_eq!(gap(&wide, &[least; 3], room), want, "{least} {room}");
        }
        assert_eq!(gap(&narrow, &[30; 3], 63), 3, "a column that may be dropped does not count");
    }

    #[test]
    fn headings_wrap_before_columns_are_dropped_and_cells_never_wrap() {
        assert_eq!(lines(21)[..2], ["retry delay  at least", "                  p50"]);
        assert_eq!(lines(17)[0], "retry delay    at");
        assert_eq!(lines(16), ["retry   at least", "             p50", "    1      500ms", "   10       1m5s"]);
        let narrowest = lines(1);
        assert_eq!(narrowest[narrowest.len() - 2..], ["    1 500ms", "   10  1m5s"]);
    }
}
