//! A command of the user, run under a guard that kills its process group when the drill ends in any way.

use core::fmt;
use core::time::Duration;
use std::collections::VecDeque;
use std::ffi::OsString;
use std::io::{self, BufRead, BufReader, Read};
use std::process::{Child, ChildStderr, Command, ExitCode, ExitStatus, Stdio};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::Instant;

use clap::Args;
use stagger_core::text::Outside;
use stagger_terminal::output::error::CliError;
use stagger_terminal::output::write::print;

use crate::server::this_program;

/// A command line of a drill's arguments, split into words.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct CommandLine {
    flag: &'static str,
    pub(crate) text: String,
    words: Vec<String>,
}

/// A command that runs under a guard. It is killed with its process group when this is dropped, or when the drill ends
/// in any way.
#[derive(Debug)]
pub(super) struct Program {
    flag: &'static str,
    text: String,
    guard: Child,
    /// The number of the command's process; `None` if it could not be started.
    pub(super) process: Option<u32>,
    output: Arc<Mutex<Tail>>,
    reader: Option<JoinHandle<()>>,
}

/// The last bytes that a command has written.
#[derive(Debug, Default)]
struct Tail {
    bytes: VecDeque<u8>,
}

/// Number of bytes of a command's output that are kept, and how many lines and characters of them an error shows.
const KEPT_BYTES: usize = 8 << 10;
const SHOWN_LINES: usize = 16;
const SHOWN_CHARS: usize = 200;
/// How long the end of the output is waited for, after the end of the command.
const OUTPUT_END: Duration = Duration::from_secs(1);

impl CommandLine {
    /// Splits a command line as a shell does. Nothing is expanded, because no shell runs it.
    pub(crate) fn parse(flag: &'static str, text: &str) -> Result<Self, CliError> {
        let words = shlex::split(text)
            .ok_or_else(|| CliError::usage(format_args!("{flag}: a quote in `{text}` is not closed; close it")))?;
        if words.is_empty() {
            return Err(CliError::usage(format_args!(
                "{flag}: the command is empty; expected one such as 'node client.mjs'"
            )));
        }
        Ok(Self { flag, text: text.to_owned(), words })
    }
}

impl Program {
    /// Starts a command with these variables in its environment.
    pub(super) fn start(line: &CommandLine, variables: &[(&str, String)]) -> Result<Self, CliError> {
        let CommandLine { flag, text, words } = line;
        let cannot = |source| CliError::io(format_args!("{flag}: cannot start the command"), source);
        let mut command = Command::new(this_program().map_err(cannot)?);
        command.arg(GUARD).arg("--").args(words);
        command.envs(variables.iter().map(|(name, value)| (name, value)));
        #[cfg(unix)]
        // Ctrl-C must reach only the drill, which then ends the command.
        std::os::unix::process::CommandExt::process_group(&mut command, 0);
        let piped = command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut guard = piped.spawn().map_err(cannot)?;
        let output = Arc::new(Mutex::new(Tail::default()));
        let reader = guard.stderr.take().map(|pipe| thread::spawn(read_into(pipe, Arc::clone(&output))));
        // From here on, an error drops the program and thereby ends it.
        let mut program = Self { flag, text: text.clone(), guard, process: None, output, reader };
        let mut first = String::new();
        if let Some(stdout) = program.guard.stdout.take() {
            BufReader::new(stdout).read_line(&mut first).map_err(cannot)?;
        }
        program.process = first.trim().parse().ok();
        Ok(program)
    }

    /// Returns how the command has ended; `None` if it runs.
    pub(super) fn ended(&mut self) -> Result<Option<ExitStatus>, CliError> {
        let ended = self.guard.try_wait();
        ended.map_err(|source| CliError::io(format_args!("{}: cannot wait for the command", self.flag), source))
    }

    /// Returns an error about the command, with the end of its output. If the command has ended, call
    /// [`end`](Self::end) first.
    pub(super) fn error(&self, what: impl fmt::Display) -> CliError {
        let output = self.output.lock().unwrap_or_else(PoisonError::into_inner).shown();
        let wrote = if output.is_empty() { "it wrote nothing".to_owned() } else { format!("it wrote: {output}") };
        CliError::usage(format_args!("{}: `{}` {what}; {wrote}", self.flag, self.text))
    }

    /// Kills the process group of the command, and waits until its output has been read.
    pub(super) fn end(&mut self) {
        // The guard kills the group when its standard input is closed.
        drop(self.guard.stdin.take());
        let _ = self.guard.wait();
        // A process that has left the group may keep the pipe open.
        let since = Instant::now();
        if let Some(reader) = self.reader.take() {
            while !reader.is_finished() && since.elapsed() < OUTPUT_END {
                thread::sleep(Duration::from_millis(1));
            }
        }
    }
}

impl Drop for Program {
    fn drop(&mut self) {
        self.end();
    }
}

fn read_into(mut pipe: ChildStderr, output: Arc<Mutex<Tail>>) -> impl FnOnce() {
    move || {
        let mut buffer = [0; 4 << 10];
        loop {
            match pipe.read(&mut buffer) {
                Ok(0) => return,
                Ok(read) => output.lock().unwrap_or_else(PoisonError::into_inner).push(&buffer[..read]),
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(_) => return,
            }
        }
    }
}

impl Tail {
    fn push(&mut self, bytes: &[u8]) {
        self.bytes.extend(bytes);
        let excess = self.bytes.len().saturating_sub(KEPT_BYTES);
        self.bytes.drain(..excess);
    }

