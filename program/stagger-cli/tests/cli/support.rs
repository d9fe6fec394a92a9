use core::sync::atomic::AtomicBool;
use core::time::Duration;
use std::ffi::OsStr;
use std::io::Write;
use std::os::unix::process::ExitStatusExt;
use std::path::PathBuf;
use std::process::{Child, Command, ExitStatus, Output, Stdio};
use std::sync::{Arc, Once};
use std::thread;
use std::time::Instant;
use std::{env, fs};

use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;
use stagger_kit::Program;

/// Longer than any step of these tests takes, even on a loaded machine.
pub(crate) const PATIENCE: Duration = Duration::from_secs(300);

/// Installs handlers for signals that the test runner may have inherited as ignored (`nohup`, a background job): child
/// processes inherit ignored signals, but not handlers.
pub(crate) fn ignore_no_signal() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        let always = Arc::new(AtomicBool::new(true));
        for signal in [Signal::HUP, Signal::INT, Signal::QUIT, Signal::TERM] {
            let handled = signal_hook::flag::register_conditional_default(signal.as_raw(), Arc::clone(&always));
            handled.expect("the signal has a handler");
        }
    });
}

/// Returns `stagger` with an environment that does not affect its output.
pub(crate) fn stagger<S: AsRef<OsStr>>(args: impl IntoIterator<Item = S>) -> Command {
    ignore_no_signal();
    let mut command = Command::new(env!("CARGO_BIN_EXE_stagger"));
    let own = ["STAGGER_ATTEMPT", "STAGGER_ADVICE", "STAGGER_RETRIED_BY"];
    for name in ["NO_COLOR", "CLICOLOR", "CLICOLOR_FORCE", "COLUMNS", "LC_ALL", "LC_CTYPE"].into_iter().chain(own) {
        command.env_remove(name);
    }
    command.env("LANG", "C.UTF-8").env("TERM", "xterm").args(args).stdin(Stdio::null());
    command
}

/// Finds a program in `PATH`, or where `cargo xtask ci --only packages` unpacks it.
pub(crate) fn unpacked(name: &str) -> PathBuf {
    find_unpacked(name).unwrap_or_else(|| panic!("{name}: run `cargo xtask ci --only packages`"))
}

fn find_unpacked(name: &str) -> Option<PathBuf> {
    let unpacked = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join("../packages/usr/bin");
    let path = env::var_os("PATH").unwrap_or_default();
    let mut places = env::split_paths(&path).chain([unpacked]).map(|place| place.join(name));
    places.find(|place| place.is_file())
}

/// Ends a test that needs programs which are not installed.
macro_rules! needs {
    ($($name:literal),+) => {
        if !crate::support::has(&[$($name),+]) {
            return;
        }
    };
}

/// Returns whether these programs are installed. A plain `cargo test` needs none of them, and a test without its
/// programs says so and passes. `cargo xtask ci` installs all, and sets a variable by which such a test fails.
pub(crate) fn has(programs: &[&str]) -> bool {
    let is_missing = |name: &&&str| Program::find(name).is_err() && find_unpacked(name).is_none();
    let Some(name) = programs.iter().find(is_missing) else { return true };
    assert!(env::var_os("STAGGER_TEST_ALL").is_none(), "{name} is not installed");
    eprintln!("SKIPPED: {name} is not installed; `cargo xtask ci --only packages` installs it");
    false
}

/// Returns `stagger run` with short delays and these arguments.
pub(crate) fn run<S: AsRef<OsStr>>(args: impl IntoIterator<Item = S>) -> Command {
    let mut command = stagger(["run", "--base", "5ms"]);
    command.args(args);
    command
}

/// Returns `stagger run` of a shell script.
pub(crate) fn run_script(flags: &[&str], script: &str) -> Command {
    let mut command = run(flags);
    command.args(["--", "sh", "-c", script]);
    command
}

/// A finished command.
#[derive(Debug)]
pub(crate) struct Seen {
    pub(crate) status: ExitStatus,
    pub(crate) stdout: String,
    pub(crate) stderr: String,
}

impl Seen {
    #[track_caller]
    pub(crate) fn exits(&self, code: i32) -> &Self {
        assert_eq!(self.status.code(), Some(code), "{self:#?}");
        self
    }

    #[track_caller]
    pub(crate) fn dies_of(&self, signal: Signal) -> &Self {
        assert_eq!(self.status.signal(), Some(signal.as_raw()), "{self:#?}");
        self
    }

    #[track_caller]
    pub(crate) fn prints(&self, stdout: &str) -> &Self {
        assert_eq!(self.stdout, stdout, "{self:#?}");
        self
    }

    #[track_caller]
    pub(crate) fn says(&self, text: &str) -> &Self {
        assert!(self.stderr.contains(text), "{text:?} is not in {self:#?}");
        self
    }

    #[track_caller]
    pub(crate) fn is_silent_about(&self, text: &str) -> &Self {
        assert!(!self.stderr.contains(text), "{text:?} is in {self:#?}");
        self
    }

    /// Parses the output.
    #[track_caller]
    pub(crate) fn json(&self) -> Value {
        serde_json::from_str(&self.stdout).unwrap_or_else(|error| panic!("{error}: {self:#?}"))
    }
}

impl From<Output> for Seen {
    fn from(output: Output) -> Self {
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        Self { status: output.status, stdout: text(&output.stdout), stderr: text(&output.stderr) }
    }
}

/// Runs a command and returns its result.
#[track_caller]
pub(crate) fn see(command: &mut Command) -> Seen {
    Running::start(command).end()
}

