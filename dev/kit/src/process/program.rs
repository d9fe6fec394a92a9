use core::sync::atomic::{AtomicU64, Ordering};
use core::time::Duration;
use std::env;
use std::ffi::{OsStr, OsString};
use std::fs::{self, Permissions};
use std::io::{Error, ErrorKind, Result};
use std::os::unix::fs::{PermissionsExt, chown};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{self, Command, Stdio};

use rustix::process::{getegid, geteuid};
use tempfile::{Builder, TempDir};

use crate::process::process_tree::TREE_VARIABLE;
use crate::process::running::{Finished, Running};

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

/// The user that a program runs as.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct User {
    uid: u32,
    gid: u32,
}

impl User {
    /// Returns the user of this process.
    #[must_use]
    pub fn current() -> Self {
        Self { uid: geteuid().as_raw(), gid: getegid().as_raw() }
    }

    /// Looks up a user by name in `/etc/passwd`.
    ///
    /// # Errors
    /// `NotFound` if there is no such user.
    pub fn named(name: &str) -> Result<Self> {
        let passwd = fs::read_to_string("/etc/passwd")?;
        passwd
            .lines()
            .find_map(|line| entry(line, name))
            .ok_or_else(|| Error::new(ErrorKind::NotFound, format!("no user `{name}` in /etc/passwd")))
    }

    /// Returns a user without privileges: the user of this process, or `nobody` if that is root.
    ///
    /// Some servers, such as PostgreSQL, refuse to run as root, and a test server does not need to.
    ///
    /// # Errors
    /// As [`named`](Self::named).
    pub fn unprivileged() -> Result<Self> {
        if geteuid().is_root() { Self::named("nobody") } else { Ok(Self::current()) }
    }

    /// Returns whether this is the user of this process.
    #[must_use]
    pub fn is_current(&self) -> bool {
        *self == Self::current()
    }

    /// Changes the owner of `path` to this user, not recursively. Does nothing for the current user.
    ///
    /// # Errors
    /// Only root can change the owner to another user.
    pub fn chown(&self, path: impl AsRef<Path>) -> Result<()> {
        if self.is_current() { Ok(()) } else { chown(path, Some(self.uid), Some(self.gid)) }
    }

    /// Creates an empty directory that only this user can access, removed when the value is dropped.
    ///
    /// # Errors
    /// As [`chown`](Self::chown), or if it cannot be created.
    pub fn directory(&self) -> Result<TempDir> {
        let directory = Builder::new().prefix("kit-").permissions(Permissions::from_mode(0o700)).tempdir()?;
        self.chown(directory.path())?;
        Ok(directory)
    }

    /// Returns the user ID.
    #[must_use]
    pub fn uid(&self) -> u32 {
        self.uid
    }

    /// Returns the ID of the user's primary group.
    #[must_use]
    pub fn gid(&self) -> u32 {
        self.gid
    }
}

/// Parses a line of passwd(5), `name:password:uid:gid:…`; `None` if it is of another user.
fn entry(line: &str, name: &str) -> Option<User> {
    let mut fields = line.split(':');
    if fields.next()? != name {
        return None;
    }
    let uid = fields.nth(1)?.parse().ok()?;
    let gid = fields.next()?.parse().ok()?;
    Some(User { uid, gid })
}

#[cfg(test)]
mod tests {
    use core::time::Duration;

    use super::*;
    use crate::Program;

    #[test]
    fn an_entry_is_matched_by_its_full_name() {
        let line = "nobody:x:65534:65533:nobody:/nonexistent:/usr/sbin/nologin";
        assert_eq!(entry(line, "nobody"), Some(User { uid: 65_534, gid: 65_533 }));
        assert_eq!(entry(line, "nob"), None);
        assert_eq!(entry("nobody:x:", "nobody"), None);
    }

    #[test]
    fn an_unprivileged_user_is_not_root_and_owns_its_directory() {
        let user = User::unprivileged().unwrap();
        let directory = user.directory().unwrap();
        let script = "id -u && touch mine && ls -ld . | cut -c1-10";
        let shell = Program::find("sh").unwrap().args(["-c", script]);
        let done = shell.directory(directory.path()).user(user.clone()).run(Duration::from_secs(5)).unwrap();
        assert_eq!(done.code(), Some(0), "{done}");
        let lines: Vec<_> = done.stdout_text().lines().map(ToOwned::to_owned).collect();
        assert_eq!(lines.first(), Some(&user.uid().to_string()));
        assert_ne!(user.uid(), 0);
        assert_eq!(lines.last().map(String::as_str), Some("drwx------"), "only the owner has access");
        assert!(directory.path().join("mine").exists());
    }
}
