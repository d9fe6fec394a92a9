use core::net::{Ipv4Addr, SocketAddr};
use std::io::{BufRead, BufReader, Read, Write};
use std::path::PathBuf;
use std::process::{Child, ChildStdout, Command, Stdio};

use serde::de::DeserializeOwned;

use super::serve::ServerStatus;
use stagger_terminal::output::error::CliError;

/// The drill's own server: this program in a separate process, which can be killed and which ends when the drill does.
#[derive(Debug)]
pub(super) struct Server {
    child: Child,
    stdout: BufReader<ChildStdout>,
    pub(super) address: SocketAddr,
}

impl Server {
    /// Starts the server with this command line of the program. It listens when this returns.
    pub(super) fn start(words: Vec<String>) -> Result<Self, CliError> {
        let cannot = |source| CliError::io("cannot start the drill's server", source);
        let mut command = Command::new(this_program().map_err(cannot)?);
        command.args(words);
        #[cfg(unix)]
        // Ctrl-C must reach only the drill, which then stops the server.
        std::os::unix::process::CommandExt::process_group(&mut command, 0);
        let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().map_err(cannot)?;
        let Some(stdout) = child.stdout.take() else { return Err(cannot(std::io::ErrorKind::BrokenPipe.into())) };
        // From here on, an error drops the server and thereby kills it.
        let address = SocketAddr::new(Ipv4Addr::LOCALHOST.into(), 0);
        let mut server = Self { child, stdout: BufReader::new(stdout), address };
        let mut line = String::new();
        server.stdout.read_line(&mut line).map_err(cannot)?;
        server.address = line.trim().parse().map_err(|_| {
            // The server has printed the reason to standard error.
            cannot(std::io::Error::other("it status before it was listening"))
        })?;
        Ok(server)
    }

    /// Kills the server, with SIGKILL on Unix. Its connections are closed when this returns.
    pub(super) fn kill(mut self) -> Result<(), CliError> {
        let cannot = |source| CliError::io("cannot kill the drill's server", source);
        self.child.kill().map_err(cannot)?;
        let status = self.child.wait().map_err(cannot)?;
        #[cfg(unix)]
        if std::os::unix::process::ExitStatusExt::signal(&status) != Some(rustix::process::Signal::KILL.as_raw()) {
            return Err(cannot(std::io::Error::other(format!("it had already ended: {status}"))));
        }
        #[cfg(not(unix))]
        let _ = status;
        Ok(())
    }

    /// Returns the number of its process.
    pub(super) fn process(&self) -> u32 {
        self.child.id()
    }

    /// Writes to the server's standard input.
    pub(super) fn tell(&mut self, text: &str) -> Result<(), CliError> {
        let written = self.child.stdin.as_mut().map_or(Ok(()), |stdin| stdin.write_all(text.as_bytes()));
        written.map_err(|source| CliError::io("cannot write to the drill's server", source))
    }

    /// Returns the status of the server, which may take as long as it takes to be scheduled.
    pub(super) fn status(&mut self) -> Result<ServerStatus, CliError> {
        self.tell("\n")?;
        let mut line = String::new();
        let read = self.stdout.read_line(&mut line);
        let status = read.and_then(|_| serde_json::from_str(&line).map_err(Into::into));
        status.map_err(|source| CliError::io("cannot read the status of the drill's server", source))
    }

    /// Ends the server and returns what it counted.
    pub(super) fn report<T: DeserializeOwned>(mut self) -> Result<T, CliError> {
        drop(self.child.stdin.take());
        let mut text = String::new();
        let read = self.stdout.read_to_string(&mut text);
        let served = read.and_then(|_| serde_json::from_str(&text).map_err(Into::into));
        served.map_err(|source| CliError::io("cannot read the counts of the drill's server", source))
    }
}

/// Returns the path of this program. On Linux it is valid even if the file has been replaced since the start.
pub(super) fn this_program() -> std::io::Result<PathBuf> {
    if cfg!(target_os = "linux") { Ok(PathBuf::from("/proc/self/exe")) } else { std::env::current_exe() }
}

impl Drop for Server {
    fn drop(&mut self) {
        // Both fail only if the process has already ended.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
