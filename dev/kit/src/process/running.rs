//! A child process that runs, and what it left when it ended.

use core::time::Duration;
use std::ffi::OsString;
use std::io::{Error, ErrorKind, Result, Write};
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::process::{Child, ChildStdin, Command, ExitStatus, Stdio};
use std::sync::{Mutex, PoisonError};
use std::time::Instant;
use std::{fmt, thread};

use rustix::process::{Pid, Signal, WaitId, WaitIdOptions, kill_process, waitid};

use crate::process::capture::{Capture, NoLine, Stream};
use crate::process::process_tree::{LeakedProcess, ProcessTree};
use crate::process::program::Input;

/// Time that descendants get to exit after the program before they count as leaked.
const GRACE: Duration = Duration::from_millis(100);

/// Time limit for reading the remaining output when all writers are gone.
const DRAIN: Duration = Duration::from_secs(10);

/// A running child. Dropping it kills the child, its process group and all its other descendants.
#[derive(Debug)]
pub struct Running {
    child: Child,
    pid: Pid,
    tree: ProcessTree,
    input: Option<ChildStdin>,
    stdout: Capture,
    stderr: Capture,
    /// Exit status once reaped; its PID may then belong to another process and must not be signaled.
    reaped: Option<ExitStatus>,
}

/// The exit status and output of a finished program.
#[derive(Debug)]
#[non_exhaustive]
pub struct Finished {
    /// Exit status.
    pub status: ExitStatus,
    /// Standard output.
    pub stdout: Vec<u8>,
    /// Standard error.
    pub stderr: Vec<u8>,
    /// Descendants that were still alive 100 ms after the end of the program. They have been killed.
    pub leaked: Vec<LeakedProcess>,
}

impl Running {
    pub(crate) fn new(mut child: Child, input: Input, mark: OsString) -> Result<Self> {
        // Cannot fail: the PID is positive, and both pipes were requested.
        let missing = || Error::other("the child has no PID or no pipes");
        let pid = Pid::from_raw(child.id().cast_signed()).ok_or_else(missing)?;
        watch_group(pid);
        let stdout = Capture::start(child.stdout.take().ok_or_else(missing)?);
        let stderr = Capture::start(child.stderr.take().ok_or_else(missing)?);
        let mut stdin = child.stdin.take();
        if let Input::Bytes(bytes) = input
            && let Some(mut pipe) = stdin.take()
        {
            // In a separate thread, because a child that does not read must not block the test. A write error is
            // ignored, because a child may close the pipe early.
            thread::spawn(move || pipe.write_all(&bytes));
        }
        Ok(Self { tree: ProcessTree::new(pid, mark), child, pid, input: stdin, stdout, stderr, reaped: None })
    }

    /// Returns the PID, which is also the process group ID.
    #[must_use]
    pub fn id(&self) -> u32 {
        self.child.id()
    }

    /// Waits for the next line of standard output and returns it without its newline.
    ///
    /// # Errors
    /// `TimedOut` if no line arrives within `limit`, `UnexpectedEof` if the output has ended; both with the output so
    /// far.
    pub fn next_line(&mut self, limit: Duration) -> Result<String> {
        self.stdout.next_line(limit).map_err(|reason| self.no_line(reason, limit))
    }

    /// Reads lines until one contains `wanted`, and returns it.
    ///
    /// # Errors
    /// As [`next_line`](Self::next_line).
    pub fn wait_for(&mut self, stream: Stream, wanted: &str, limit: Duration) -> Result<String> {
        let started = Instant::now();
        loop {
            let left = limit.saturating_sub(started.elapsed());
            let lines = match stream {
                Stream::Stdout => &mut self.stdout,
                Stream::Stderr => &mut self.stderr,
            };
            match lines.next_line(left) {
                Ok(line) if line.contains(wanted) => return Ok(line),
                Ok(_) => {}
                Err(reason) => {
                    let error = self.no_line(reason, limit);
                    return Err(Error::new(error.kind(), format!("waited for `{wanted}`: {error}")));
                }
            }
        }
    }

