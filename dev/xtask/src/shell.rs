//! Runs other programs from the root of the workspace. Each command line is printed first, and a failure is an error.

use core::time::Duration;
use std::ffi::OsStr;
use std::io::{self, BufRead, BufReader, Read, Write};
use std::path::Path;
use std::process::{Command, ExitStatus, Stdio};
use std::sync::mpsc;
use std::time::Instant;
use std::{env, thread};

use crate::files::root;

/// A command line to run.
pub(crate) struct Shell(Command);

impl Shell {
    pub(crate) fn new(program: impl AsRef<OsStr>) -> Self {
        let mut command = Command::new(program);
        command.current_dir(root());
        // `cargo run` sets variables that describe this package. If they were inherited, build scripts of other
        // packages would see them, and cargo would build those packages again.
        for (name, _) in env::vars_os() {
            let name_bytes = name.as_encoded_bytes();
            if name_bytes.starts_with(b"CARGO_PKG_") || name_bytes.starts_with(b"CARGO_MANIFEST_") {
                command.env_remove(name);
            }
        }
        Self(command)
    }

    /// Creates a command of the cargo that runs this program, so that the toolchain stays the same.
    pub(crate) fn cargo(arguments: &str) -> Self {
        let cargo = env::var_os("CARGO").unwrap_or("cargo".into());
        Self::new(cargo).args(arguments.split_ascii_whitespace())
    }

    pub(crate) fn args<A: AsRef<OsStr>>(mut self, arguments: impl IntoIterator<Item = A>) -> Self {
        self.0.args(arguments);
        self
    }

    pub(crate) fn env(mut self, name: &str, value: impl AsRef<OsStr>) -> Self {
        self.0.env(name, value);
        self
    }

    /// Sets the working directory. Default: the root of the workspace.
    pub(crate) fn directory(mut self, directory: &Path) -> Self {
        self.0.current_dir(directory);
        self
    }

    /// Runs the command with its output on the terminal.
    pub(crate) fn run(mut self) -> Result {
        let line = self.announce();
        let status = self.0.status().map_err(|error| format!("cannot start `{line}`: {error}"))?;
        succeeded(&line, status)
    }

    /// Runs the command with its output on the terminal, and calls `on_line` for each line of both streams.
    pub(crate) fn watch(mut self, mut on_line: impl FnMut(&str)) -> Result {
        let line = self.announce();
        let mut child = self.0.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn()?;
        let (lines, received) = mpsc::channel();
        let streams = [
            child.stdout.take().map(|stream| forward(stream, io::stdout(), lines.clone())),
            child.stderr.take().map(|stream| forward(stream, io::stderr(), lines)),
        ];
        for line in received {
            on_line(&line);
        }
        for thread in streams.into_iter().flatten() {
            // A panic of the thread has printed its message.
            let _ = thread.join();
        }
        succeeded(&line, child.wait()?)
    }

    /// Runs the command with its output on the terminal, and kills it after `limit`.
    pub(crate) fn run_within(mut self, limit: Duration) -> Result {
        let line = self.announce();
        let mut child =
            self.0.stdin(Stdio::null()).spawn().map_err(|error| format!("cannot start `{line}`: {error}"))?;
        let started = Instant::now();
        loop {
            if let Some(status) = child.try_wait()? {
                return succeeded(&line, status);
            }
            if started.elapsed() > limit {
                child.kill()?;
                child.wait()?;
                return Err(format!("`{line}` did not finish within {} s", limit.as_secs()).into());
            }
            thread::sleep(Duration::from_millis(20));
        }
    }

    /// Runs the command and returns its standard output.
    pub(crate) fn output(mut self) -> Result<String> {
        let line = self.line();
        let output = self.0.output().map_err(|error| format!("cannot start `{line}`: {error}"))?;
        io::stderr().write_all(&output.stderr)?;
        succeeded(&line, output.status)?;
        Ok(String::from_utf8(output.stdout)?)
    }

    /// Runs the command without output; returns whether it could be started and succeeded.
    pub(crate) fn succeeds(mut self) -> bool {
        let quiet = self.0.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        quiet.status().is_ok_and(|status| status.success())
    }

    fn announce(&self) -> String {
        let line = self.line();
        eprintln!("$ {line}");
        line
    }

    /// Returns the command line for display.
    fn line(&self) -> String {
        let program = Path::new(self.0.get_program());
        let name = if program.is_absolute() { program.file_name() } else { None };
        let mut line = name.unwrap_or(program.as_os_str()).to_string_lossy().into_owned();
        for argument in self.0.get_args() {
            line += " ";
            line += &argument.to_string_lossy();
        }
        line
    }
}

/// Returns whether `program` is in `PATH`, or, if it is an absolute path, whether it exists.
pub(crate) fn is_installed(program: &str) -> bool {
    let path = env::var_os("PATH").unwrap_or_default();
    env::split_paths(&path).any(|directory| directory.join(program).is_file())
}

fn succeeded(line: &str, status: ExitStatus) -> Result {
    if status.success() { Ok(()) } else { Err(format!("`{line}` failed with {status}").into()) }
}

/// Copies a stream to the terminal, and sends each line of it.
fn forward(
    source: impl Read + Send + 'static,
    mut target: impl Write + Send + 'static,
    lines: mpsc::Sender<String>,
) -> thread::JoinHandle<()> {
    thread::spawn(move || {
        let mut source = BufReader::new(source);
        let mut line = Vec::new();
        while matches!(source.read_until(b'\n', &mut line), Ok(1..)) {
            // If the reader has closed its end, the command still has to run to completion.
            let _ = target.write_all(&line);
            let _ = target.flush();
            let _ = lines.send(String::from_utf8_lossy(&line).into_owned());
            line.clear();
        }
    })
}

/// An error is a message for the terminal.
pub(crate) type Error = Box<dyn core::error::Error>;
pub(crate) type Result<T = ()> = core::result::Result<T, Error>;

/// Refuses arguments, for commands that have none.
pub(crate) fn no_arguments(arguments: &[std::ffi::OsString]) -> Result {
    if arguments.is_empty() { Ok(()) } else { Err("takes no arguments".into()) }
}
