//! Counts passed and failed tests from the output of the test runners.

use core::fmt;

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Count {
    pub(crate) passed: u64,
    pub(crate) failed: u64,
    pub(crate) skipped: u64,
}

impl Count {
    /// Adds the counts of a line of `cargo nextest` or `cargo test`, if the line is a summary.
    pub(crate) fn add_line(&mut self, line: &str) {
        let line = without_color(line);
        // At the first column only: nextest indents the output of a failed test, which has a result line of its own.
        let sum = if let Some(sum) = line.strip_prefix("test result: ") {
            sum
        } else if line.trim_start().starts_with("Summary [")
            && let Some((_, sum)) = line.split_once(" run: ")
        {
            sum
        } else {
            return;
        };
        for part in without_brackets(sum).split([',', ';', '.']) {
            let Some((number, what)) = part.trim().split_once(' ') else { continue };
            let Ok(number) = number.parse::<u64>() else { continue };
            match what {
                "passed" => self.passed += number,
                "failed" | "timed out" | "exec failed" => self.failed += number,
                "skipped" | "ignored" => self.skipped += number,
                _ => {}
            }
        }
    }
}

impl fmt::Display for Count {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { passed, failed, skipped } = self;
        write!(f, "{passed} passed, {failed} failed, {skipped} skipped")
    }
}

/// Removes the remarks of nextest, as in `3 passed (1 slow, 1 flaky), 1 failed`.
fn without_brackets(text: &str) -> String {
    let mut depth = 0_u32;
    text.chars()
        .filter(|character| {
            match character {
                '(' => depth += 1,
                ')' => depth = depth.saturating_sub(1),
                _ => return depth == 0,
            }
            false
        })
        .collect::<String>()
        .replace(" ,", ",")
}

/// Removes the escape sequences for color: `ESC [`, parameters, `m`.
fn without_color(text: &str) -> String {
    let mut parts = text.split("\u{1b}[");
    let mut plain = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        plain += part.split_once('m').map_or(part, |(_, rest)| rest);
    }
    plain
}

#[cfg(test)]
mod tests {
    use super::*;

    fn count(lines: &[&str]) -> (u64, u64, u64) {
        let mut count = Count::default();
        lines.iter().for_each(|line| count.add_line(line));
        (count.passed, count.failed, count.skipped)
    }

    #[test]
    fn results_of_several_test_binaries_add_up() {
        let lines = [
            "test result: ok. 26 passed; 0 failed; 2 ignored; 0 measured; 0 filtered out; finished in 0.77s\n",
            "test result: FAILED. 17 passed; 1 failed; 0 ignored; 0 measured; 3 filtered out; finished in 10.02s\n",
        ];
        assert_eq!(count(&lines), (43, 1, 2));
    }

    #[test]
    fn nextest_summaries_are_read_in_all_forms() {
        for (line, want) in [
            ("     Summary [   0.771s] 26 tests run: 26 passed, 2 skipped", (26, 0, 2)),
            ("     Summary [   1.000s] 1 test run: 1 passed, 0 skipped", (1, 0, 0)),
            ("  Summary [ 2s] 5/26 tests run: 2 passed (1 slow, 1 flaky), 1 failed, 2 timed out, 0 skipped", (2, 3, 0)),
            (
                "\u{1b}[32;1m     Summary\u{1b}[0m [   0.7s] \u{1b}[1m3\u{1b}[0m tests run: \u{1b}[1m3\u{1b}[0m \
                 \u{1b}[32;1mpassed\u{1b}[0m, \u{1b}[1m1\u{1b}[0m \u{1b}[33;1mskipped\u{1b}[0m",
                (3, 0, 1),
            ),
        ] {
            assert_eq!(count(&[line]), want, "{line}");
        }
    }

    #[test]
    fn other_lines_are_ignored() {
        assert_eq!(count(&["test passes ... ok", "3 passed, 1 failed", "Summary [", ""]), (0, 0, 0));
    }

    #[test]
    fn the_output_of_a_failed_test_is_not_counted() {
        let lines = [
            "    test result: FAILED. 0 passed; 1 failed; 0 ignored; 0 measured; 17 filtered out; finished in 0.09s",
            "     Summary [   1.151s] 3 tests run: 2 passed, 1 failed, 0 skipped",
        ];
        assert_eq!(count(&lines), (2, 1, 0));
    }
}
