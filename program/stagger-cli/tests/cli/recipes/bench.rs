//! A directory in which the lines of a recipe run, with stand-ins for the programs that they call.

use std::os::unix::fs::PermissionsExt;
use std::process::{Command, Stdio};
use std::{env, fs};

use crate::support::{Files, Seen, ignore_no_signal, see};

#[derive(Debug)]
pub(super) struct Bench {
    pub(super) files: Files,
}

impl Bench {
    /// Creates the directory with `stagger`, whose delays are short unless a line sets them.
    pub(super) fn new() -> Self {
        ignore_no_signal();
        let bench = Self { files: Files::new() };
        fs::create_dir(bench.files.path("bin")).expect("the directory is created");
        let stagger = env!("CARGO_BIN_EXE_stagger");
        bench.script(
            "stagger",
            &format!("[ \"$1\" = run ] && shift && set -- run -d 5ms \"$@\"\nexec '{stagger}' \"$@\""),
        );
        bench
    }

    /// Adds a program.
    pub(super) fn script(&self, name: &str, script: &str) {
        let path = self.files.write(&format!("bin/{name}"), format!("#!/bin/sh\n{script}\n"));
        fs::set_permissions(path, fs::Permissions::from_mode(0o755)).expect("the script is executable");
    }

    /// Adds a program that fails so many times, with this line and exit code, and then does as `script` says.
    pub(super) fn failing(&self, name: &str, times: usize, line: &str, code: u8, script: &str) {
        let calls = self.files.path(&format!("calls-{name}")).display().to_string();
        self.script(
            name,
            &format!(
                "echo \"$*\" >> '{calls}'\n\
                 [ $(wc -l < '{calls}') -gt {times} ] || {{ echo '{line}' >&2; exit {code}; }}\n{script}"
            ),
        );
    }

    /// Returns the arguments of the calls of a program so far, and forgets them.
    pub(super) fn take_calls(&self, name: &str) -> Vec<String> {
        let path = self.files.path(&format!("calls-{name}"));
        let calls = fs::read_to_string(&path).unwrap_or_default();
        let _ = fs::remove_file(path);
        calls.lines().map(str::to_owned).collect()
    }

    /// Returns a shell that runs the lines in the directory.
    pub(super) fn shell(&self, lines: &str) -> Command {
        let mut shell = Command::new("/bin/sh");
        self.prepare(shell.args(["-c", lines]));
        shell
    }

    /// Returns a command of the directory or the system.
    pub(super) fn command(&self, words: &[String]) -> Command {
        // The shell finds a program in the `PATH` that is set here.
        let mut shell = self.shell("exec \"$@\"");
        shell.arg("sh").args(words);
        shell
    }

    pub(super) fn see(&self, lines: &str) -> Seen {
        see(&mut self.shell(lines))
    }

    fn prepare(&self, command: &mut Command) {
        for (name, _) in env::vars_os() {
            let name = name.to_string_lossy();
            if name.starts_with("STAGGER_") || name.starts_with("PG") || name.to_lowercase().ends_with("_proxy") {
                command.env_remove(&*name);
            }
        }
        let path = env::var("PATH").unwrap_or_default();
        let bin = self.files.path("bin");
        command.env("PATH", format!("{}:{path}:/usr/sbin", bin.display()));
        command.env("LANG", "C.UTF-8").env("HOME", self.files.path("."));
        command.current_dir(self.files.path(".")).stdin(Stdio::null());
    }

    /// Returns the path of a file of the directory as text.
    pub(super) fn path(&self, name: &str) -> String {
        self.files.path(name).display().to_string()
    }
}