    /// Writes to its standard input, which [`Program::input_open`](crate::Program::input_open) has left open.
    ///
    /// # Errors
    /// `BrokenPipe` if the child has closed its input, or the input is not open.
    pub fn write(&mut self, bytes: &[u8]) -> Result<()> {
        self.input.as_mut().ok_or(ErrorKind::BrokenPipe)?.write_all(bytes)
    }

    /// Closes its standard input.
    pub fn end_input(&mut self) {
        self.input = None;
    }

    /// Sends a signal to the program itself, not to its process group.
    ///
    /// # Errors
    /// `NotFound` if the program has ended.
    pub fn signal(&self, signal: Signal) -> Result<()> {
        if self.reaped.is_some() {
            return Err(Error::new(ErrorKind::NotFound, "the program has ended"));
        }
        Ok(kill_process(self.pid, signal)?)
    }

    /// Returns whether the program is still running. A stopped program counts as running.
    #[must_use]
    pub fn is_running(&self) -> bool {
        self.reaped.is_none() && !self.has_exited()
    }

    /// Returns the live descendants.
    #[must_use]
    pub fn descendants(&self) -> Vec<LeakedProcess> {
        if self.reaped.is_some() { Vec::new() } else { self.tree.leaked() }
    }

    /// Returns all output of a stream so far, including lines already returned.
    #[must_use]
    pub fn text(&self, stream: Stream) -> String {
        match stream {
            Stream::Stdout => self.stdout.text(),
            Stream::Stderr => self.stderr.text(),
        }
    }

    /// Sends SIGKILL to the program and its descendants, and returns when all are gone.
    pub fn kill(&mut self) {
        if self.reaped.is_none() {
            self.tree.kill();
            forget_group(self.pid);
            self.reaped = self.child.wait().ok();
        }
    }

    /// Waits for the end of the program, for at most `limit`, and kills its leaked descendants.
    ///
    /// # Errors
    /// `TimedOut`, with the output so far, if it is still running then; it is killed.
    pub fn wait(mut self, limit: Duration) -> Result<Finished> {
        self.input = None;
        if self.reaped.is_none() && !is_true_within(limit, || self.has_exited()) {
            let message = format!("still running after {limit:?}; {}", self.output());
            return Err(Error::new(ErrorKind::TimedOut, message));
        }
        let mut leaked = self.descendants();
        is_true_within(GRACE, || {
            leaked = self.descendants();
            leaked.is_empty()
        });
        // Leaked processes hold the pipes open.
        self.kill();
        let status = match self.reaped {
            Some(status) => status,
            None => self.child.wait()?,
        };
        Ok(Finished { status, stdout: self.stdout.finish(DRAIN), stderr: self.stderr.finish(DRAIN), leaked })
    }

    /// Returns whether the program has exited, without reaping it, so that its PID stays valid until all descendants
    /// are killed.
    fn has_exited(&self) -> bool {
        let options = WaitIdOptions::EXITED | WaitIdOptions::NOHANG | WaitIdOptions::NOWAIT;
        matches!(waitid(WaitId::Pid(self.pid), options), Ok(Some(_)))
    }

    fn no_line(&self, reason: NoLine, limit: Duration) -> Error {
        match reason {
            NoLine::Ended => {
                // The program is usually about to exit, and its last output says why.
                is_true_within(GRACE, || self.has_exited());
                let message = format!("no more lines; {}", self.output());
                Error::new(ErrorKind::UnexpectedEof, message)
            }
            NoLine::TimedOut => {
                let message = format!("no line within {limit:?}; {}", self.output());
                Error::new(ErrorKind::TimedOut, message)
            }
        }
    }

    /// Formats the ends of both streams for messages. Reads the streams of a finished program to their end first.
    pub(crate) fn output(&self) -> String {
        if !self.is_running() {
            self.stdout.wait_for_end(GRACE);
            self.stderr.wait_for_end(GRACE);
        }
        format!("stdout: {:?}; stderr: {:?}", tail(&self.stdout.text()), tail(&self.stderr.text()))
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        self.kill();
    }
}