    /// Returns the last lines on one line, without control characters.
    fn shown(&self) -> String {
        let bytes: Vec<u8> = self.bytes.iter().copied().collect();
        let text = String::from_utf8_lossy(&bytes);
        let lines: Vec<&str> = text.lines().map(str::trim_end).filter(|line| !line.trim().is_empty()).collect();
        let last = lines.iter().skip(lines.len().saturating_sub(SHOWN_LINES));
        let shown = last.map(|line| {
            let clean = line.chars().map(|c| if Outside::shows(c) { c } else { ' ' });
            clean.take(SHOWN_CHARS).collect::<String>()
        });
        shown.collect::<Vec<_>>().join(" | ")
    }
}

/// Run a command in a process group of its own, which is killed when standard input is closed or the command ends
#[derive(Args, Debug)]
pub struct GuardArgs {
    /// The command and its arguments
    #[arg(required = true, trailing_var_arg = true, allow_hyphen_values = true)]
    command: Vec<OsString>,
}

/// The name of the subcommand.
const GUARD: &str = "drill-guard";

/// Exit statuses of shells for a command that does not exist, and for one that cannot be started.
const NOT_FOUND: u8 = 127;
const NOT_STARTED: u8 = 126;

/// Runs a command until it ends or standard input is closed. Prints the number of its process; all output of the
/// command goes to standard error.
///
/// Standard input is closed when the drill ends in any way, also by SIGKILL, so no process of the group outlives it.
pub fn guard(args: &GuardArgs) -> Result<ExitCode, CliError> {
    let cannot = |source| CliError::io("cannot guard a command of the drill", source);
    let (program, rest) = args.command.split_first().ok_or_else(|| CliError::usage("no command is given"))?;
    let mut command = Command::new(program);
    command.args(rest).stdin(Stdio::null()).stdout(standard_error().map_err(cannot)?);
    #[cfg(unix)]
    std::os::unix::process::CommandExt::process_group(&mut command, 0);
    let mut child = match command.spawn() {
        Ok(child) => child,
        Err(error) => {
            eprintln!("cannot start `{}`: {error}", program.to_string_lossy());
            let is_missing = error.kind() == io::ErrorKind::NotFound;
            return Ok(ExitCode::from(if is_missing { NOT_FOUND } else { NOT_STARTED }));
        }
    };
    let process = child.id();
    print(format!("{process}\n").as_bytes())?;
    thread::spawn(move || {
        // Nothing is written to it.
        let _ = io::copy(&mut io::stdin().lock(), &mut io::sink());
        kill_group(process);
    });
    let status = child.wait().map_err(cannot)?;
    // What the command has started and left behind.
    kill_group(process);
    Ok(exit_code(status))
}

/// Returns a handle of standard error, for the output of the command.
fn standard_error() -> io::Result<Stdio> {
    #[cfg(unix)]
    let owned = std::os::fd::AsFd::as_fd(&io::stderr()).try_clone_to_owned()?;
    #[cfg(windows)]
    let owned = std::os::windows::io::AsHandle::as_handle(&io::stderr()).try_clone_to_owned()?;
    Ok(Stdio::from(owned))
}

#[cfg(unix)]
fn kill_group(leader: u32) {
    use rustix::process::{Pid, Signal, kill_process_group};
    if let Some(group) = i32::try_from(leader).ok().and_then(Pid::from_raw) {
        // Fails if no process of the group is left.
        let _ = kill_process_group(group, Signal::KILL);
    }
}

/// Ends a process with all that it has started, as there are no process groups.
#[cfg(not(unix))]
fn kill_group(leader: u32) {
    // Fails if the process has ended.
    let _ = Command::new("taskkill")
        .args(["/T", "/F", "/PID", &leader.to_string()])
        .stderr(Stdio::null())
        .stdout(Stdio::null())
        .status();
}

fn exit_code(status: ExitStatus) -> ExitCode {
    #[cfg(unix)]
    if let Some(signal) = std::os::unix::process::ExitStatusExt::signal(&status) {
        return ExitCode::from(u8::try_from(128 + signal).unwrap_or(u8::MAX));
    }
    // Windows has codes of 32 bits.
    ExitCode::from(status.code().unwrap_or(i32::MAX).try_into().unwrap_or(u8::MAX))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_output_that_is_kept_and_shown_is_bounded() {
        let mut tail = Tail::default();
        for line in 0..5_000 {
            tail.push(format!("line {line}\x1b[31m {}\r\n\n", "x".repeat(300)).as_bytes());
        }
        assert_eq!(tail.bytes.len(), KEPT_BYTES);
        let shown = tail.shown();
        assert!(shown.starts_with("line 4984 [31m xx") && shown.contains(" | line 4999"), "{shown}");
        assert!(shown.len() <= SHOWN_LINES * (SHOWN_CHARS + 3), "{}", shown.len());
        assert!(!shown.chars().any(char::is_control));
    }

    #[test]
    fn a_command_line_is_split_into_words_and_never_expanded() {
        let line = CommandLine::parse("--client", "node 'a b.mjs' $HOME").unwrap();
        assert_eq!(line.words, ["node", "a b.mjs", "$HOME"]);
        for (text, message) in [("node 'a", "not closed"), ("  ", "empty")] {
            let error = CommandLine::parse("--client", text).unwrap_err().to_string();
            assert!(error.contains(message), "{error}");
        }
    }
}
