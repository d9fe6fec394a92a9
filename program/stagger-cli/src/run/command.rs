use core::time::Duration;
use std::io::{self, IsTerminal};
use std::process::ExitCode;
use std::sync::Arc;

use rustix::process::{Resource, Rlimit, getpid, setrlimit};
use stagger::time::{Clock, SystemClock};
use stagger_terminal::output::error::CliError;
use stagger_terminal::output::line::short;
use stagger_terminal::output::outside::path_shown;
use stagger_terminal::output::terminal::Term;

use super::advice::AdviceFile;
use super::args::RunArgs;
use super::attempt::RunContext;
use super::budget::{BudgetPlace, SharedBudget};
use super::child::ProcessGroup;
use super::driver::{Driver, RunExit};
use super::hook::Hook;
use super::launch::{Launcher, Supervision};
use super::log::Report;
use super::log::{Event, Logger};
use super::process_tree;
use super::runner::{Runner, amount};
use super::settings::Settings;
use super::signals::Signals;
use super::status::{AttemptStatus, TIMEOUT_CODE};
use super::stdin::{StdinError, StdinSource};

pub(crate) fn run(args: &RunArgs, term: &Term) -> Result<ExitCode, CliError> {
    match run_to_exit(args, term)? {
        RunExit::Code(code) => Ok(ExitCode::from(code)),
        RunExit::Signal(signal) => Ok(die_by_signal(signal)),
    }
}

/// Runs the command to its end and returns how stagger must exit. All resources that must be released before stagger
/// ends by a signal are released when this returns.
fn run_to_exit(args: &RunArgs, term: &Term) -> Result<RunExit, CliError> {
    let settings = Settings::new(args)?;
    let budget = SharedBudget::new(args)?;
    let report = args.report.as_deref().map(Report::open).transpose()?;
    let mut signals = Signals::catch().map_err(|error| CliError::io("cannot catch signals", error))?;
    let mut logger = Logger::new(args, term, Arc::clone(&signals.terminate))?;
    let ends_at = settings.time_limit.map(|limit| SystemClock.now().saturating_add(limit));

    let process_group =
        if io::stdin().is_terminal() || args.foreground { ProcessGroup::Shared } else { ProcessGroup::Own };
    let supervision = Supervision { process_group, adopts_orphans: process_tree::adopt_orphans() };
    let advice = AdviceFile::new();
    let launcher = match (&settings.http, &advice) {
        (Some(client), Ok(file)) => {
            Launcher::command(&client.with_header_file(&args.command, file.path()), supervision)
        }
        (Some(_), Err(error)) => {
            return Err(CliError::usage(format_args!(
                "--http: cannot create a file for headers: {error}; check TMPDIR"
            )));
        }
        (None, _) if args.shell => Launcher::script(&args.command, supervision),
        (None, _) => Launcher::command(&args.command, supervision),
    };
    let hook = Hook::new(&settings, supervision);
    let stdin = match StdinSource::prepare(settings.stdin(), &mut signals, ends_at, args.stdin_limit) {
        Ok(stdin) => stdin,
        Err(StdinError::Interrupted(caught)) => return Ok(RunExit::Signal(caught.signal)),
        Err(StdinError::TimeLimit) => {
            let limit = short(settings.time_limit.unwrap_or_default());
            logger.note(&format!("giving up before standard input has ended: --time-limit {limit} is reached"));
            return Ok(RunExit::Code(TIMEOUT_CODE));
        }
        Err(StdinError::TooLong) => {
            return Err(CliError::usage(format_args!(
                "standard input is longer than {}, the --stdin-limit; raise it, or redirect it from a file, which \
                 needs no copy",
                amount(args.stdin_limit)
            )));
        }
        Err(StdinError::Read(error)) => return Err(CliError::io("cannot read standard input", error)),
        Err(StdinError::Copy(error)) => {
            let place = std::env::temp_dir();
            return Err(CliError::usage(format_args!(
                "--stdin replay: cannot copy standard input to {}: {error}; free space there, or set TMPDIR to another \
                 directory",
                path_shown(&place)
            )));
        }
    };
    // Few commands give advice.
    if let (Err(error), true) = (&advice, args.verbose) {
        logger.warn(&format!("cannot create the advice file: {error}; check TMPDIR"));
    }
    let seed = settings.seed.get();
    let budget_name = args.budget.as_ref().map(BudgetPlace::shown);
    logger.log(&Event::Started { policy: &settings.policy, seed, budget: budget_name, command: &args.command });
    if let Some(client) = &settings.http {
        if args.verbose {
            logger.note(&client.description());
        }
        if let Some(note) = client.retries_note() {
            logger.note(&note);
        }
    }
    let runner = Runner::new(&settings, stdin, launcher, advice.ok(), term.stdout.tty);
    let context = RunContext {
        clock: SystemClock,
        started: SystemClock.now(),
        ends_at,
        signals: &mut signals,
        logger: &mut logger,
    };
    let waited = Duration::ZERO;
    Driver { settings: &settings, context, runner, budget: budget.as_ref(), hook, report, waited, attempts: 0 }.drive()
}

/// Ends this process by the signal that requested termination, so that the parent sees the expected status. Returns
/// the exit code that stands for the signal if that is not possible.
pub(crate) fn die_by_signal(signal: i32) -> ExitCode {
    let code = ExitCode::from(AttemptStatus::Signal(signal).code());
    // The kernel does not end PID 1 by a signal that it does not handle, and signal-hook would then abort.
    if getpid().is_init() {
        return code;
    }
    // Our core dump would overwrite that of the command.
    let _ = setrlimit(Resource::Core, Rlimit { current: Some(0), maximum: Some(0) });
    let _ = signal_hook::low_level::emulate_default_handler(signal);
    code
}
