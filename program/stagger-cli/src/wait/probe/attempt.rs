use core::time::Duration;
use std::fs;
use std::path::PathBuf;
use std::time::SystemTime;

use stagger_terminal::output::error::CliError;
use tokio::task::spawn_blocking;
use tokio::time::timeout;

use super::http::HttpProbe;
use super::network;
#[cfg(unix)]
use super::process;
use crate::wait::failure::{Failure, Proof};
use crate::wait::settings::{FileContent, Settings};
use crate::wait::target::Target;

/// What an attempt has found, if the target is ready: the state of a file, which `--stable` compares.
pub(crate) type Ready = Option<FileState>;

/// How a target is asked, with what attempts share.
#[derive(Debug)]
pub(crate) struct Probe {
    kind: Kind,
    limit: Duration,
    gone: bool,
}

#[derive(Debug)]
enum Kind {
    Tcp {
        host: String,
        port: u16,
    },
    Http(Box<HttpProbe>),
    File(FileProbe),
    #[cfg(unix)]
    Socket(PathBuf),
    #[cfg(unix)]
    Process(process::ProcessProbe),
    #[cfg(unix)]
    Command(String),
}

impl Probe {
    /// Prepares the attempts for a target. Must be called within the runtime.
    pub(crate) fn new(target: &Target, settings: &Settings<'_>) -> Result<Self, CliError> {
        let kind = match target {
            Target::Tcp { host, port } => Kind::Tcp { host: host.clone(), port: *port },
            Target::Http(url) => Kind::Http(Box::new(HttpProbe::new(url, &settings.http)?)),
            Target::File(path) => Kind::File(FileProbe { path: path.clone(), content: settings.file_content }),
            #[cfg(unix)]
            Target::Socket(path) => Kind::Socket(path.clone()),
            #[cfg(unix)]
            Target::Process(pid) => Kind::Process(process::ProcessProbe::new(*pid)),
            #[cfg(unix)]
            Target::Command(command) => Kind::Command(command.clone()),
            #[cfg(not(unix))]
            _ => return Err(CliError::usage(format_args!("{target}: this kind of target requires Unix"))),
        };
        Ok(Self { kind, limit: settings.attempt_timeout, gone: settings.gone })
    }

    /// Makes one attempt.
    pub(crate) async fn check(&self) -> Result<Ready, Failure> {
        let checked = timeout(self.limit, self.ask()).await.unwrap_or_else(|_| Err(self.no_answer()));
        if self.gone { opposite(checked) } else { checked }
    }

    fn no_answer(&self) -> Failure {
        match &self.kind {
            Kind::Http(http) => http.no_answer(self.limit),
            _ => Failure::no_answer(self.limit),
        }
    }

    async fn ask(&self) -> Result<Ready, Failure> {
        match &self.kind {
            Kind::Tcp { host, port } => network::connect(host, *port).await.map(|()| None),
            Kind::Http(http) => http.ask().await.map(|()| None),
            Kind::File(file) => file.look().await.map(Some),
            #[cfg(unix)]
            Kind::Socket(path) => network::connect_to_socket(path).await.map(|()| None),
            #[cfg(unix)]
            Kind::Process(process) => process.wait_for_end(self.limit).await.map(|()| None),
            #[cfg(unix)]
            Kind::Command(command) => process::run_command(command).await.map(|()| None),
        }
    }
}

#[derive(Debug)]
struct FileProbe {
    path: PathBuf,
    content: FileContent,
}

/// What tells whether a file is being written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct FileState {
    bytes: u64,
    modified: Option<SystemTime>,
}

impl FileProbe {
    /// Looks at the file, which may be on a file system that does not answer, in a thread. It is not opened, so a FIFO
    /// does not block.
    async fn look(&self) -> Result<FileState, Failure> {
        let path = self.path.clone();
        let looked = spawn_blocking(move || fs::metadata(path)).await;
        let metadata =
            looked.map_err(|error| Failure::unknown(error.to_string()))?.map_err(|error| Failure::io(&error))?;
        match (self.content, metadata.len()) {
            (FileContent::NonEmpty, 0) => Err(Failure::new("is empty")),
            (_, bytes) => Ok(FileState { bytes, modified: metadata.modified().ok() }),
        }
    }
}

/// Returns the result for `--gone`.
fn opposite(checked: Result<Ready, Failure>) -> Result<Ready, Failure> {
    match checked {
        Ok(_) => Err(Failure::new("still there")),
        Err(failure) if failure.proof == Proof::Certain => Ok(None),
        Err(failure) => Err(failure),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_proof_counts_as_gone() {
        assert_eq!(opposite(Ok(None)), Err(Failure::new("still there")));
        assert_eq!(opposite(Err(Failure::new("connection refused"))), Ok(None));
        let unknown = Failure::no_answer(Duration::from_secs(5));
        assert_eq!(opposite(Err(unknown.clone())), Err(unknown));
    }
}
