//! What was measured, row by row, and how rows are compared.

use crate::callgrind::Counts;
use crate::case::{Case, Role, Table};
use crate::sizes::Sizes;
use crate::timing::Timing;

/// One case with everything that is known about it.
#[derive(Debug, Clone, serde::Serialize)]
pub(crate) struct Row {
    pub(crate) table: Table,
    pub(crate) role: Role,
    pub(crate) name: &'static str,
    pub(crate) timing: Option<Timing>,
    /// With two threads at once, for each of them.
    pub(crate) two_threads: Option<Timing>,
    pub(crate) counts: Option<Counts>,
    pub(crate) bytes_added: Option<Sizes>,
    /// Memory that one entry takes, of those that the case keeps.
    pub(crate) bytes_each: Option<f64>,
    /// What to know about the figures, or why there are none.
    pub(crate) note: &'static str,
}

impl Row {
    /// A row for `case`, without figures.
    pub(crate) fn blank(case: &Case) -> Self {
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
    /// The rows of one table: the work itself, floors, stagger, peers; in each group the fastest first, what has no
    /// figures last.
    pub(crate) fn of(self, table: Table) -> Vec<&'a Row> {
        let mut rows: Vec<_> = self.0.iter().filter(|row| row.table == table).collect();
        let ns = |row: &Row| row.ns().unwrap_or(f64::INFINITY);
        rows.sort_by(|a, b| a.role.cmp(&b.role).then(ns(a).total_cmp(&ns(b))));
        rows
    }

    /// The row of stagger with this name.
    pub(crate) fn stagger(self, table: Table, name: &str) -> Option<&'a Row> {
        self.named(table, Role::Stagger, name)
    }

    /// The row with this name.
    pub(crate) fn named(self, table: Table, role: Role, name: &str) -> Option<&'a Row> {
        self.0.iter().find(|row| row.table == table && row.role == role && row.name == name)
    }

    /// What the rows of a table are compared with: the work itself where that is the question, else the best floor.
    pub(crate) fn yardstick(self, table: Table) -> Option<&'a Row> {
        let role = match table {
            Table::Blocking
            | Table::Future
            | Table::LayerGet
            | Table::LayerPut
            | Table::Middleware
            | Table::PipeShort
            | Table::PipeLong
            | Table::SocketShort
            | Table::SocketLong
            | Table::SocketIdle => Role::Bare,
            _ => Role::Floor,
        };
        self.least(table, role, Row::ns)
    }

    /// The row of a group with the smallest figure.
    pub(crate) fn least(self, table: Table, role: Role, figure: fn(&Row) -> Option<f64>) -> Option<&'a Row> {
        let of_group = |row: &&Row| row.table == table && row.role == role && figure(row).is_some();
        let value = |row: &Row| figure(row).unwrap_or(f64::INFINITY);
        self.0.iter().filter(of_group).min_by(|a, b| value(a).total_cmp(&value(b)))
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    /// A row with a time and an instruction count.
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
    fn rows_come_by_role_and_the_fastest_first() {
        let rows = [
            row(Table::Delay, Role::Peer, "slow", 9.0, 1.0),
            row(Table::Delay, Role::Peer, "fast", 3.0, 1.0),
            row(Table::Delay, Role::Floor, "floor", 5.0, 1.0),
            row(Table::Future, Role::Floor, "elsewhere", 1.0, 1.0),
        ];
        let names: Vec<_> = Findings(&rows).of(Table::Delay).iter().map(|row| row.name).collect();
        assert_eq!(names, ["floor", "fast", "slow"]);
    }

    #[test]
    fn the_best_of_a_group_depends_on_the_figure() {
        let rows =
            [row(Table::Delay, Role::Peer, "quick", 3.0, 90.0), row(Table::Delay, Role::Peer, "short", 4.0, 50.0)];
        let best = |figure| Findings(&rows).least(Table::Delay, Role::Peer, figure).map(|row| row.name);
        assert_eq!(best(Row::ns), Some("quick"));
        assert_eq!(best(Row::instructions), Some("short"));
    }
}
