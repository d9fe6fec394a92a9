use core::time::Duration;
use std::ffi::OsString;
use std::fmt;
use std::io::{Error, ErrorKind, Result, Write};
use std::os::unix::process::ExitStatusExt;
use std::process::{Child, ChildStdin, ExitStatus};
use std::thread;
use std::time::Instant;

use rustix::process::{Pid, Signal, WaitId, WaitIdOptions, kill_process, waitid};

use crate::capture::{Capture, NoLine, Stream};
use crate::poll::poll_until;
use crate::process_tree::{LeakedProcess, ProcessTree};
use crate::program::Input;
use crate::watchdog;

/// How long whatever a program has started may take to follow it into its end before it counts as
/// left over.
const GRACE: Duration = Duration::from_millis(100);

/// How long the reading of what was already written may take once nobody is left who could write.
const DRAIN: Duration = Duration::from_secs(10);

/// A running child. Dropping it kills it, its process group and everything else that it started.
#[derive(Debug)]
pub struct Running {
    child: Child,
    pid: Pid,
    tree: ProcessTree,
    input: Option<ChildStdin>,
    stdout: Capture,
    stderr: Capture,
    /// Once reaped, the number may belong to somebody else and must not be signalled any more.
    reaped: Option<ExitStatus>,
}

/// How a program ended, and what it wrote.
#[derive(Debug)]
#[non_exhaustive]
pub struct Finished {
    /// Its exit status.
    pub status: ExitStatus,
    /// Its standard output.
    pub stdout: Vec<u8>,
    /// Its standard error.
    pub stderr: Vec<u8>,
    /// Processes that it had started and that were still alive 100 ms after its end. They have been
    /// killed.
    pub leaked: Vec<LeakedProcess>,
}

impl Running {
    pub(crate) fn new(mut child: Child, input: Input, mark: OsString) -> Result<Self> {
        // The standard library gives a positive number here, and both pipes were asked for.
        let missing = || Error::other("the child has no id or no pipes");
        let pid = Pid::from_raw(child.id().cast_signed()).ok_or_else(missing)?;
        watchdog::watch(pid);
        let stdout = Capture::start(child.stdout.take().ok_or_else(missing)?);
        let stderr = Capture::start(child.stderr.take().ok_or_else(missing)?);
        let mut stdin = child.stdin.take();
        if let Input::Bytes(bytes) = input
            && let Some(mut pipe) = stdin.take()
        {
            // In a thread of its own: a child that reads nothing must not stop the test. A child
            // that closes the pipe early is within its rights.
            thread::spawn(move || pipe.write_all(&bytes));
        }
        Ok(Self { tree: ProcessTree::new(pid, mark), child, pid, input: stdin, stdout, stderr, reaped: None })
    }

    /// Its process id, which is also the id of its process group.
    #[must_use]
    pub fn id(&self) -> u32 {
        self.child.id()
    }

    /// The next line of its standard output, without the line end.
    ///
    /// # Errors
    /// `TimedOut` if none came within `limit`, `UnexpectedEof` if the output has ended; both with
    /// what the program has written so far.
    pub fn next_line(&mut self, limit: Duration) -> Result<String> {
        self.stdout.next_line(limit).map_err(|reason| self.no_line(reason, limit))
    }

    /// Reads on until a line contains `wanted`, and returns that line.
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

    /// Writes to its standard input, which [`Program::input_open`](crate::Program::input_open) left
    /// open.
    ///
    /// # Errors
    /// `BrokenPipe` if the child does not read any more, or the input is not open.
    pub fn write(&mut self, bytes: &[u8]) -> Result<()> {
        self.input.as_mut().ok_or(ErrorKind::BrokenPipe)?.write_all(bytes)
    }

    /// Ends its standard input.
    pub fn end_input(&mut self) {
        self.input = None;
    }

