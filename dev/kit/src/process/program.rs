use core::sync::atomic::{AtomicU64, Ordering};
use core::time::Duration;
use std::env;
use std::ffi::{OsStr, OsString};
use std::io::{Error, ErrorKind, Result};
use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{self, Command, Stdio};

use crate::process::process_tree::TREE_VARIABLE;
use crate::process::running::{Finished, Running};
use crate::process::user::User;

/// A program with its arguments and environment, which can be started any number of times.
///
/// By default it inherits the environment and the working directory, and its standard input is empty.
#[derive(Clone, Debug)]
pub struct Program {
    path: PathBuf,
    arguments: Vec<OsString>,
    /// `None` removes the variable.
    environment: Vec<(OsString, Option<OsString>)>,
    directory: Option<PathBuf>,
    input: Input,
    user: Option<User>,
}

#[derive(Clone, Debug)]
pub(crate) enum Input {
    Empty,
    Bytes(Vec<u8>),
    Open,
}

impl Program {
    /// Creates a program at `path`; for one of the package's own binaries, `env!("CARGO_BIN_EXE_name")`.
    #[must_use]
    pub fn at(path: impl Into<PathBuf>) -> Self {
        Self {
            path: path.into(),
            arguments: Vec::new(),
            environment: Vec::new(),
            directory: None,
            input: Input::Empty,
            user: None,
        }
    }

    /// Finds a binary of the workspace, in the build directory of the running test.
    ///
    /// Cargo builds it for the integration tests of its own package. Tests of another package run the latest build.
    ///
    /// # Errors
    /// `NotFound` if it has not been built, with the command to build it.
    pub fn workspace_binary(name: &str) -> Result<Self> {
        let test = env::current_exe()?;
        // For target/debug/deps/test-0123 and target/debug/examples/name-0123, binaries are one level up.
        let candidates = test.ancestors().skip(1).take(2).map(|directory| directory.join(name));
        candidates.into_iter().find(|path| is_executable(path)).map(Self::at).ok_or_else(|| {
            let message = format!("no binary `{name}` next to {}; run `cargo build --bin {name}`", test.display());
            Error::new(ErrorKind::NotFound, message)
        })
    }

    /// Finds a program of the system: in `PATH`, or in the usual directories for servers outside of `PATH`.
    ///
    /// # Errors
    /// `NotFound` if there is none; the message names the directories searched.
    pub fn find(name: &str) -> Result<Self> {
        let path = env::var_os("PATH").unwrap_or_default();
        let usual = ["/usr/local/sbin", "/usr/sbin", "/sbin", "/opt/homebrew/bin"].map(PathBuf::from);
        let directories = env::split_paths(&path).chain(usual);
        directories.map(|directory| directory.join(name)).find(|path| is_executable(path)).map(Self::at).ok_or_else(
            || {
                let message = format!("`{name}` is not installed: not found in PATH or in an sbin directory");
                Error::new(ErrorKind::NotFound, message)
            },
        )
    }

    /// Creates a program that runs one ignored test of the current test executable, so that the code under test can run
    /// as a child process.
    ///
    /// `test` is the full name of the test, `module::name`. The test should return immediately unless a variable set
    /// with [`env`](Self::env) is present, because `--include-ignored` runs it directly.
    ///
    /// # Errors
    /// The path of the current executable is unknown.
    pub fn this_test(test: &str) -> Result<Self> {
        let child = Self::at(env::current_exe()?);
        Ok(child.args(["--ignored", "--exact", "--nocapture", "--test-threads=1", test]))
    }

    /// Returns the directory of the program.
    pub(crate) fn directory_of(&self) -> Option<PathBuf> {
        // Resolves links, so that companion programs are found in the same directory.
        Some(self.path.canonicalize().ok()?.parent()?.to_owned())
    }

    /// Adds one argument.
    #[must_use]
    pub fn arg(mut self, argument: impl AsRef<OsStr>) -> Self {
        self.arguments.push(argument.as_ref().to_owned());
        self
    }

    /// Adds arguments.
    #[must_use]
    pub fn args<A: AsRef<OsStr>>(self, arguments: impl IntoIterator<Item = A>) -> Self {
        arguments.into_iter().fold(self, Self::arg)
    }

    /// Sets an environment variable.
    #[must_use]
    pub fn env(mut self, name: impl AsRef<OsStr>, value: impl AsRef<OsStr>) -> Self {
        self.environment.push((name.as_ref().to_owned(), Some(value.as_ref().to_owned())));
        self
    }

    /// Removes an environment variable that would have been inherited.
    #[must_use]
    pub fn env_remove(mut self, name: impl AsRef<OsStr>) -> Self {
        self.environment.push((name.as_ref().to_owned(), None));
        self
    }

    /// Sets the working directory.
    #[must_use]
    pub fn directory(mut self, directory: impl Into<PathBuf>) -> Self {
        self.directory = Some(directory.into());
        self
    }

    /// Writes `bytes` to its standard input, then closes it.
    #[must_use]
    pub fn input(mut self, bytes: impl Into<Vec<u8>>) -> Self {
        self.input = Input::Bytes(bytes.into());
        self
    }

    /// Leaves its standard input open for [`Running::write`].
    #[must_use]
    pub fn input_open(mut self) -> Self {
        self.input = Input::Open;
        self
    }

    /// Runs it as `user`, without supplementary groups. Only root can run a program as another user.
    #[must_use]
    pub fn user(mut self, user: User) -> Self {
        self.user = Some(user);
        self
    }

    /// Starts the program as the leader of a new process group.
    ///
    /// # Errors
    /// It cannot be started; the message contains its path.
    pub fn spawn(&self) -> Result<Running> {
        let mark = mark();
        let mut command = Command::new(&self.path);
        command.args(&self.arguments).env(TREE_VARIABLE, &mark).process_group(0);
        command.stdout(Stdio::piped()).stderr(Stdio::piped());
        command.stdin(match self.input {
            Input::Empty => Stdio::null(),
            Input::Bytes(_) | Input::Open => Stdio::piped(),
        });
        for (name, value) in &self.environment {
            match value {
                Some(value) => command.env(name, value),
                None => command.env_remove(name),
            };
        }
        if let Some(directory) = &self.directory {
            command.current_dir(directory);
        }
        if let Some(user) = self.user.as_ref().filter(|user| !user.is_current()) {
            command.uid(user.uid()).gid(user.gid());
        }
        let child = command
            .spawn()
            .map_err(|error| Error::new(error.kind(), format!("cannot start {}: {error}", self.path.display())))?;
        Running::new(child, self.input.clone(), mark.into())
    }

    /// Starts the program and waits for its end, for at most `limit`.
    ///
    /// # Errors
    /// As [`spawn`](Self::spawn) and [`Running::wait`].
    pub fn run(&self, limit: Duration) -> Result<Finished> {
        self.spawn()?.wait(limit)
    }
}

/// Returns a value that is unique among all spawns of all live test processes.
fn mark() -> String {
    static SPAWNED: AtomicU64 = AtomicU64::new(0);
    format!("{}-{}", process::id(), SPAWNED.fetch_add(1, Ordering::Relaxed))
}

fn is_executable(path: &Path) -> bool {
    path.metadata().is_ok_and(|meta| meta.is_file() && meta.permissions().mode() & 0o111 != 0)
}
