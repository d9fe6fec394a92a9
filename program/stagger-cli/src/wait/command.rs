use core::cell::RefCell;
use std::ffi::OsString;
use std::io::ErrorKind;
use std::process::{Command, ExitCode};

use stagger_terminal::output::error::CliError;
use stagger_terminal::output::terminal::Term;
use stagger_terminal::output::write::say;

use super::args::WaitArgs;
use super::log::Log;
use super::poll::Polling;
use super::probe::Probe;
use super::session::{self, Verdict};
use super::settings::Settings;

const NOT_EXECUTABLE: u8 = 126;
const NOT_FOUND: u8 = 127;

/// The most threads that look up names, look at files and wait for processes: one that is stuck is given up by its
/// attempt, but does not end.
const MOST_THREADS: usize = 64;

pub(crate) fn run(args: &WaitArgs, term: &Term) -> Result<ExitCode, CliError> {
    let settings = Settings::new(args)?;
    let mut runtime = tokio::runtime::Builder::new_current_thread();
    let runtime = runtime.enable_all().max_blocking_threads(MOST_THREADS).build();
    let runtime = runtime.map_err(|error| CliError::io("cannot start to wait", error))?;
    let verdict = runtime.block_on(wait(&settings, term));
    // A lookup of a name, or a file system, may not answer for a long time.
    runtime.shutdown_background();
    match verdict? {
        Verdict::Ready if args.command.is_empty() => Ok(ExitCode::SUCCESS),
        Verdict::Ready => Ok(execute(&args.command)),
        Verdict::Signal(signal) => Ok(end_by(signal)),
        verdict => Ok(ExitCode::from(verdict.ending(None).exit)),
    }
}

async fn wait(settings: &Settings<'_>, term: &Term) -> Result<Verdict, CliError> {
    let signal = end_signal().map_err(|error| CliError::io("cannot catch signals", error))?;
    let polling = Polling::new(settings).map_err(CliError::usage)?;
    let probes = settings.targets.iter().map(|target| Probe::new(target, settings)).collect::<Result<Vec<_>, _>>()?;
    let checks: Vec<_> = probes.iter().map(|probe| async || probe.check().await).collect();
    let log = RefCell::new(Log::new(settings, term));
    let verdict = session::run(settings, &polling, &checks, &log, signal).await;
    let name = match verdict {
        Verdict::Signal(signal) => Some(signal_name(signal)),
        _ => None,
    };
    log.borrow_mut().done(&verdict.ending(name.as_deref()));
    Ok(verdict)
}

/// Replaces this process by the command; returns only if that fails.
#[cfg(unix)]
fn execute(command: &[OsString]) -> ExitCode {
    use std::os::unix::process::CommandExt;

    let Some((program, arguments)) = command.split_first() else { return ExitCode::SUCCESS };
    reap();
    not_run(program, &Command::new(program).args(arguments).exec())
}

/// Runs the command and returns its exit status: this process cannot be replaced.
#[cfg(not(unix))]
fn execute(command: &[OsString]) -> ExitCode {
    let Some((program, arguments)) = command.split_first() else { return ExitCode::SUCCESS };
    match Command::new(program).args(arguments).status() {
        Ok(status) => ExitCode::from(status.code().and_then(|code| u8::try_from(code).ok()).unwrap_or(1)),
        Err(error) => not_run(program, &error),
    }
}

fn not_run(program: &OsString, error: &std::io::Error) -> ExitCode {
    say(&format!("error: cannot run {}: {error}", program.to_string_lossy()));
    ExitCode::from(if error.kind() == ErrorKind::NotFound { NOT_FOUND } else { NOT_EXECUTABLE })
}

/// Collects the commands of targets that were killed because another target was ready: as zombies they would remain for
/// the command, which does not know them.
#[cfg(unix)]
fn reap() {
    use rustix::process::{WaitOptions, wait};

    /// In milliseconds; a process that cannot be killed at once is left.
    const MOST: u32 = 100;
    for _ in 0..MOST {
        match wait(WaitOptions::NOHANG) {
            Ok(Some(_)) => {}
            Ok(None) => std::thread::sleep(core::time::Duration::from_millis(1)),
            Err(_) => return,
        }
    }
}

/// Installs the handlers, and returns the future of the first signal that ends the wait. A signal that this process
/// inherited as ignored (`nohup`) does not.
#[cfg(unix)]
fn end_signal() -> std::io::Result<impl Future<Output = i32>> {
    use futures_util::FutureExt;
    use futures_util::future::select_all;
    use tokio::signal::unix::{SignalKind, signal};

    // The parent may have left signals blocked.
    let _ = nix::sys::signal::SigSet::all().thread_unblock();
    let kinds = crate::run::TERMINATING.into_iter().filter(|&number| !crate::run::is_ignored(number));
    let streams: std::io::Result<Vec<_>> =
        kinds.map(|number| Ok((number, signal(SignalKind::from_raw(number))?))).collect();
    let mut streams = streams?;
    Ok(async move {
        let received = streams.iter_mut().map(|(number, stream)| stream.recv().map(|_| *number).boxed_local());
        match received.collect::<Vec<_>>() {
            none if none.is_empty() => core::future::pending().await,
            all => select_all(all).await.0,
        }
    })
}

#[cfg(not(unix))]
fn end_signal() -> std::io::Result<impl Future<Output = i32>> {
    const INTERRUPT: i32 = 2;
    Ok(async {
        match tokio::signal::ctrl_c().await {
            Ok(()) => INTERRUPT,
            Err(_) => core::future::pending().await,
        }
    })
}

/// Ends this process by the signal, so that the parent sees the expected status.
#[cfg(unix)]
fn end_by(signal: i32) -> ExitCode {
    // The kernel does not deliver a signal with its default action to the first process of a container.
    if std::process::id() == 1 {
        return ExitCode::from(Verdict::Signal(signal).ending(None).exit);
    }
    crate::run::die_by_signal(signal)
}

#[cfg(not(unix))]
fn end_by(signal: i32) -> ExitCode {
    ExitCode::from(Verdict::Signal(signal).ending(None).exit)
}

#[cfg(unix)]
fn signal_name(signal: i32) -> String {
    crate::run::SignalName(signal).to_string()
}

#[cfg(not(unix))]
fn signal_name(signal: i32) -> String {
    signal.to_string()
}
