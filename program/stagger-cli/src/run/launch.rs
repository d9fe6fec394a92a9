use core::time::Duration;
use std::borrow::Cow;
use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::{env, io};

use rustix::fs::{Access, access};
use rustix::io::Errno;
use rustix::process::Pid;

use super::child::{Child, ProcessGroup};
use super::log::Count;
use super::settings::RETRIED_BY;
use super::status::NotRun;
use super::stdin::StdinSource;

#[derive(Debug)]
pub(super) struct Launcher {
    words: Vec<OsString>,
    supervision: Supervision,
}

/// How the processes of a command are kept together.
#[derive(Clone, Copy, Debug)]
pub(super) struct Supervision {
    pub(super) process_group: ProcessGroup,
    /// Whether this process adopts orphans.
    pub(super) adopts_orphans: bool,
}

#[derive(Clone, Copy, Debug)]
pub(super) struct AttemptEnv<'a> {
    pub(super) count: Count,
    pub(super) last_exit: Option<u8>,
    pub(super) elapsed: Duration,
    pub(super) advice: AdviceEnv<'a>,
    /// The run that retries the command.
    pub(super) retried_by: Option<Pid>,
}

/// The file for advice that a command is told.
#[derive(Clone, Copy, Debug)]
pub(super) enum AdviceEnv<'a> {
    None,
    File(&'a Path),
    /// That of the outer run, which is the one that retries.
    Outer,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Redirect {
    /// Stagger's own stream.
    Inherit,
    Pipe,
}

#[derive(Debug)]
pub(super) struct SpawnError {
    pub(super) reason: NotRun,
    /// What is wrong and how to fix it.
    pub(super) message: String,
}

const SHELL: &str = "/bin/sh";

impl Launcher {
    /// Creates a launcher that runs the words directly.
    pub(super) fn command(words: &[OsString], supervision: Supervision) -> Self {
        Self { words: words.to_vec(), supervision }
    }

    /// Creates a launcher that runs the first word as a shell script, with the other words as its `$1`, `$2`, …
    pub(super) fn script(words: &[OsString], supervision: Supervision) -> Self {
        let (script, rest) = words.split_at(words.len().min(1));
        let shell = [SHELL.into(), "-c".into()].into_iter();
        Self {
            words: shell.chain(script.iter().cloned()).chain(["sh".into()]).chain(rest.iter().cloned()).collect(),
            supervision,
        }
    }

    pub(super) fn start(
        &mut self,
        stdin: &mut StdinSource,
        redirects: [Redirect; 2],
        env: &AttemptEnv<'_>,
    ) -> Result<Child, SpawnError> {
        let mut spawned = self.spawn(stdin, redirects, env);
        // A script without `#!` is run by the shell, as in execvp(3), env and every shell.
        if spawned.as_ref().is_err_and(|error| has_errno(error, Errno::NOEXEC))
            && let Some(script) = self.words.first().and_then(|program| file_of(program))
        {
            self.words.splice(..1, [SHELL.into(), script]);
            spawned = self.spawn(stdin, redirects, env);
        }
        spawned.map_err(|error| self.spawn_error(&error))
    }

    fn spawn(
        &self,
        stdin: &mut StdinSource,
        [stdout, stderr]: [Redirect; 2],
        env: &AttemptEnv<'_>,
    ) -> io::Result<Child> {
        let mut words = self.words.iter();
        let mut command = Command::new(words.next().ok_or(Errno::INVAL)?);
        command.args(words).stdin(stdin.next()?).stdout(stdout).stderr(stderr);
        env.set_on(&mut command);
        Child::spawn(&mut command, self.supervision.process_group, self.supervision.adopts_orphans)
    }

    fn program(&self) -> Cow<'_, str> {
        self.words.first().map(|word| word.to_string_lossy()).unwrap_or_default()
    }

    fn spawn_error(&self, error: &io::Error) -> SpawnError {
        let program = self.program();
        let path = Path::new(self.words.first().map_or(OsStr::new(""), |word| word));
        let reason = NotRun::from_error(error);
        let message = match reason {
            NotRun::ResourceLimit => format!("cannot start another process: {error}"),
            NotRun::NotFound if program.contains('/') && path.exists() => {
                format!("cannot run `{program}`: the interpreter in its `#!` line was not found")
            }
            NotRun::NotFound if self.words.len() == 1 && program.contains(char::is_whitespace) => {
                format!("cannot run `{program}`: command not found; to run it as a shell command line, add --shell")
            }
            NotRun::NotFound => {
                format!("cannot run `{program}`: command not found; check its spelling and PATH")
            }
            NotRun::NotExecutable if path.is_dir() => format!("cannot run `{program}`: it is a directory"),
            NotRun::NotExecutable if has_errno(error, Errno::ACCESS) => {
                format!("cannot run `{program}`: it is not executable; try chmod +x {program}")
            }
            NotRun::NotExecutable => format!("cannot run `{program}`: {error}"),
        };
        SpawnError { reason, message }
    }
}

impl AttemptEnv<'_> {
    fn set_on(&self, command: &mut Command) {
        command.env("STAGGER_ATTEMPT", self.count.n.to_string());
        command.env("STAGGER_MAX_ATTEMPTS", self.count.max.map_or("inf".to_owned(), |max| max.to_string()));
        command.env("STAGGER_ELAPSED_MS", self.elapsed.as_millis().to_string());
        // A variable inherited from an outer `stagger run` does not apply to this run.
        match self.last_exit {
            Some(code) => command.env("STAGGER_LAST_EXIT", code.to_string()),
            None => command.env_remove("STAGGER_LAST_EXIT"),
        };
        match self.advice {
            AdviceEnv::File(path) => command.env("STAGGER_ADVICE", path),
            AdviceEnv::None => command.env_remove("STAGGER_ADVICE"),
            AdviceEnv::Outer => command,
        };
        match self.retried_by {
            Some(pid) => command.env(RETRIED_BY, pid.to_string()),
            None => command.env_remove(RETRIED_BY),
        };
    }
}

impl From<Redirect> for Stdio {
    fn from(redirect: Redirect) -> Self {
        match redirect {
            Redirect::Inherit => Self::inherit(),
            Redirect::Pipe => Self::piped(),
        }
    }
}

/// Returns the file that execvp(3) runs for `program`.
fn file_of(program: &OsStr) -> Option<OsString> {
    if program.as_bytes().contains(&b'/') {
        return Some(program.to_owned());
    }
    let path = env::var_os("PATH").unwrap_or_else(|| "/bin:/usr/bin".into());
    // An empty directory is the current one.
    let mut files = env::split_paths(&path).map(|directory| Path::new(".").join(directory).join(program));
    let found = files.find(|file| file.is_file() && access(file, Access::EXEC_OK).is_ok());
    found.map(PathBuf::into_os_string)
}

fn has_errno(error: &io::Error, errno: Errno) -> bool {
    error.raw_os_error() == Some(errno.raw_os_error())
}
