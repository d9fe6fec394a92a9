use core::net::{Ipv4Addr, SocketAddr};
use std::io::{BufRead, BufReader, Read};
use std::path::PathBuf;
use std::process::{Child, ChildStdout, Command, Stdio};
use std::time::{SystemTime, UNIX_EPOCH};

use stagger_sim::storm::ServerCounts;

use crate::error::CliError;

/// The drill's own server: this program again, in a process that can be killed, and that ends when this one does.
#[derive(Debug)]
pub(super) struct Server {
    child: Child,
    said: BufReader<ChildStdout>,
    address: SocketAddr,
}

/// What a server is told.
#[derive(Clone, Copy, Debug)]
pub(super) struct Orders {
    pub(super) address: SocketAddr,
    pub(super) listen_backlog: u32,
    pub(super) door: Open,
}

/// Whom it lets in.
#[derive(Clone, Copy, Debug)]
pub(super) enum Open {
    /// Everyone at once: it is not the server's first life that is measured.
    Wide,
    /// So many a second, with so many waiting; and what it counts begins then.
    Narrow { rate: f64, backlog: u32, since: SystemTime },
}

impl Orders {
    /// For a first life, at an address that the system chooses.
    pub(super) const fn anywhere(listen_backlog: u32) -> Self {
        let address = SocketAddr::new(core::net::IpAddr::V4(Ipv4Addr::LOCALHOST), 0);
        Self { address, listen_backlog, door: Open::Wide }
    }
}

impl Server {
    /// Starts it. It listens when this returns.
    ///
    /// # Errors
    /// It does not start.
    pub(super) fn start(orders: &Orders) -> Result<Self, CliError> {
        let cannot = |source| CliError::io("cannot start the drill's server", source);
        let mut command = Command::new(this_program().map_err(cannot)?);
        command.arg("drill-server").arg(format!("--address={}", orders.address));
        command.arg(format!("--listen-backlog={}", orders.listen_backlog));
        if let Open::Narrow { rate, backlog, since } = orders.door {
            let since = since.duration_since(UNIX_EPOCH).unwrap_or_default().as_micros();
            command.arg(format!("--rate={rate}")).arg(format!("--backlog={backlog}")).arg(format!("--since={since}"));
        }
        #[cfg(unix)]
        // ^C is for the drill alone, which then ends it.
        std::os::unix::process::CommandExt::process_group(&mut command, 0);
        let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().map_err(cannot)?;
        let Some(said) = child.stdout.take() else { return Err(cannot(std::io::ErrorKind::BrokenPipe.into())) };
        // From here on it is killed if this does not go well.
        let mut server = Self { child, said: BufReader::new(said), address: orders.address };
        let mut line = String::new();
        server.said.read_line(&mut line).map_err(cannot)?;
        server.address = line.trim().parse().map_err(|_| {
            // It has said why, on standard error.
            cannot(std::io::Error::other("it ended before it listened"))
        })?;
        Ok(server)
    }

    /// Where it listens.
    pub(super) const fn address(&self) -> SocketAddr {
        self.address
    }

    /// Kills it as nothing else does, SIGKILL where there are signals. Its connections are closed when this returns.
    ///
    /// # Errors
    /// It had ended by itself.
    pub(super) fn kill(mut self) -> Result<(), CliError> {
        let cannot = |source| CliError::io("cannot kill the drill's server", source);
        self.child.kill().map_err(cannot)?;
        let ended = self.child.wait().map_err(cannot)?;
        #[cfg(unix)]
        if std::os::unix::process::ExitStatusExt::signal(&ended) != Some(rustix::process::Signal::KILL.as_raw()) {
            return Err(cannot(std::io::Error::other(format!("it ended by itself: {ended}"))));
        }
        #[cfg(not(unix))]
        let _ = ended;
        Ok(())
    }

    /// Has it end in peace, and say what it has seen.
    ///
    /// # Errors
    /// It does not say it.
    pub(super) fn report(mut self) -> Result<ServerCounts, CliError> {
        drop(self.child.stdin.take());
        let mut text = String::new();
        let read = self.said.read_to_string(&mut text);
        let served = read.and_then(|_| serde_json::from_str(&text).map_err(Into::into));
        served.map_err(|source| CliError::io("the drill's server does not say what it has seen", source))
    }

    fn end(&mut self) {
        // It has gone already, or is gone now.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// This program, also where its file has been replaced by a newer one since it was started.
fn this_program() -> std::io::Result<PathBuf> {
    if cfg!(target_os = "linux") { Ok(PathBuf::from("/proc/self/exe")) } else { std::env::current_exe() }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.end();
    }
}
