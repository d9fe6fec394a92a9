//! `stagger`: retries commands, and plans, checks and simulates retry policies.

#![cfg_attr(not(unix), allow(dead_code, reason = "`run` needs Unix, and some modules are used only by it"))]

mod cli;
mod completions;
mod control;
#[cfg(test)]
mod documented;
mod help;
mod man;
mod plan;
#[cfg_attr(not(unix), path = "run/unsupported.rs")]
mod run;
mod summary;
mod wait;

use std::process::ExitCode;

use stagger_terminal::output::error::CliError;
use stagger_terminal::output::terminal::Term;

use crate::cli::{Cli, Command, PlanCommand};

fn main() -> ExitCode {
    let words: Vec<_> = std::env::args_os().collect();
    let cli = match Cli::parse(&words) {
        Ok(cli) => cli,
        Err(error) => return cli::exit_with_usage(&error, &words),
    };
    let term = Term::detect(cli.global.color, cli.global.progress());
    let done = match &cli.command {
        Command::Run(args) => run::run(args, &term),
        Command::Wait(args) => wait::run(args, &term),
        Command::Plan(args) => plan(args, &term),
        Command::Control(args) => control::run(args),
        Command::Completions(args) => completions::run(args, &cli::command()),
        Command::Man(args) => man::run(args, cli::command()),
        Command::Help(args) => help::run(args),
        #[cfg(feature = "lab")]
        Command::Check(args) => stagger_lab::check::run(args, &term),
        #[cfg(feature = "lab")]
        Command::Simulate(args) => stagger_lab::simulate::run(args, &term),
        #[cfg(feature = "lab")]
        Command::Advise(args) => stagger_lab::advise::run(args, &term),
        #[cfg(feature = "lab")]
        Command::Serve(args) => stagger_lab::serve::run(args),
        #[cfg(feature = "lab")]
        Command::Drill(args) => stagger_drill::run(args, &term),
        #[cfg(feature = "lab")]
        Command::DrillServer(args) => stagger_drill::serve(args),
        #[cfg(feature = "lab")]
        Command::DrillGuard(args) => stagger_drill::guard(args),
        #[cfg(feature = "lab")]
        Command::DrillOutageServer(args) => stagger_drill::serve_outage(args),
    };
    done.unwrap_or_else(|error| cli::fail(&cli.command, &error, &term))
}

/// Plans a policy, or the policies of a file, which only the lab can read; or writes one for another system.
#[cfg(feature = "lab")]
fn plan(args: &PlanCommand, term: &Term) -> Result<ExitCode, CliError> {
    let (plan, files) = (&args.plan, &args.files);
    match plan.file() {
        None if files.exports() => files.export(&plan.policy(), None, term),
        None => plan::run(plan, None, term),
        Some(file) if files.exports() => {
            let found = files.policies_of(file, true)?;
            let Some(found) = found.first() else { return Ok(ExitCode::SUCCESS) };
            files.export(&plan.with_policy(&found.policy), Some(found), term)
        }
        Some(file) => {
            let found = files.policies_of(file, plan.has_one_output())?.into_iter();
            let found: Vec<_> = found.map(|found| plan::Found { label: found.label, policy: found.policy }).collect();
            plan::run(plan, Some(&found), term)
        }
    }
}

#[cfg(not(feature = "lab"))]
fn plan(args: &PlanCommand, term: &Term) -> Result<ExitCode, CliError> {
    if let Some(file) = args.plan.file() {
        return Err(CliError::usage(format_args!(
            "{}: this build of stagger does not read the files of other systems; it was built without the feature \
             `lab`",
            stagger_terminal::output::outside::path_shown(file)
        )));
    }
    plan::run(&args.plan, None, term)
}
