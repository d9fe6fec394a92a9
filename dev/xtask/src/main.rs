//! `cargo xtask`: the checks of CI, and the tasks before a release.

mod autobahn;
mod ci;
mod debian;
mod error;
mod files;
mod javascript;
mod lint;
mod package;
#[cfg(test)]
mod public_dependencies;
mod release;
mod rustdoc;
mod shell;
mod targets;
mod testing;
mod tool;
mod vectors;
mod versions;
#[cfg(test)]
mod workflows;
mod workspace;

use std::ffi::OsString;
use std::process::ExitCode;

use crate::error::Result;
use crate::release::{archive, bill, check, program};

/// A subcommand. It gets the arguments that follow its name.
struct Command {
    name: &'static str,
    about: &'static str,
    run: fn(&[OsString]) -> Result,
}

const COMMANDS: [Command; 21] = [
    Command { name: "ci", about: "run all checks; `ci --help` lists its options", run: ci::run },
    Command { name: "book", about: "build the guide as a book, and follow its links", run: testing::book },
    Command {
        name: "autobahn",
        about: "run the conformance tests of the Autobahn Test Suite; takes minutes and needs Python 2.7",
        run: autobahn::run,
    },
    Command {
        name: "deny",
        about: "check licenses, bans and sources of the dependencies (cargo-deny)",
        run: tool::deny,
    },
    Command {
        name: "package",
        about: "build the packages of all crates, check what is in them, and use them in a program",
        run: package::run,
    },
    Command {
        name: "js-package",
        about: "pack the JavaScript client, check the package with publint and attw of npm, and use it in a program",
        run: javascript::package,
    },
    Command {
        name: "js-runtimes",
        about: "run the JavaScript client in other runtimes; --node PATH, --deno PATH, --bun PATH",
        run: javascript::in_runtimes,
    },
    Command { name: "msrv", about: "build the libraries with the oldest Rust that they promise", run: versions::msrv },
    Command {
        name: "lowest",
        about: "build each library with the lowest versions of its dependencies that it accepts",
        run: versions::lowest,
    },
    Command { name: "wasm", about: "run seeds and calls on WebAssembly without a host, in Node", run: targets::wasm },
    Command {
        name: "public-api",
        about: "compare the public interfaces with their snapshots; --bless rewrites them",
        run: rustdoc::public_api,
    },
    Command { name: "vectors", about: "write the golden vectors of the JavaScript client", run: vectors::run },
    Command {
        name: "semver",
        about: "check that the version fits the changes of the public interface (cargo-semver-checks)",
        run: tool::semver,
    },
    Command {
        name: "release-check",
        about: "refuse the release of a version while anything is missing",
        run: check::check,
    },
    Command {
        name: "release-notes",
        about: "print the section of a version in the changelog",
        run: check::notes_command,
    },
    Command {
        name: "dist",
        about: "pack the program with its man pages and completions; --target TARGET",
        run: program::dist_command,
    },
    Command { name: "deb", about: "build the Debian package of the program; --target TARGET", run: program::deb },
    Command { name: "rpm", about: "build the RPM package of the program; --target TARGET", run: program::rpm },
    Command {
        name: "image",
        about: "lay out the context of the container image from archives of static programs",
        run: archive::image,
    },
    Command {
        name: "sbom",
        about: "list what the program is built from, as CycloneDX (cargo-cyclonedx)",
        run: bill::sbom,
    },
    Command {
        name: "checksums",
        about: "write the checksums of the files in target/artifacts",
        run: archive::checksums_command,
    },
];

fn main() -> ExitCode {
    let arguments: Vec<_> = std::env::args_os().skip(1).collect();
    if let Some(code) = rustdoc::run_in_place(&arguments) {
        return code;
    }
    let Some((name, rest)) = arguments.split_first() else {
        print!("{}", usage());
        return ExitCode::SUCCESS;
    };
    if ["--help", "-h", "help"].iter().any(|help| name == help) {
        print!("{}", usage());
        return ExitCode::SUCCESS;
    }
    let Some(command) = COMMANDS.iter().find(|command| name == command.name) else {
        eprint!("unknown command `{}`\n\n{}", name.display(), usage());
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
        text += &format!("  {:<15}{}\n", command.name, command.about);
    }
    text + "\nCommands of a tool pass further arguments on to it, and install the tool if it is missing.\n"
}
