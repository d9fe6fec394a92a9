use std::ffi::OsString;
use std::io;
use std::process::{Command, ExitCode, ExitStatus, Stdio};
use std::thread;

use clap::Args;

use stagger_terminal::output::error::CliError;
use stagger_terminal::output::write::print;

/// Run a command in a process group of its own, which is killed when standard input is closed or the command ends
#[derive(Args, Debug)]
pub struct GuardArgs {
    /// The command and its arguments
    #[arg(required = true, trailing_var_arg = true, allow_hyphen_values = true)]
    command: Vec<OsString>,
}

/// The name of the subcommand.
pub(super) const SUBCOMMAND: &str = "drill-guard";

/// Exit statuses of shells for a command that does not exist, and for one that cannot be started.
const NOT_FOUND: u8 = 127;
const NOT_STARTED: u8 = 126;

/// Runs a command until it ends or standard input is closed. Prints the number of its process; all output of the command goes to
/// standard error.
///
/// Standard input is closed when the drill ends in any way, so no process of the group outlives it.
pub fn guard(args: &GuardArgs) -> Result<ExitCode, CliError> {
    let cannot = |source| CliError::io("cannot guard a command of the drill", source);
    let (program, rest) = args.command.split_first().ok_or_else(|| CliError::usage("no command is given"))?;
    let mut command = Command::new(program);
    command.args(rest).stdin(Stdio::null()).stdout(standard_error().map_err(cannot)?);
    #[cfg(unix)]
    std::os::unix::process::CommandExt::process_group(&mut command, 0);
    let mut child = match command.spawn() {
        Ok(child) => child,
        Err(error) => {
            eprintln!("cannot start `{}`: {error}", program.to_string_lossy());
            let is_missing = error.kind() == io::ErrorKind::NotFound;
            return Ok(ExitCode::from(if is_missing { NOT_FOUND } else { NOT_STARTED }));
        }
    };
    let process = child.id();
    print(format!("{process}\n").as_bytes())?;
    thread::spawn(move || {
        // Nothing is written to it.
        let _ = io::copy(&mut io::stdin().lock(), &mut io::sink());
        kill_group(process);
    });
    let status = child.wait().map_err(cannot)?;
    // What the command has started and left behind.
    kill_group(process);
    Ok(exit_code(status))
}

/// Returns a handle of standard error, for the output of the command.
fn standard_error() -> io::Result<Stdio> {
    #[cfg(unix)]
    let owned = std::os::fd::AsFd::as_fd(&io::stderr()).try_clone_to_owned()?;
    #[cfg(windows)]
    let owned = std::os::windows::io::AsHandle::as_handle(&io::stderr()).try_clone_to_owned()?;
    Ok(Stdio::from(owned))
}

#[cfg(unix)]
fn kill_group(leader: u32) {
    use rustix::process::{Pid, Signal, kill_process_group};
    if let Some(group) = i32::try_from(leader).ok().and_then(Pid::from_raw) {
        // Fails if no process of the group is left.
        let _ = kill_process_group(group, Signal::KILL);
    }
}

/// Ends a process with all that it has started, as there are no process groups.
#[cfg(not(unix))]
fn kill_group(leader: u32) {
    // Fails if the process has ended.
    let _ = Command::new("taskkill")
        .args(["/T", "/F", "/PID", &leader.to_string()])
        .stderr(Stdio::null())
        .stdout(Stdio::null())
        .status();
}

fn exit_code(status: ExitStatus) -> ExitCode {
    #[cfg(unix)]
    if let Some(signal) = std::os::unix::process::ExitStatusExt::signal(&status) {
        return ExitCode::from(u8::try_from(128 + signal).unwrap_or(u8::MAX));
    }
    ExitCode::from(status.code().and_then(|code| u8::try_from(code).ok()).unwrap_or(u8::MAX))
}