impl Finished {
    /// Returns the exit code; `None` if the program was killed by a signal.
    #[must_use]
    pub fn code(&self) -> Option<i32> {
        self.status.code()
    }

    /// Returns the number of the signal that killed the program; `None` if it exited.
    #[must_use]
    pub fn signal(&self) -> Option<i32> {
        self.status.signal()
    }

    /// Returns standard output as text, with invalid UTF-8 replaced.
    #[must_use]
    pub fn stdout_text(&self) -> String {
        String::from_utf8_lossy(&self.stdout).into_owned()
    }

    /// Returns standard error as text, with invalid UTF-8 replaced.
    #[must_use]
    pub fn stderr_text(&self) -> String {
        String::from_utf8_lossy(&self.stderr).into_owned()
    }
}

impl fmt::Display for Finished {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (stdout, stderr) = (self.stdout_text(), self.stderr_text());
        write!(f, "{}; stdout: {:?}; stderr: {:?}", self.status, tail(&stdout), tail(&stderr))
    }
}

/// Returns the end of a text for messages: it contains the reason, and the whole text may have a hundred megabytes.
fn tail(text: &str) -> &str {
    const SHOWN: usize = 2000;
    let start = text.ceil_char_boundary(text.len().saturating_sub(SHOWN));
    &text[start..]
}

/// Polling interval for a condition without a notification: short compared with a test, long enough not to use much
/// CPU.
const INTERVAL: Duration = Duration::from_millis(2);

/// Polls until `poll` returns a value; returns `None` when `limit` has elapsed. Polls at least once.
pub(crate) fn poll_until<T>(limit: Duration, mut poll: impl FnMut() -> Option<T>) -> Option<T> {
    let started = Instant::now();
    loop {
        if let Some(value) = poll() {
            return Some(value);
        }
        if started.elapsed() >= limit {
            return None;
        }
        thread::sleep(INTERVAL);
    }
}

/// Polls until `is_true` is, for at most `limit`. Returns whether it was.
pub(crate) fn is_true_within(limit: Duration, mut is_true: impl FnMut() -> bool) -> bool {
    poll_until(limit, || if is_true() { Some(()) } else { None }).is_some()
}

// A child outlives a test that is itself killed: no destructor runs, and an interrupt from the terminal reaches only
// the test's own process group. So every process that starts children has a watchdog, a small shell with a list of
// their process groups. It detects the death of the test by the end of its input, which the kernel closes.

/// Maintains a list of process groups, and kills the remaining ones at the end of its input.
const SCRIPT: &str = r#"
while read -r sign group; do
    case $sign in
        +) groups="$groups $group" ;;
        -) groups=$(for other in $groups; do [ "$other" = "$group" ] || echo "$other"; done | tr '\n' ' ') ;;
    esac
done
for group in $groups; do kill -s KILL -- "-$group"; done
"#;

static WATCHDOG: Mutex<Option<ChildStdin>> = Mutex::new(None);

/// Registers `group` to be killed if this process dies before [`forget`] is called.
fn watch_group(group: Pid) {
    tell_watchdog('+', group);
}

/// Unregisters `group`. Call it before the leader is reaped, while its PID cannot be reused.
fn forget_group(group: Pid) {
    tell_watchdog('-', group);
}

/// Sends a command to the watchdog. Errors are ignored: without a watchdog, tests that are not killed still clean up.
fn tell_watchdog(sign: char, group: Pid) {
    let mut watchdog = WATCHDOG.lock().unwrap_or_else(PoisonError::into_inner);
    if watchdog.is_none() {
        *watchdog = start_watchdog();
    }
    if let Some(input) = watchdog.as_mut() {
        let _ = input.write_all(format!("{sign} {group}\n").as_bytes());
    }
}

/// Starts the watchdog.
fn start_watchdog() -> Option<ChildStdin> {
    let mut shell = Command::new("sh");
    // In its own process group, which an interrupt from the terminal does not reach.
    shell.args(["-c", SCRIPT]).process_group(0);
    shell.stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::null());
    shell.spawn().ok()?.stdin.take()
}
