use std::process::ExitCode;
use std::sync::Arc;

use rustix::process::{Resource, Rlimit, setrlimit};

use super::advice::AdviceFile;
use super::args::{LogFormat, RunArgs};
use super::attempt::Surroundings;
use super::child::Grouping;
use super::clock::Clock;
use super::driver::{Driver, Ending};
use super::ended::Ended;
use super::hook::Hook;
use super::launch::Launch;
use super::log::{Console, Event, LogSettings, Started};
use super::report::Report;
use super::runner::Runner;
use super::settings::Settings;
use super::signals::Signals;
use super::stdin::Feed;
use crate::error::CliError;
use crate::term::Term;

/// `stagger run`.
///
/// # Errors
/// The command line makes no sense, or stagger itself failed.
pub(crate) fn run(args: &RunArgs, term: &Term) -> Result<ExitCode, CliError> {
    match drive(args, term)? {
        Ending::Exit(code) => Ok(ExitCode::from(code)),
        Ending::Signal(signal) => Ok(die_of(signal)),
    }
}

/// Everything that must be put away before stagger may die is gone when this returns.
fn drive(args: &RunArgs, term: &Term) -> Result<Ending, CliError> {
    let clock = Clock::start();
    let settings = Settings::new(args)?;
    let report = args.report.as_deref().map(Report::open).transpose()?;
    let mut signals = Signals::catch().map_err(|error| CliError::io("cannot catch signals", error))?;
    let log = LogSettings {
        format: if args.quiet { LogFormat::Off } else { args.log },
        file: args.log_file.clone(),
        verbose: args.verbose,
    };
    let mut console = Console::new(&log, term, Arc::clone(signals.end_flag()))?;

    let child = &settings.child;
    let grouping = if Feed::is_terminal() || child.foreground { Grouping::Shared } else { Grouping::Own };
    let launch =
        if child.shell { Launch::script(&child.command, grouping) } else { Launch::command(&child.command, grouping) };
    let hook = settings.on_retry.as_ref().map(|line| Hook::new(line, child.stop, grouping));
    let feed = Feed::prepare(child.stdin, &mut signals);
    let feed = match feed.map_err(|error| CliError::io("cannot read standard input", error))? {
        core::ops::ControlFlow::Continue(feed) => feed,
        core::ops::ControlFlow::Break(caught) => return Ok(Ending::Signal(caught.signal)),
    };
    let advice = AdviceFile::new();
    if let Err(error) = &advice {
        console.warn(&format!("cannot make a file for advice: {error}; check TMPDIR"));
    }
    console.tell(&Event::Started(Started {
        policy: &settings.policy,
        seed: settings.seed.get(),
        command: &child.command,
    }));
    let runner = Runner::new(&settings, feed, launch, advice.ok(), term.stdout.tty);
    let around = Surroundings { clock, signals: &mut signals, console: &mut console };
    Driver::new(&settings, around, runner, hook, report).drive()
}

/// Ends this process by the signal that asked it to end, so that a shell sees what it expects. Returns only if that
/// fails.
fn die_of(signal: i32) -> ExitCode {
    // A core of ours would overwrite that of the command.
    let _ = setrlimit(Resource::Core, Rlimit { current: Some(0), maximum: Some(0) });
    let _ = signal_hook::low_level::emulate_default_handler(signal);
    ExitCode::from(Ended::Signal(signal).code())
}
