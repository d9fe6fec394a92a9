//! What `stagger wait` draws on a terminal.

use std::fs;

use crate::support::Files;
use crate::terminal::Terminal;

const STAGGER: &str = env!("CARGO_BIN_EXE_stagger");

#[test]
fn the_status_line_fits_the_terminal_and_the_last_lines_are_whole() {
    for columns in [40, 80, 120] {
        let files = Files::new();
        let path = files.path("a-file-that-is-waited-for");
        let target = format!("file:{}", path.display());
        let mut terminal = Terminal::start(columns, &[], STAGGER, &["wait", &target, "file:/"]);
        terminal.watch_until("the status line is drawn", |terminal| terminal.has("1 of 2 ready"));
        // The line of the target that is ready, which may wrap, and the status line.
        let rows = terminal.rows();
        assert!(
            rows.last().is_some_and(|row| row.contains("s of 1m") && row.chars().count() < columns.into()),
            "{rows:?}"
        );
        if columns == 120 {
            terminal.watch_until("the reason is drawn", |terminal| terminal.has("does not exist"));
        }
        fs::write(&path, "").unwrap();
        assert!(terminal.end().success());
        let text = terminal.rows().concat();
        assert!(
            text.contains("✓ file:/  ready after ") && text.contains("a-file-that-is-waited-for  ready after "),
            "{text}"
        );
        assert!(!text.contains(" of 2 ready"), "{text}");
    }
}

#[test]
fn reasons_are_whole_on_a_narrow_terminal() {
    let mut terminal = Terminal::start(40, &[], STAGGER, &["wait", "-n", "1", "file:/nowhere/with/a/long/path"]);
    assert_eq!(terminal.end().code(), Some(124));
    let text = terminal.rows().concat();
    assert!(text.contains("✗ file:/nowhere/with/a/long/path  not ready after"), "{text}");
    assert!(text.ends_with("does not exist, 1 attempt"), "{text}");
}
