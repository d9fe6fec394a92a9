//! `cargo xtask`: the checks that must hold, and what is needed before a release.

mod ci;
mod commands;
mod count;
mod prose;
mod public_api;
mod rustdoc;
mod shell;
mod steps;
mod tool;
mod workspace;

use std::ffi::OsString;
use std::process::ExitCode;

use crate::commands::{bench, deny, mutants, prose as prose_command, public_api as public_api_command, semver, soak};

/// What went wrong, said to the person who started this.
type Error = Box<dyn core::error::Error>;
type Result<T = ()> = core::result::Result<T, Error>;

/// A sub-command. It is handed what follows its name.
struct Command {
    name: &'static str,
    about: &'static str,
    run: fn(&[OsString]) -> Result,
}

const COMMANDS: [Command; 8] = [
    Command { name: "ci", about: "everything that must hold; `ci --help` for its options", run: ci::run },
    Command { name: "bench", about: "the benchmarks beside the peers", run: bench::run },
    Command {
        name: "soak",
        about: "a server killed fifty times under 2,000 WebSocket clients; minutes",
        run: soak::run,
    },
    Command { name: "mutants", about: "break stagger-core and see its tests fail (cargo-mutants)", run: mutants::run },
    Command { name: "deny", about: "licences, bans and sources of the dependencies (cargo-deny)", run: deny::run },
    Command {
        name: "public-api",
        about: "the public API against its snapshot; --bless rewrites it",
        run: public_api_command::run,
    },
    Command {
        name: "prose",
        about: "functions documented without a verb, sentences without a subject",
        run: prose_command::run,
    },
    Command { name: "semver", about: "does the version fit what changed (cargo-semver-checks)", run: semver::run },
];

fn main() -> ExitCode {
    let arguments: Vec<_> = std::env::args_os().skip(1).collect();
    let Some((name, rest)) = arguments.split_first() else {
        print!("{}", usage());
        return ExitCode::SUCCESS;
    };
    if ["--help", "-h", "help"].iter().any(|help| name == help) {
        print!("{}", usage());
        return ExitCode::SUCCESS;
    }
    let Some(command) = COMMANDS.iter().find(|command| name == command.name) else {
        eprint!("there is no `{}`\n\n{}", name.display(), usage());
        return ExitCode::from(2);
    };
    match (command.run)(rest) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("{}: {error}", command.name);
            ExitCode::FAILURE
        }
    }
}

fn usage() -> String {
    let mut text = String::from("cargo xtask <COMMAND>\n\n");
    for command in &COMMANDS {
        text += &format!("  {:<12}{}\n", command.name, command.about);
    }
    text + "\nWhat follows the name of a tool's command is handed on to the tool, which is installed if missing.\n"
}
