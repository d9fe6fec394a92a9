//! `stagger`: retries commands, and plans, checks and simulates retry policies.

#![cfg_attr(not(unix), allow(dead_code, reason = "`run` needs Unix, and some modules are used only by it"))]

mod advise;
mod check;
mod cli;
mod drill;
mod output;
mod plan;
mod plot;
mod policy_args;
#[cfg_attr(not(unix), path = "run/unsupported.rs")]
mod run;
mod simulate;
mod storm;
mod wait;

use std::process::ExitCode;

use crate::cli::{Cli, Command};
use crate::output::terminal::Term;

fn main() -> ExitCode {
    let words: Vec<_> = std::env::args_os().collect();
    let cli = match Cli::parse(&words) {
        Ok(cli) => cli,
        Err(error) => return cli::exit_with_usage(&error),
    };
    let term = Term::detect(cli.global.color, cli.global.progress());
    let done = match &cli.command {
        Command::Run(args) => run::run(args, &term),
        Command::Wait(args) => wait::run(args, &term),
        Command::Plan(args) => plan::run(args, &term),
        Command::Check(args) => check::run(args, &term),
        Command::Simulate(args) => simulate::run(args, &term),
        Command::Drill(args) => drill::run(args, &term),
        Command::DrillServer(args) => drill::serve(args),
        Command::DrillGuard(args) => drill::guard(args),
        Command::DrillOutageServer(args) => drill::serve_outage(args),
        Command::Advise(args) => advise::run(args, &term),
        Command::Serve(args) => cli::serve::run(args),
        Command::Control(args) => cli::control::run(args),
        Command::Completions(args) => cli::packaging::completions::run(args, &cli::command()),
        Command::Man(args) => cli::packaging::man::run(args, cli::command()),
    };
    done.unwrap_or_else(|error| cli::fail(&cli.command, &error, &term))
}
