use core::num::NonZeroU16;
use core::time::Duration;
use std::io::{Read, Write};
use std::os::fd::AsFd;
use std::os::unix::process::ExitStatusExt;
use std::process::{Child, ExitStatus};
use std::time::Instant;

use pty_process::blocking::{Command, Pty};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::process::Signal;

use crate::support::{Files, PATIENCE, eventually, ignore_no_signal, is_stopped, living_in_group, state};

const STAGGER: &str = env!("CARGO_BIN_EXE_stagger");
const ROWS: u16 = 24;

/// A program on a pseudo-terminal, with its screen content.
pub(crate) struct Terminal {
    pty: Pty,
    child: Child,
    screen: vt100::Parser,
    /// Everything that was written to the terminal.
    raw: Vec<u8>,
}

impl Terminal {
    #[track_caller]
    pub(crate) fn start(columns: u16, environment: &[(&str, &str)], program: &str, args: &[&str]) -> Self {
        ignore_no_signal();
        let (pty, pts) = pty_process::blocking::open().expect("a pseudo-terminal is opened");
        pty.resize(pty_process::Size::new(ROWS, columns)).expect("the terminal is resized");
        let command =
            Command::new(program).args(args).env_clear().env("PATH", std::env::var_os("PATH").unwrap_or_default());
        let command = command.env("TERM", "xterm").env("LANG", "C.UTF-8").envs(environment.iter().copied());
        let child = command.spawn(pts).expect("the program starts");
        let size = |length| NonZeroU16::new(length).expect("the size is not zero");
        Self { pty, child, screen: vt100::Parser::new(size(ROWS), size(columns), 0), raw: Vec::new() }
    }

    #[track_caller]
    fn run(columns: u16, environment: &[(&str, &str)], flags: &[&str], script: &str) -> Self {
        let args = [&["run", "--jitter", "none"], flags, &["--", "sh", "-c", script]].concat();
        Self::start(columns, environment, STAGGER, &args)
    }

    /// Reads the output of the next 10 ms; returns `false` at the end of the output.
    fn watch(&mut self) -> bool {
        const MOMENT: Timespec = Timespec { tv_sec: 0, tv_nsec: 10_000_000 };
        let mut fds = [PollFd::from_borrowed_fd(self.pty.as_fd(), PollFlags::IN)];
        if poll(&mut fds, Some(&MOMENT)).expect("the terminal is polled") == 0 {
            return true;
        }
        let mut buffer = [0; 4096];
        // Linux reports a terminal without open descriptors as an error.
        let n = self.pty.read(&mut buffer).unwrap_or(0);
        self.screen.process(&buffer[..n]);
        self.raw.extend_from_slice(&buffer[..n]);
        n > 0
    }

    #[track_caller]
    pub(crate) fn watch_until(&mut self, what: &str, holds: impl Fn(&Self) -> bool) {
        let began = Instant::now();
        while !holds(self) {
            assert!(self.watch(), "the program ended before: {what}\n{:?}", self.rows());
            assert!(began.elapsed() < PATIENCE, "timed out waiting for: {what}\n{:?}", self.rows());
        }
    }

    /// Waits until the program has ended.
    #[track_caller]
    pub(crate) fn end(&mut self) -> ExitStatus {
        let began = Instant::now();
        while self.watch() {
            assert!(began.elapsed() < PATIENCE, "the program does not end\n{:?}", self.rows());
        }
        self.child.wait().expect("the exit status is read")
    }

    fn types(&mut self, text: &str) {
        self.pty.write_all(text.as_bytes()).expect("the terminal accepts input");
    }

    /// Returns the rows that are not empty.
    pub(crate) fn rows(&self) -> Vec<String> {
        let columns = self.screen.screen().size().1.get();
        self.screen
            .screen()
            .rows(0, columns)
            .map(|row| row.trim_end().to_owned())
            .filter(|row| !row.is_empty())
            .collect()
    }

    pub(crate) fn has(&self, text: &str) -> bool {
        self.screen.screen().contents().contains(text)
    }

    fn raw(&self) -> String {
        String::from_utf8_lossy(&self.raw).into_owned()
    }
}

