//! The measured rows, and comparisons between them.

use crate::callgrind::Counts;
use crate::case::{Case, Role, Table};
use crate::measure::Sizes;
use crate::timing::Timing;

/// One case with its measurements.
#[derive(Debug, Clone, serde::Serialize)]
pub(crate) struct Row {
    pub(crate) table: Table,
    pub(crate) role: Role,
    pub(crate) name: &'static str,
    pub(crate) timing: Option<Timing>,
    /// Time per operation of each thread when two run at the same time.
    pub(crate) two_threads: Option<Timing>,
    pub(crate) counts: Option<Counts>,
    pub(crate) bytes_added: Option<Sizes>,
    /// Memory per entry that the case keeps.
    pub(crate) bytes_each: Option<f64>,
    /// A remark on the figures, or the reason why there are none.
    pub(crate) note: &'static str,
}

impl Row {
    /// Creates a row without figures.
    pub(crate) fn unmeasured(case: &Case) -> Self {
        Self {
            table: case.table,
            role: case.role,
            name: case.name,
            timing: None,
            two_threads: None,
            counts: None,
            bytes_added: case.sizes.map(|sizes| sizes()),
            bytes_each: None,
            note: case.note,
        }
    }

    pub(crate) fn ns(&self) -> Option<f64> {
        self.timing.map(|timing| timing.fastest_ns)
    }

    pub(crate) fn ns_with_two_threads(&self) -> Option<f64> {
        self.two_threads.map(|timing| timing.fastest_ns)
    }

    pub(crate) fn instructions(&self) -> Option<f64> {
        self.counts.map(|counts| counts.instructions)
    }

    pub(crate) fn allocations(&self) -> Option<f64> {
        self.counts.map(|counts| counts.allocations)
    }
}

/// All rows of a run.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Findings<'a>(pub(crate) &'a [Row]);

impl<'a> Findings<'a> {
    /// Returns the rows of a table by role, each role with the fastest row first and rows without figures last.
    pub(crate) fn rows_of(self, table: Table) -> Vec<&'a Row> {
        let mut rows: Vec<_> = self.0.iter().filter(|row| row.table == table).collect();
        let ns = |row: &Row| row.ns().unwrap_or(f64::INFINITY);
        rows.sort_by(|a, b| a.role.cmp(&b.role).then(ns(a).total_cmp(&ns(b))));
        rows
    }

    /// Returns the row that the others of a table are compared with: the bare operation, or the fastest floor if the
    /// table is about more than the overhead of a call.
    pub(crate) fn baseline(self, table: Table) -> Option<&'a Row> {
        let role = match table {
            Table::Blocking
            | Table::Future
            | Table::Awaited
            | Table::LayerGet
            | Table::LayerPut
            | Table::Middleware
            | Table::PipeShort
            | Table::PipeLong
            | Table::SocketShort
            | Table::SocketLong
            | Table::SocketIdle
            | Table::SocketRejected => Role::Bare,
            _ => Role::Floor,
        };
        self.smallest(table, role, Row::ns)
    }

    /// Returns the row of a role with the smallest figure.
    fn smallest(self, table: Table, role: Role, figure: fn(&Row) -> Option<f64>) -> Option<&'a Row> {
        let of_group = |row: &&Row| row.table == table && row.role == role && figure(row).is_some();
        let value = |row: &Row| figure(row).unwrap_or(f64::INFINITY);
        self.0.iter().filter(of_group).min_by(|a, b| value(a).total_cmp(&value(b)))
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    /// Creates a row with a time and an instruction count.
    pub(crate) fn row(table: Table, role: Role, name: &'static str, ns: f64, instructions: f64) -> Row {
        Row {
            table,
            role,
            name,
            timing: Some(Timing { fastest_ns: ns, median_ns: ns }),
            two_threads: None,
            counts: Some(Counts { instructions, allocations: 0.0 }),
            bytes_added: None,
            bytes_each: None,
            note: "",
        }
    }

    #[test]
    fn rows_are_sorted_by_role_and_then_by_time() {
        let rows = [
            row(Table::Delay, Role::Peer, "slow", 9.0, 1.0),
            row(Table::Delay, Role::Peer, "fast", 3.0, 1.0),
            row(Table::Delay, Role::Floor, "floor", 5.0, 1.0),
            row(Table::Future, Role::Floor, "elsewhere", 1.0, 1.0),
        ];
        let names: Vec<_> = Findings(&rows).rows_of(Table::Delay).iter().map(|row| row.name).collect();
        assert_eq!(names, ["floor", "fast", "slow"]);
    }

    #[test]
    fn the_smallest_row_depends_on_the_figure() {
        let rows =
            [row(Table::Delay, Role::Peer, "quick", 3.0, 90.0), row(Table::Delay, Role::Peer, "short", 4.0, 50.0)];
        let best = |figure| Findings(&rows).smallest(Table::Delay, Role::Peer, figure).map(|row| row.name);
        assert_eq!(best(Row::ns), Some("quick"));
        assert_eq!(best(Row::instructions), Some("short"));
    }
}
