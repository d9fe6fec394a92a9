use std::env;
use std::ffi::OsString;
use std::io::{self, IsTerminal};

use clap::ValueEnum;

/// When to use color.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub enum ColorChoice {
    /// On a terminal, unless NO_COLOR, CLICOLOR=0 or TERM=dumb is set; CLICOLOR_FORCE=1 enables it everywhere
    #[default]
    Auto,
    /// Also in pipes and files
    Always,
    /// Never
    Never,
}

/// Whether a live status line may be drawn.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Progress {
    /// If the terminal supports it.
    Live,
    Hidden,
}

/// The capabilities of the output streams.
#[derive(Clone, Debug)]
pub struct Term {
    /// Standard output: results.
    pub stdout: Screen,
    /// Standard error: messages for humans.
    pub stderr: Screen,
    /// Whether the locale's character set is UTF-8; otherwise only ASCII is written.
    pub utf8: bool,
}

#[derive(Clone, Debug)]
pub struct Screen {
    pub tty: bool,
    pub color: bool,
    /// Whether a line may be redrawn in place: the terminal supports cursor control and progress is not disabled.
    pub redraws: bool,
    /// Width in columns at the start of the program: `COLUMNS`, else the terminal's own width, else 80.
    pub width: usize,
}

const DEFAULT_WIDTH: usize = 80;

impl Term {
    /// Reads the environment and the terminals once.
    pub fn detect(choice: ColorChoice, progress: Progress) -> Self {
        let screen = |tty, size| Screen::new(choice, progress, tty, size);
        let stdout = screen(io::stdout().is_terminal(), terminal_size::terminal_size_of(io::stdout()));
        let stderr = screen(io::stderr().is_terminal(), terminal_size::terminal_size_of(io::stderr()));
        Self { stdout, stderr, utf8: is_utf8(|name| env::var_os(name)) }
    }
}

impl Screen {
    fn new(
        choice: ColorChoice,
        progress: Progress,
        tty: bool,
        size: Option<(terminal_size::Width, terminal_size::Height)>,
    ) -> Self {
        let variable = |name: &str| env::var_os(name);
        Self {
            tty,
            color: wants_color(choice, tty, variable),
            redraws: progress == Progress::Live && tty && !is_dumb(variable),
            width: columns(variable).or(size.map(|(width, _)| usize::from(width.0))).unwrap_or(DEFAULT_WIDTH),
        }
    }
}

/// Returns whether this job has the terminal on standard error. One in the background (`&`, or Ctrl-Z and `bg`) shares
/// it with a shell, at whose prompt the cursor is: it may print lines, and must not redraw any.
#[must_use]
pub fn is_foreground() -> bool {
    #[cfg(unix)]
    if let Ok(group) = rustix::termios::tcgetpgrp(io::stderr()) {
        return group == rustix::process::getpgrp();
    }
    // Of a terminal that does not control this process, nobody else has jobs here.
    true
}

/// Returns the current width of standard error: a window may have been resized since the program started.
pub fn stderr_width() -> usize {
    columns(|name| env::var_os(name)).or_else(terminal_width).unwrap_or(DEFAULT_WIDTH)
}

/// Returns the current width that the terminal on standard error reports.
pub fn terminal_width() -> Option<usize> {
    terminal_size::terminal_size_of(io::stderr()).map(|(width, _)| usize::from(width.0))
}

/// Returns `COLUMNS` if it is a positive number.
fn columns(variable: impl Fn(&str) -> Option<OsString>) -> Option<usize> {
    variable("COLUMNS")?.to_str()?.parse().ok().filter(|&columns| columns > 0)
}

/// Returns whether to use color, following <https://no-color.org> and <https://bixense.com/clicolors>.
fn wants_color(choice: ColorChoice, tty: bool, variable: impl Fn(&str) -> Option<OsString>) -> bool {
    let set = |name: &str| variable(name).is_some_and(|value| !value.is_empty());
    let is_zero = |name: &str| variable(name).is_some_and(|value| value == "0");
    match choice {
        ColorChoice::Always => true,
        ColorChoice::Never => false,
        ColorChoice::Auto if set("NO_COLOR") => false,
        ColorChoice::Auto if set("CLICOLOR_FORCE") && !is_zero("CLICOLOR_FORCE") => true,
        ColorChoice::Auto => tty && !is_zero("CLICOLOR") && !is_dumb(variable),
    }
}

fn is_dumb(variable: impl Fn(&str) -> Option<OsString>) -> bool {
    variable("TERM").is_some_and(|term| term == "dumb")
}

/// Returns whether the locale uses UTF-8: the first non-empty variable of `LC_ALL`, `LC_CTYPE` and `LANG` decides, as
/// in POSIX; without one, the C locale applies.
fn is_utf8(variable: impl Fn(&str) -> Option<OsString>) -> bool {
    let mut set =
        ["LC_ALL", "LC_CTYPE", "LANG"].iter().filter_map(|name| variable(name)).filter(|text| !text.is_empty());
    let Some(locale) = set.next() else { return false };
    let locale = locale.to_string_lossy().to_ascii_lowercase();
    locale.contains("utf-8") || locale.contains("utf8")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn environment<'a>(pairs: &'a [(&'a str, &'a str)]) -> impl Fn(&str) -> Option<OsString> + 'a {
        |name| pairs.iter().find(|(key, _)| *key == name).map(|(_, value)| OsString::from(value))
    }

    #[test]
    fn color_follows_the_flag_then_the_environment_then_the_terminal() {
        use ColorChoice::{Always, Auto, Never};
        for (choice, tty, pairs, want) in [
            (Auto, true, &[][..], true),
            (Auto, false, &[], false),
            (Auto, true, &[("NO_COLOR", "1")], false),
            (Auto, true, &[("NO_COLOR", "")], true),
            (Auto, false, &[("CLICOLOR_FORCE", "1")], true),
            (Auto, false, &[("CLICOLOR_FORCE", "0")], false),
            (Auto, true, &[("NO_COLOR", "1"), ("CLICOLOR_FORCE", "1")], false),
            (Auto, true, &[("CLICOLOR", "0")], false),
            (Auto, true, &[("TERM", "dumb")], false),
            (Always, false, &[("NO_COLOR", "1")], true),
            (Never, true, &[("CLICOLOR_FORCE", "1")], false),
        ] {
            assert_eq!(wants_color(choice, tty, environment(pairs)), want, "{choice:?}, tty {tty}, {pairs:?}");
        }
    }

    #[test]
    fn the_first_non_empty_locale_variable_decides() {
        for (pairs, want) in [
            (&[][..], false),
            (&[("LANG", "de_DE.UTF-8")], true),
            (&[("LANG", "C.utf8")], true),
            (&[("LC_ALL", ""), ("LANG", "C.UTF-8")], true),
            (&[("LC_ALL", "C"), ("LANG", "en_GB.UTF-8")], false),
            (&[("LC_CTYPE", "de_DE.ISO-8859-1"), ("LANG", "en_GB.UTF-8")], false),
        ] {
            assert_eq!(is_utf8(environment(pairs)), want, "{pairs:?}");
        }
    }

    #[test]
    fn invalid_columns_are_ignored() {
        for (value, want) in [("40", Some(40)), ("0", None), ("wide", None), ("-1", None)] {
            assert_eq!(columns(environment(&[("COLUMNS", value)])), want, "{value}");
        }
    }
}