impl Drop for Terminal {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Replaces times and the padding after them, which differ from run to run.
fn without_times(rows: &[String]) -> Vec<String> {
    let time = regex::Regex::new(r"\b(in|total|waited) [0-9.]+[mu]?s( *)").expect("a valid pattern");
    let squeeze =
        |found: &regex::Captures<'_>| format!("{} T{}", &found[1], if found[2].is_empty() { "" } else { "  " });
    rows.iter().map(|row| time.replace_all(row, squeeze).into_owned()).collect()
}

#[test]
fn finished_lines_keep_all_parts_at_40_and_120_columns() {
    const SCRIPT: &str = r#"test "$STAGGER_ATTEMPT" = 3 || exit 7"#;
    for columns in [40, 120] {
        let mut terminal = Terminal::run(columns, &[], &["-n", "4", "-d", "400ms"], SCRIPT);
        terminal.watch_until("the status line", |terminal| terminal.has("2/4  starts in 0."));
        assert_eq!(terminal.rows().len(), 2, "{:?}", terminal.rows());
        assert!(terminal.end().success());
        let rows = without_times(&terminal.rows());
        let want =
            ["✗ 1/4  exit 7 in T  waiting 400ms", "✗ 2/4  exit 7 in T  waiting 800ms", "✓ 3/4  ok in T  total T"];
        if columns == 40 {
            assert_eq!(rows, [&want[..], &["    waited T"]].concat());
        } else {
            assert_eq!(rows, [want[0], want[1], "✓ 3/4  ok in T  total T, waited T"]);
        }
    }
}

#[test]
fn the_reason_for_giving_up_is_never_cut_off() {
    let flags = ["-n", "9", "-d", "300ms", "-T", "500ms"];
    for columns in [40, 80, 120] {
        let mut terminal = Terminal::run(columns, &[], &flags, "exit 1");
        assert_eq!(terminal.end().code(), Some(1));
        let rows = terminal.rows();
        let text = rows.iter().map(|row| row.trim()).collect::<Vec<_>>().join(" ");
        assert!(text.contains("giving up: max-elapsed 500ms would be exceeded"), "{columns}: {rows:?}");
        assert_eq!(rows.len() > 2, columns == 40, "{columns}: {rows:?}");
    }
    let advice = "echo retry-after=1h > \"$STAGGER_ADVICE\"; kill -KILL $$";
    for columns in [40, 80, 120] {
        let mut terminal = Terminal::run(columns, &[], &["-n", "2"], advice);
        terminal.end();
        let rows = terminal.rows();
        let text = rows.iter().map(|row| row.trim()).collect::<Vec<_>>().join(" ");
        assert!(text.contains("killed by SIGKILL") && text.contains("exceeds max-hint 5m"), "{columns}: {rows:?}");
    }
}

#[test]
fn the_status_of_a_failed_response_is_shown_in_place_of_the_exit_code() {
    let total = regex::Regex::new(", [0-9.]+[mu]?s$").expect("a valid pattern");
    for (headers, want) in [
        ("HTTP/2 404", "✗ 1/2  HTTP 404 in T  not retried: this status is permanent"),
        ("HTTP/2 503\\nx-should-retry: false", "✗ 1/2  HTTP 503 in T  not retried: the server forbids it"),
        ("HTTP/2 503\\nRetry-After: 301", "✗ 1/2  HTTP 503 in T  giving up: retry-after exceeds max-hint 5m, T"),
    ] {
        let script = format!("printf '{headers}\\n\\n' > $STAGGER_ADVICE; exit 22");
        let mut terminal = Terminal::run(120, &[], &["-n", "2"], &script);
        terminal.end();
        let rows = without_times(&terminal.rows());
        assert_eq!(total.replace(&rows[0], ", T"), want);
    }
}

#[test]
fn a_verbose_run_shows_its_whole_seed() {
    for columns in [40, 80, 120] {
        let mut terminal = Terminal::run(columns, &[], &["-v", "-n", "1", "--seed", "9007199254740991"], "exit 0");
        terminal.end();
        let has_seed = |row: &String| row.split_whitespace().any(|word| word == "9007199254740991");
        assert!(terminal.rows().iter().any(has_seed), "{columns}: {:?}", terminal.rows());
    }
}

#[test]
fn only_the_status_line_is_cut_to_the_width() {
    let mut terminal = Terminal::run(40, &[], &["-n", "1", "-t", "700ms", "-OE"], "sleep 60");
    terminal.watch_until("the status line", |terminal| terminal.has("1/1  running 0."));
    assert!(!terminal.has("total"), "{:?}", terminal.rows());
    assert_eq!(terminal.rows().len(), 1, "{:?}", terminal.rows());
    terminal.end();
}

#[test]
fn a_running_attempt_is_shown_only_if_it_cannot_mix_with_the_output() {
    for (columns, want) in [(40, "1/1  running 0."), (120, "▏ 700ms   total 0.")] {
        let mut terminal = Terminal::run(columns, &[], &["-n", "1", "-t", "700ms", "-OE"], "echo held; sleep 60");
        terminal.watch_until("the status line", |terminal| terminal.has(want));
        assert_eq!(terminal.rows().len(), 1, "{:?}", terminal.rows());
        assert_eq!(terminal.end().code(), Some(124));
        assert_eq!(without_times(&terminal.rows())[0], "held");
    }
    let mut terminal = Terminal::run(80, &[], &["-n", "1"], "sleep 0.4; echo plain; exit 1");
    terminal.end();
    assert!(!terminal.raw().contains("running"), "{}", terminal.raw());
}

#[test]
fn output_without_a_final_newline_is_kept_on_its_own_line() {
    for columns in [40, 120] {
        let mut terminal = Terminal::run(columns, &[], &["-n", "1"], "printf 'no newline'; exit 1");
        terminal.end();
        let rows = without_times(&terminal.rows());
        assert_eq!(rows[0], "no newline");
        assert!(rows[1].starts_with("✗ 1/1  exit 1 in T"), "{rows:?}");
    }
}

#[test]
fn color_is_off_without_a_wish_for_it() {
    let color = regex::Regex::new("\x1b\\[[0-9;]*m").unwrap();
    for (environment, flags, want) in [
        (&[][..], &[][..], true),
        (&[("NO_COLOR", "1")], &[], false),
        (&[("TERM", "dumb")], &[], false),
        (&[], &["--color", "never"], false),
        (&[("NO_COLOR", "1")], &["--color", "always"], true),
    ] {
        let flags = [flags, &["-n", "2", "-d", "250ms"]].concat();
        let mut terminal = Terminal::run(80, environment, &flags, "exit 1");
        terminal.end();
        assert_eq!(color.is_match(&terminal.raw()), want, "{environment:?} {flags:?} {:?}", terminal.raw());
        assert!(terminal.has("✗ 1/2"));
    }
}

#[test]
fn without_utf_8_everything_is_ascii() {
    for environment in [[("LANG", "C")], [("LC_ALL", "POSIX")]] {
        let mut terminal =
            Terminal::run(80, &environment, &["-n", "2", "-d", "400ms", "--jitter", "full", "--seed", "1"], "exit 1");
        terminal.end();
        assert!(terminal.raw.is_ascii(), "{}", terminal.raw());
        assert!(
            terminal.raw().contains("x\x1b[0m 1/2  exit 1") && terminal.raw().contains("(0-400ms)"),
            "{:?}",
            terminal.raw()
        );
    }
}

#[test]
fn no_progress_draws_no_status_line() {
    for (environment, flags) in [(&[][..], &["--no-progress"][..]), (&[("TERM", "dumb")], &[])] {
        let flags = [flags, &["-n", "2", "-d", "300ms"]].concat();
        let mut terminal = Terminal::run(80, environment, &flags, "exit 1");
        terminal.end();
        assert!(!terminal.raw().contains("starts in") && !terminal.raw().contains("\x1b[K"), "{:?}", terminal.raw());
        assert_eq!(terminal.rows().len(), 2);
    }
}

#[test]
fn ctrl_c_reaches_the_command_once_and_ends_the_run() {
    let files = Files::new();
    let script = format!(
        "trap 'echo interrupted >> {0}' INT; echo ready; i=0; while [ $i -lt 30 ]; do sleep 0.01; i=$((i+1)); done; \
         exit 1",
        files.path("interrupts").display()
    );
    let mut terminal = Terminal::run(80, &[], &["-n", "3"], &script);
    terminal.watch_until("the command runs", |terminal| terminal.has("ready"));
    terminal.types("\x03");
    let status = terminal.end();
    assert_eq!(status.signal(), Some(Signal::INT.as_raw()), "{:?}", terminal.rows());
    assert_eq!(files.wait_for_lines("interrupts", 1), ["interrupted"]);
    assert!(terminal.has("interrupted by SIGINT") && !terminal.has("2/3"), "{:?}", terminal.rows());
}

#[test]
fn ctrl_c_during_a_wait_ends_the_run_immediately() {
    let mut terminal = Terminal::run(80, &[], &["-d", "60s", "--cap", "60s"], "exit 1");
    terminal.watch_until("stagger waits", |terminal| terminal.has("starts in"));
    let began = Instant::now();
    terminal.types("\x03");
    assert_eq!(terminal.end().signal(), Some(Signal::INT.as_raw()));
    assert!(began.elapsed() < Duration::from_secs(5));
    assert!(terminal.has("interrupted by SIGINT before attempt 2/4"), "{:?}", terminal.rows());
}

#[test]
fn a_signal_sent_to_stagger_is_forwarded_to_a_command_in_its_group() {
    let mut terminal =
        Terminal::run(80, &[], &[], "trap 'echo got it; exit 1' INT; echo ready; while :; do sleep 0.01; done");
    terminal.watch_until("the command runs", |terminal| terminal.has("ready"));
    rustix::process::kill_process(rustix::process::Pid::from_child(&terminal.child), Signal::INT).unwrap();
    assert_eq!(terminal.end().signal(), Some(Signal::INT.as_raw()));
    assert!(terminal.has("got it"), "{:?}", terminal.rows());
}

#[test]
fn a_timeout_on_a_terminal_reaches_descendants() {
    let files = Files::new();
    let script = format!(
        "trap '' TERM; sh -c 'echo $$ > {}; sleep 60; sleep 60' & sleep 60; sleep 60",
        files.path("grandchild").display()
    );
    let mut terminal = Terminal::run(80, &[], &["-n", "1", "-t", "500ms", "-k", "100ms"], &script);
    assert_eq!(terminal.end().code(), Some(124));
    assert_eq!(state(files.wait_for_pid("grandchild")), None);
}

#[test]
fn job_control_stops_and_continues_a_run() {
    for (flags, script) in [
        (
            "-n 1",
            "echo $$ > pid; echo ready; i=0; while [ $i -lt 20 ]; do sleep 0.01; i=$((i+1)); done; echo 'all' done",
        ),
        ("-d 300ms", "test -e pid && exec echo 'all' done; echo $$ > pid; echo ready; exit 1"),
    ] {
        let files = Files::new();
        let directory = files.path("");
        let mut shell = Terminal::start(80, &[("PS1", "$ ")], "bash", &["--norc", "--noprofile", "-i"]);
        shell.types(&format!(
            "cd {}; {STAGGER} run --jitter none {flags} -- sh -c \"{}\"\n",
            directory.display(),
            script.replace('$', "\\$")
        ));
        let pid = files.wait_for_pid("pid");
        shell.watch_until("the command runs", |shell| shell.raw().contains("ready\r\n"));
        shell.types("\x1a");
        shell.watch_until("the shell reports the stop", |shell| shell.has("Stopped"));
        eventually("the command is stopped or has ended", || is_stopped(pid) || state(pid).is_none());
        shell.types("fg\n");
        shell.watch_until("the run is continued", |shell| shell.raw().contains("all done\r\n"));
        shell.types("exit\n");
        shell.end();
    }
}

/// The cursor is at the prompt of the shell then, where somebody may be typing.
#[test]
fn a_job_in_the_background_draws_no_line() {
    for (command, line) in [
        ("run -n 2 -d 60s --jitter none -- false", "starts in"),
        ("wait file:/nowhere", "of 1m"),
        ("simulate reconnect --clients=20k --capacity=1k -n=inf --seeds=1000", "simulating "),
    ] {
        let mut shell = Terminal::start(80, &[("PS1", "$ ")], "bash", &["--norc", "--noprofile", "-i"]);
        shell.types(&format!("{STAGGER} {command}\n"));
        shell.watch_until("the line is drawn", |shell| shell.raw().contains(line));
        shell.types("\x1a");
        shell.watch_until("the shell reports the stop", |shell| shell.has("Stopped"));
        shell.types("bg; sleep 0.5; echo 'it' runs\n");
        shell.watch_until("the job has run for a while", |shell| shell.raw().contains("it runs\r\n"));
        let raw = shell.raw();
        let (_, since) = raw.split_once("Stopped").unwrap();
        assert!(!since.contains(line) && !since.contains("\x1b[K"), "{command}: {since:?}");
        shell.types("kill -9 %1; exit\n");
        shell.end();
    }
}

#[test]
fn a_command_without_terminal_input_has_its_own_process_group() {
    let files = Files::new();
    let script = format!("echo $$ > {}; sleep 60 & sleep 60", files.path("group").display());
    let inner = format!("{STAGGER} run -n 1 -k 100ms -- sh -c '{script}' </dev/null");
    let mut terminal = Terminal::start(80, &[], "sh", &["-c", &format!("trap : INT; {inner}; echo status $?")]);
    let group = files.wait_for_pid("group");
    eventually("all three processes run", || living_in_group(group) == 3);
    terminal.types("\x03");
    terminal.watch_until("the run has ended", |terminal| terminal.has("status 130"));
    terminal.end();
    assert_eq!(living_in_group(group), 0);
}

#[test]
fn a_command_stopped_by_sigttin_is_noted() {
    let inner = format!("{STAGGER} run -n 1 -- sh -c 'read -r line </dev/tty' </dev/null");
    let mut terminal = Terminal::start(80, &[], "sh", &["-c", &format!("trap : INT; {inner}; echo status $?")]);
    terminal.watch_until("the note", |terminal| terminal.has("add --foreground"));
    terminal.types("\x03");
    terminal.watch_until("the run has ended", |terminal| terminal.has("status 130"));
    terminal.end();
}

#[test]
fn a_simulation_shows_its_progress_and_reports_finished_runs_after_an_interrupt() {
    let args = ["simulate", "reconnect", "--clients=20k", "--capacity=1k", "-n=inf", "--seeds=1000"];
    let mut terminal = Terminal::start(80, &[], STAGGER, &args);
    terminal.watch_until("the status line", |terminal| terminal.has("simulating 1000 runs: "));
    terminal.types("\u{3}");
    assert_eq!(terminal.end().code(), Some(130));
    let rows = terminal.rows();
    assert!(rows.iter().any(|row| row.starts_with("exponential ")), "{rows:?}");
    assert!(rows.iter().any(|row| row.starts_with("interrupted: ")), "{rows:?}");
    assert!(!terminal.has("simulating"), "the status line is erased: {rows:?}");
}

#[test]
fn advise_asks_for_missing_answers_and_prints_its_advice() {
    let mut terminal = Terminal::start(100, &[], STAGGER, &["advise", "--for", "reconnecting"]);
    for (question, answer) in [
        ("Is the error transient?", "yes"),
        ("Is the operation idempotent?", "yes"),
        ("How many clients", ""),
        ("Within what time must the operation succeed?", ""),
        ("What is the minimum delay between attempts?", ""),
    ] {
        terminal.watch_until(question, |terminal| terminal.has(question));
        terminal.types(&format!("{answer}\n"));
    }
    assert!(terminal.end().success());
    assert!(terminal.raw().contains("retry with "), "{:?}", terminal.rows());
    assert!(!terminal.raw().contains("What is the purpose"), "the flag answers this question");
}

#[test]
fn a_drill_shows_its_progress_and_erases_the_status_line() {
    let args =
        ["drill", "--clients=100", "--capacity=50/s", "--compare", "eager: constant base=500ms max-attempts=inf"];
    let mut terminal = Terminal::start(100, &[], STAGGER, &args);
    terminal.watch_until("the storm", |terminal| {
        terminal.rows().iter().any(|row| row.contains("eager: storm") && row.contains("of 100 connected"))
    });
    assert!(terminal.end().success());
    assert!(!terminal.rows().iter().any(|row| row.contains("of 100 connected")), "{:?}", terminal.rows());
}