    /// Sends a signal to the program itself, not to its group.
    ///
    /// # Errors
    /// If the program has ended.
    pub fn signal(&self, signal: Signal) -> Result<()> {
        if self.reaped.is_some() {
            return Err(Error::new(ErrorKind::NotFound, "the program has ended"));
        }
        Ok(kill_process(self.pid, signal)?)
    }

    /// Whether it still runs. A stopped program runs.
    #[must_use]
    pub fn is_running(&self) -> bool {
        self.reaped.is_none() && !self.has_exited()
    }

    /// What it has started and is alive now.
    #[must_use]
    pub fn descendants(&self) -> Vec<LeakedProcess> {
        if self.reaped.is_some() { Vec::new() } else { self.tree.leaked() }
    }

    /// All that it has written to a stream so far, including lines already handed out.
    #[must_use]
    pub fn text(&self, stream: Stream) -> String {
        match stream {
            Stream::Stdout => self.stdout.text(),
            Stream::Stderr => self.stderr.text(),
        }
    }

    /// SIGKILL to it and to everything that it has started; returns when none of them is left.
    pub fn kill(&mut self) {
        if self.reaped.is_none() {
            self.tree.kill();
            watchdog::forget(self.pid);
            self.reaped = self.child.wait().ok();
        }
    }

    /// Waits for its end, at most `limit`, and kills what it leaves behind.
    ///
    /// # Errors
    /// `TimedOut`, with what it has written so far, if it still runs then; it is killed.
    pub fn wait(mut self, limit: Duration) -> Result<Finished> {
        self.input = None;
        if self.reaped.is_none() && poll_until(limit, || self.has_exited().then_some(())).is_none() {
            let message = format!("still running after {limit:?}; {}", self.output());
            return Err(Error::new(ErrorKind::TimedOut, message));
        }
        let mut leaked = self.descendants();
        poll_until(GRACE, || {
            leaked = self.descendants();
            leaked.is_empty().then_some(())
        });
        // What is left holds the pipes open.
        self.kill();
        let status = self.reaped.map_or_else(|| self.child.wait(), Ok)?;
        Ok(Finished { status, stdout: self.stdout.finish(DRAIN), stderr: self.stderr.finish(DRAIN), leaked })
    }

    /// Looks without reaping, so that its number stays its own until the whole family has been
    /// dealt with.
    fn has_exited(&self) -> bool {
        let options = WaitIdOptions::EXITED | WaitIdOptions::NOHANG | WaitIdOptions::NOWAIT;
        matches!(waitid(WaitId::Pid(self.pid), options), Ok(Some(_)))
    }

    fn no_line(&self, reason: NoLine, limit: Duration) -> Error {
        match reason {
            NoLine::Ended => {
                // Most often it is about to end altogether, and its last words tell why.
                poll_until(GRACE, || self.has_exited().then_some(()));
                let message = format!("no more lines; {}", self.output());
                Error::new(ErrorKind::UnexpectedEof, message)
            }
            NoLine::TimedOut => {
                let message = format!("no line within {limit:?}; {}", self.output());
                Error::new(ErrorKind::TimedOut, message)
            }
        }
    }

    /// The ends of both streams, for messages. Those of a program that has ended are read out first.
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
    /// Its exit code; `None` if a signal ended it.
    #[must_use]
    pub fn code(&self) -> Option<i32> {
        self.status.code()
    }

    /// The number of the signal that ended it.
    #[must_use]
    pub fn signal(&self) -> Option<i32> {
        self.status.signal()
    }

    /// Its standard output as text; what is not UTF-8 is replaced.
    #[must_use]
    pub fn stdout_text(&self) -> String {
        String::from_utf8_lossy(&self.stdout).into_owned()
    }

    /// Its standard error as text; what is not UTF-8 is replaced.
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

/// The end of a text, for messages: the reason is there, and the whole of it may be a hundred
/// megabytes.
fn tail(text: &str) -> &str {
    const SHOWN: usize = 2000;
    let start = text.ceil_char_boundary(text.len().saturating_sub(SHOWN));
    &text[start..]
}
