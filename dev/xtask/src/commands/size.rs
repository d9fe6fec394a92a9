use core::ops::AddAssign;
use std::ffi::OsString;
use std::fs;

use crate::Result;
use crate::files::files;
use crate::workspace::root;

/// The crates that are counted: those with the decisions, drivers and protocols, and the program.
const CRATES: [&str; 12] = [
    "stagger-core",
    "stagger",
    "stagger-http",
    "stagger-ws",
    "stagger-sim",
    "stagger-cli",
    "stagger-cenkalti",
    "stagger-lease",
    "stagger-config",
    "stagger-lint",
    "stagger-traces",
    "stagger-redis",
];

/// Lines of source by what is on them. A line with code and a comment is code.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Lines {
    code: usize,
    documentation: usize,
    comment: usize,
    blank: usize,
}

/// Prints the lines in `src` of each crate, unit tests included.
pub(crate) fn run(arguments: &[OsString]) -> Result {
    if !arguments.is_empty() {
        return Err("takes no arguments".into());
    }
    let mut total = Lines::default();
    println!("{:<18}{:>8}{:>8}{:>8}{:>8}{:>8}", "crate", "lines", "code", "docs", "comment", "blank");
    for name in CRATES {
        let mut lines = Lines::default();
        for path in files(&root().join("crates").join(name).join("src"), "rs")? {
            lines += Lines::of(&fs::read_to_string(path)?);
        }
        println!("{}", lines.row(name));
        total += lines;
    }
    println!("{}", total.row("total"));
    Ok(())
}

impl Lines {
    /// Counts the lines of a source. Text inside of a literal counts by how its line begins.
    fn of(source: &str) -> Self {
        let mut lines = Self::default();
        for line in source.lines().map(str::trim) {
            *if line.is_empty() {
                &mut lines.blank
            } else if line.starts_with("///") || line.starts_with("//!") {
                &mut lines.documentation
            } else if line.starts_with("//") {
                &mut lines.comment
            } else {
                &mut lines.code
            } += 1;
        }
        lines
    }

    const fn all(self) -> usize {
        self.code + self.documentation + self.comment + self.blank
    }

    fn row(self, name: &str) -> String {
        let Self { code, documentation, comment, blank } = self;
        format!("{name:<18}{:>8}{code:>8}{documentation:>8}{comment:>8}{blank:>8}", self.all())
    }
}

impl AddAssign for Lines {
    fn add_assign(&mut self, other: Self) {
        self.code += other.code;
        self.documentation += other.documentation;
        self.comment += other.comment;
        self.blank += other.blank;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_line_is_counted_once_by_how_it_begins() {
        let source = "//! The crate.\n\n// Why.\n/// An item.\nfn f() {} // does it\n    \n\t/// Inner.\n";
        let lines = Lines::of(source);
        assert_eq!(lines, Lines { code: 1, documentation: 3, comment: 1, blank: 2 });
        assert_eq!(lines.all(), source.lines().count());
    }

    #[test]
    fn every_counted_crate_exists() {
        for name in CRATES {
            assert!(root().join("crates").join(name).join("src").is_dir(), "{name}");
        }
    }
}
