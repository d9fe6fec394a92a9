//! The report of a run: tables for readers, a JSON document for programs.

use core::fmt::Write as _;
use std::collections::BTreeMap;
use std::fs;
use std::process::Command;

use comfy_table::presets::ASCII_MARKDOWN;
use comfy_table::{CellAlignment, ContentLineStyle, LineStyle, Table as Grid, TableStyle};

use crate::case::{Role, Table};
use crate::findings::{Findings, Row};
use crate::weight::{PEERS, Weight, locked_version};

/// The output format.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Format {
    /// Tables for a terminal.
    Text,
    /// Markdown tables.
    Markdown,
    /// A JSON document.
    Json,
}

/// The results of a run.
#[derive(Debug, serde::Serialize)]
pub(crate) struct Report {
    /// The measured cases.
    pub(crate) rows: Vec<Row>,
    /// The dependants of section G.
    pub(crate) dependants: Vec<Weight>,
}

impl Report {
    /// Renders the report.
    pub(crate) fn render(&self, format: Format) -> String {
        match format {
            Format::Text | Format::Markdown => render_tables(self, format),
            Format::Json => render_json(self),
        }
    }
}

// The report as JSON.

/// The version of the document. An incompatible change changes it.
const SCHEMA: &str = "stagger-bench/1";

#[derive(serde::Serialize)]
struct Document<'a> {
    schema: &'static str,
    machine: Machine,
    #[serde(flatten)]
    report: &'a Report,
}

fn render_json(report: &Report) -> String {
    let document = Document { schema: SCHEMA, machine: Machine::current(), report };
    // Plain structs with string keys always serialize; a figure that is not finite becomes null.
    serde_json::to_string_pretty(&document).expect("plain data serializes")
}

// The report as tables.

/// A line below the header and no other lines, so that many rows fit on a screen.
const PLAIN: TableStyle = TableStyle::new()
    .header_lines(ContentLineStyle::none())
    .header_separator(LineStyle::none().fill('─'))
    .content_lines(ContentLineStyle::none());

fn render_tables(report: &Report, format: Format) -> String {
    let mut text = String::new();
    let mut section = |title: &str, grid: Grid| {
        let heading = if format == Format::Markdown { "## " } else { "" };
        // Writing to a string cannot fail.
        let _ = writeln!(text, "{heading}{title}\n\n{}\n", grid.trim_fmt());
    };
    let findings = Findings(&report.rows);
    for table in Table::ALL {
        let rows = findings.rows_of(table);
        if !rows.is_empty() {
            section(table.title(), cases(&rows, findings.baseline(table), format));
        }
    }
    if !report.dependants.is_empty() {
        section("G. Weight: clean release build with LTO, stripped", dependants(&report.dependants, format));
    }
    text + &footer(&Machine::current())
}

fn cases(rows: &[&Row], baseline: Option<&Row>, format: Format) -> Grid {
    let against = match baseline.map(|row| row.role) {
        Some(Role::Bare) => "× bare",
        _ => "× floor",
    };
    let shared = rows.iter().any(|row| row.two_threads.is_some());
    let mut header = vec!["", "case", "ns/op", against];
    if shared {
        header.push("ns/op, two threads");
    }
    header.extend(["instructions", "allocations"]);
    let sized = rows.iter().any(|row| row.bytes_added.is_some());
    if sized {
        header.push("bytes added (small / 1 KiB)");
    }
    let measures_memory = rows.iter().any(|row| row.bytes_each.is_some());
    if measures_memory {
        header.push("bytes per entry");
    }
    header.push("note");
    let numbers: Vec<usize> = (2..header.len() - 1).collect();
    let lines = rows.iter().map(|row| {
        let relative = row.ns().zip(baseline.and_then(Row::ns)).map(|(ns, baseline)| ns / baseline);
        let mut cells = vec![
            role(row.role).to_owned(),
            row.name.to_owned(),
            or_dash(row.ns(), time),
            or_dash(relative, |ratio| if ratio < 1000.0 { format!("{ratio:.2}") } else { format!("{ratio:.0}") }),
        ];
        if shared {
            cells.push(or_dash(row.ns_with_two_threads(), time));
        }
        cells.push(or_dash(row.instructions(), |count| format!("{count:.1}")));
        cells.push(or_dash(row.allocations(), figure));
        if sized {
            cells.push(or_dash(row.bytes_added, |added| format!("{} / {}", added.small, added.large)));
        }
        if measures_memory {
            cells.push(or_dash(row.bytes_each, |bytes| format!("{bytes:.0}")));
        }
        cells.push(row.note.to_owned());
        cells
    });
    grid(&header, lines, &numbers, format)
}

fn dependants(weights: &[Weight], format: Format) -> Grid {
    let header = ["depends on", "build, s", "crates", "KiB over an empty program", "note"];
    let lines = weights.iter().map(|weight| {
        vec![
            weight.name.to_owned(),
            or_dash(weight.build, |build| format!("{:.2}", build.seconds)),
            or_dash(weight.build, |build| build.crates.to_string()),
            or_dash(weight.bytes_over_empty, |bytes| (bytes / 1024).to_string()),
            weight.note.clone(),
        ]
    });
    grid(&header, lines, &[1, 2, 3], format)
}

fn grid(header: &[&str], lines: impl Iterator<Item = Vec<String>>, numbers: &[usize], format: Format) -> Grid {
    let mut grid = Grid::new();
    grid.load_style(if format == Format::Markdown { ASCII_MARKDOWN } else { PLAIN });
    grid.set_header(header.iter().copied());
    for line in lines {
        grid.add_row(line);
    }
    for column in numbers {
        if let Some(column) = grid.column_mut(*column) {
            column.set_cell_alignment(CellAlignment::Right);
        }
    }
    grid
}

