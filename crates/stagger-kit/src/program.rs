use core::sync::atomic::{AtomicU64, Ordering};
use core::time::Duration;
use std::env;
use std::ffi::{OsStr, OsString};
use std::io::{Error, ErrorKind, Result};
use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{self, Command, Stdio};

use crate::process_tree::TREE_VARIABLE;
use crate::running::{Finished, Running};
use crate::user::User;

/// A program with its arguments and surroundings, ready to be started any number of times.
///
/// It inherits the environment and the working directory unless told otherwise; its standard input
/// is empty.
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
    /// The program at `path`; for one of the package's own binaries, `env!("CARGO_BIN_EXE_name")`.
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

    /// A binary of the workspace, found beside the running test.
    ///
    /// Cargo builds it for the integration tests of its own package. Tests of another package run
    /// whatever was built last.
    ///
    /// # Errors
    /// `NotFound` with what to do if it has not been built.
    pub fn workspace_binary(name: &str) -> Result<Self> {
        let test = env::current_exe()?;
        // target/debug/deps/test-0123: binaries are one level up; examples/name-0123 the same.
        let candidates = test.ancestors().skip(1).take(2).map(|directory| directory.join(name));
        candidates.into_iter().find(|path| is_executable(path)).map(Self::at).ok_or_else(|| {
            let message = format!("no binary `{name}` beside {}: run `cargo build --bin {name}`", test.display());
            Error::new(ErrorKind::NotFound, message)
        })
    }

    /// A program of the system: in `PATH`, or where servers are kept that are not in everybody's
    /// `PATH`.
    ///
    /// # Errors
    /// `NotFound` if there is none; the message says where it was looked for.
    pub fn find(name: &str) -> Result<Self> {
        let path = env::var_os("PATH").unwrap_or_default();
        let usual = ["/usr/local/sbin", "/usr/sbin", "/sbin", "/opt/homebrew/bin"].map(PathBuf::from);
        let directories = env::split_paths(&path).chain(usual);
        directories.map(|directory| directory.join(name)).find(|path| is_executable(path)).map(Self::at).ok_or_else(
            || {
                let message = format!("`{name}` is not installed: neither in PATH nor in an sbin directory");
                Error::new(ErrorKind::NotFound, message)
            },
        )
    }

    /// The running test executable itself, asked for one ignored test: a child that is the code
    /// under test.
    ///
    /// `test` is the test's full name, `module::name`. It sees what was set with
    /// [`env`](Self::env), and should do nothing when that is missing, for `--include-ignored` runs
    /// it on its own.
    ///
    /// # Errors
    /// If the system does not say which executable runs.
    pub fn this_test(test: &str) -> Result<Self> {
        let child = Self::at(env::current_exe()?);
        Ok(child.args(["--ignored", "--exact", "--nocapture", "--test-threads=1", test]))
    }

    /// The directory that the program is in.
    pub(crate) fn directory_of(&self) -> Option<PathBuf> {
        // Through links, so that its companions are found beside it.
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

    /// Runs it in `directory`.
    #[must_use]
    pub fn directory(mut self, directory: impl Into<PathBuf>) -> Self {
        self.directory = Some(directory.into());
        self
    }

    /// Feeds `bytes` to its standard input, then ends it.
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

    /// Runs it as `user`, without supplementary groups. Only root can run a program as somebody
    /// else.
    #[must_use]
    pub fn user(mut self, user: User) -> Self {
        self.user = Some(user);
        self
    }

    /// Starts it as the leader of a process group of its own.
    ///
    /// # Errors
    /// If it cannot be started; the message names the program.
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

    /// Starts it and waits for its end, at most `limit`.
    ///
    /// # Errors
    /// As [`spawn`](Self::spawn) and [`Running::wait`].
    pub fn run(&self, limit: Duration) -> Result<Finished> {
        self.spawn()?.wait(limit)
    }
}

/// Different for every spawn of every test process that is alive.
fn mark() -> String {
    static SPAWNED: AtomicU64 = AtomicU64::new(0);
    format!("{}-{}", process::id(), SPAWNED.fetch_add(1, Ordering::Relaxed))
}

fn is_executable(path: &Path) -> bool {
    path.metadata().is_ok_and(|meta| meta.is_file() && meta.permissions().mode() & 0o111 != 0)
}
