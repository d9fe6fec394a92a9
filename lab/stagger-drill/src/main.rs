//! `cargo drill`: the command `stagger drill` alone, which is built in a third of the time of the program.

#![forbid(unsafe_code)]

use std::process::ExitCode;

use clap::Parser;
use stagger_drill::{DrillArgs, GuardArgs, OutageServeArgs, ServeArgs};
use stagger_terminal::output::error::{CliError, RUN_FAILURE, USAGE_ERROR};
use stagger_terminal::output::outside::in_lines;
use stagger_terminal::output::terminal::{ColorChoice, Progress, Term};

/// The drill, and the processes that it starts.
#[derive(Parser)]
#[command(name = "stagger", version)]
enum Command {
    Drill(Box<DrillArgs>),
    #[command(hide = true)]
    DrillServer(ServeArgs),
    #[command(hide = true)]
    DrillGuard(GuardArgs),
    #[command(hide = true)]
    DrillOutageServer(OutageServeArgs),
}

fn main() -> ExitCode {
    let term = Term::detect(ColorChoice::Auto, Progress::Live);
    let done = match &Command::parse() {
        Command::Drill(args) => stagger_drill::run(args, &term),
        Command::DrillServer(args) => stagger_drill::serve(args),
        Command::DrillGuard(args) => stagger_drill::guard(args),
        Command::DrillOutageServer(args) => stagger_drill::serve_outage(args),
    };
    done.unwrap_or_else(|error| {
        eprintln!("error: {}", in_lines(&error.to_string()));
        ExitCode::from(match error {
            CliError::Usage(_) => USAGE_ERROR,
            CliError::Io { .. } => RUN_FAILURE,
        })
    })
}