fn footer(machine: &Machine) -> String {
    let mut text = format!("{}, {} cores, {}\n", machine.cpu, machine.cores, machine.compiler);
    if machine.peers.is_empty() {
        text += "Other crates were not measured; to include them, build with --features peers.\n";
    } else {
        let peers: Vec<_> = machine.peers.iter().map(|(name, version)| format!("{name} {version}")).collect();
        let _ = writeln!(text, "Peers: {}.", peers.join(", "));
    }
    text + "Times are those of the fastest round. Instructions and allocations are counted by callgrind, in user \
            space; a clock read is a system call there and counts as little more than one instruction.\n"
}

const fn role(role: Role) -> &'static str {
    match role {
        Role::Bare => "bare",
        Role::Floor => "floor",
        Role::Stagger => "stagger",
        Role::Peer => "peer",
    }
}

/// Formats nanoseconds in the unit that needs few digits.
fn time(ns: f64) -> String {
    match ns {
        _ if ns < 100.0 => format!("{ns:.2}"),
        _ if ns < 10_000.0 => format!("{ns:.0}"),
        _ if ns < 1e6 => format!("{:.1} µs", ns / 1e3),
        _ => format!("{:.2} ms", ns / 1e6),
    }
}

/// Formats a figure with up to two decimals, without trailing zeros.
fn figure(value: f64) -> String {
    let text = format!("{value:.2}");
    match text.trim_end_matches('0').trim_end_matches('.') {
        "-0" => "0".to_owned(),
        short => short.to_owned(),
    }
}

fn or_dash<T>(value: Option<T>, show: impl Fn(T) -> String) -> String {
    value.map_or_else(|| "–".to_owned(), show)
}

// The machine and the versions that the figures were measured with.

/// The machine, the compiler and the versions of the peers.
#[derive(Debug, serde::Serialize)]
struct Machine {
    cpu: String,
    cores: usize,
    compiler: String,
    peers: BTreeMap<&'static str, &'static str>,
}

impl Machine {
    fn current() -> Self {
        let peers = if cfg!(feature = "peers") { &PEERS[..] } else { &[] };
        Self {
            cpu: cpu().unwrap_or_else(|| std::env::consts::ARCH.to_owned()),
            cores: std::thread::available_parallelism().map_or(1, usize::from),
            compiler: compiler().unwrap_or_else(|| "an unknown compiler".to_owned()),
            peers: peers.iter().filter_map(|name| Some((*name, locked_version(name)?))).collect(),
        }
    }
}

fn cpu() -> Option<String> {
    let text = fs::read_to_string("/proc/cpuinfo").ok()?;
    let line = text.lines().find(|line| line.starts_with("model name"))?;
    Some(line.split_once(':')?.1.trim().to_owned())
}

fn compiler() -> Option<String> {
    let output = Command::new("rustc").arg("--version").output().ok()?;
    Some(String::from_utf8(output.stdout).ok()?.trim().to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::findings::tests::row;
    use crate::timing::Timing;

    fn report() -> Report {
        let rows = vec![
            row(Table::Delay, Role::Floor, "hand-written", 2.0, 20.0),
            row(Table::Delay, Role::Peer, "other", 3_200_000.0, 150.25),
        ];
        Report { rows, dependants: Vec::new() }
    }

    #[test]
    fn a_row_shows_its_figures_and_its_ratio_to_the_floor() {
        let text = report().render(Format::Markdown);
        let line = text.lines().find(|line| line.contains("other")).unwrap();
        let cells: Vec<_> = line.split('|').map(str::trim).collect();
        assert_eq!(cells[1..7], ["peer", "other", "3.20 ms", "1600000", "150.2", "0"]);
    }

    #[test]
    fn optional_columns_appear_only_in_tables_that_need_them() {
        let mut shared = row(Table::GuardsSuccess, Role::Floor, "shared", 2.0, 20.0);
        shared.two_threads = Some(Timing { fastest_ns: 30.0, median_ns: 30.0 });
        let mut kept = row(Table::PendingDue, Role::Floor, "kept", 2.0, 20.0);
        kept.bytes_each = Some(16.2);
        let text = Report { rows: vec![shared, kept], dependants: Vec::new() }.render(Format::Markdown);
        let cells = |name| {
            let line = text.lines().find(|line| line.contains(name)).unwrap();
            line.split('|').map(str::trim).collect::<Vec<_>>()
        };
        assert_eq!(cells("shared")[3..8], ["2.00", "1.00", "30.00", "20.0", "0"]);
        assert_eq!(cells("kept")[3..8], ["2.00", "1.00", "20.0", "0", "16"]);
    }

    #[test]
    fn tables_without_rows_are_left_out() {
        let text = report().render(Format::Text);
        assert!(text.contains("A. Next delay") && !text.contains("B. Blocking"), "{text}");
    }

    #[test]
    fn json_has_its_schema_and_every_row() {
        let document: serde_json::Value = serde_json::from_str(&report().render(Format::Json)).unwrap();
        assert_eq!(document["schema"], "stagger-bench/1");
        assert_eq!(document["rows"][1]["timing"]["fastest_ns"], 3_200_000.0);
    }

    #[test]
    fn numbers_lose_trailing_zeros_only() {
        for (value, want) in [(0.0, "0"), (-0.001, "0"), (2.5, "2.5"), (10.0, "10"), (100.0, "100"), (1.239, "1.24")] {
            assert_eq!(figure(value), want);
        }
    }
}