/// Runs a command that reads `input` from a pipe, and returns its result.
#[track_caller]
pub(crate) fn see_with_input(command: &mut Command, input: &[u8]) -> Seen {
    let mut running = Running::start(command.stdin(Stdio::piped()));
    let mut stdin = running.child.stdin.take().expect("stdin is piped");
    let input = input.to_vec();
    let writer = thread::spawn(move || {
        let _ = stdin.write_all(&input);
    });
    let seen = running.end();
    writer.join().expect("the writer does not panic");
    seen
}

/// Runs a command that must succeed without errors, and returns its standard output.
#[track_caller]
pub(crate) fn said(command: &mut Command) -> String {
    let seen = see(command);
    assert!(seen.exits(0).stderr.is_empty(), "{seen:#?}");
    seen.stdout
}

/// A running `stagger`, killed when dropped.
#[derive(Debug)]
pub(crate) struct Running {
    pub(crate) child: Child,
}

impl Running {
    #[track_caller]
    pub(crate) fn start(command: &mut Command) -> Self {
        let child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("stagger starts");
        Self { child }
    }

    pub(crate) fn pid(&self) -> Pid {
        Pid::from_child(&self.child)
    }

    #[track_caller]
    pub(crate) fn signal(&self, signal: Signal) {
        kill_process(self.pid(), signal).expect("stagger is running");
    }

    /// Waits for its end, for at most [`PATIENCE`].
    #[track_caller]
    pub(crate) fn end(mut self) -> Seen {
        let child = core::mem::replace(&mut self.child, Command::new("true").spawn().expect("true starts"));
        let pid = Pid::from_child(&child);
        let reader = thread::spawn(move || child.wait_with_output());
        let began = Instant::now();
        while !reader.is_finished() {
            if began.elapsed() > PATIENCE {
                let _ = kill_process(pid, Signal::KILL);
                panic!("stagger did not end in time");
            }
            thread::sleep(Duration::from_millis(2));
        }
        reader.join().expect("the reader does not panic").expect("the output of stagger is read").into()
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// A directory for the files of one test.
#[derive(Debug)]
pub(crate) struct Files {
    directory: tempfile::TempDir,
}

impl Files {
    pub(crate) fn new() -> Self {
        Self { directory: tempfile::tempdir().expect("a temporary directory is created") }
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.directory.path().join(name)
    }

    #[track_caller]
    pub(crate) fn write(&self, name: &str, content: impl AsRef<[u8]>) -> PathBuf {
        let path = self.path(name);
        fs::write(&path, content).expect("the file is written");
        path
    }

    /// Waits until a script has written `lines` lines to a file, and returns all its lines.
    #[track_caller]
    pub(crate) fn wait_for_lines(&self, name: &str, lines: usize) -> Vec<String> {
        let read = || fs::read_to_string(self.path(name)).unwrap_or_default();
        eventually(&format!("{lines} lines in {name}"), || {
            let text = read();
            text.ends_with('\n') && text.lines().count() >= lines
        });
        read().lines().map(str::to_owned).collect()
    }

    /// Waits until a script has written a PID to a file, and returns it.
    #[track_caller]
    pub(crate) fn wait_for_pid(&self, name: &str) -> Pid {
        let word = self.wait_for_lines(name, 1)[0].parse().expect("a PID is a number");
        Pid::from_raw(word).expect("a PID is not zero")
    }
}

/// Waits until a condition holds.
#[track_caller]
pub(crate) fn eventually(what: &str, mut holds: impl FnMut() -> bool) {
    let began = Instant::now();
    while !holds() {
        assert!(began.elapsed() < PATIENCE, "timed out waiting for: {what}");
        thread::sleep(Duration::from_millis(2));
    }
}

/// Returns the state letter of a process; `None` if it is dead or a zombie.
pub(crate) fn state(pid: Pid) -> Option<char> {
    stat(&pid.as_raw_nonzero().to_string()).map(|(state, _)| state).filter(|state| !matches!(state, 'Z' | 'X'))
}

/// Returns the living child processes of a process.
pub(crate) fn children(of: Pid) -> Vec<Pid> {
    let of = of.as_raw_nonzero().to_string();
    let entries = fs::read_dir("/proc").expect("/proc").flatten();
    let is_child = |name: &str| {
        let stat = fs::read_to_string(format!("/proc/{name}/stat")).ok()?;
        let parent = stat.rsplit_once(')')?.1.split_ascii_whitespace().nth(1)?.to_owned();
        (parent == of).then_some(())
    };
    let pids = entries.filter_map(|entry| {
        let name = entry.file_name().into_string().ok()?;
        let pid = Pid::from_raw(name.parse().ok()?)?;
        is_child(&name).map(|()| pid)
    });
    pids.filter(|pid| state(*pid).is_some()).collect()
}

/// Returns whether a process is stopped. A shell that has just called vfork may instead wait in state D for its stopped
/// child.
pub(crate) fn is_stopped(pid: Pid) -> bool {
    matches!(state(pid), Some('T' | 'D'))
}

/// Returns the number of live processes in a process group.
pub(crate) fn living_in_group(group: Pid) -> usize {
    let entries = fs::read_dir("/proc").expect("/proc exists").flatten();
    let stats = entries.filter_map(|entry| stat(entry.file_name().to_str()?));
    stats.filter(|(state, of)| *of == group.as_raw_nonzero().get() && !matches!(state, 'Z' | 'X')).count()
}

fn stat(pid: &str) -> Option<(char, i32)> {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    let mut fields = stat.rsplit_once(')')?.1.split_ascii_whitespace();
    Some((fields.next()?.chars().next()?, fields.nth(1)?.parse().ok()?))
}
