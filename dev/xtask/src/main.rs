//! `cargo xtask`: the checks of CI, and the tasks before a release.

mod ci;
mod debian;
mod files;
#[cfg(test)]
mod houses;
mod javascript;
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

use crate::release::{archive, bill, check, program};
use crate::shell::Result;

/// A subcommand. It gets the arguments that follow its name.
struct Command {
    name: &'static str,
    about: &'static str,
    run: fn(&[OsString]) -> Result,
}

const COMMANDS: [Command; 21] = [
    command("ci", "run all checks; `ci --help` lists its options", ci::run),
    command("book", "build the guide as a book, and follow its links", testing::book),
    command("autobahn", "run the Autobahn Test Suite; takes minutes and needs Python 2.7", testing::autobahn),
    command("deny", "check licenses, bans and sources of the dependencies (cargo-deny)", tool::deny),
    command("semver", "compare public interfaces with the last release (cargo-semver-checks)", tool::semver),
    command("public-api", "compare public interfaces with their snapshots; --bless", rustdoc::public_api),
    command("package", "build and check the packages of all crates, and use them in a program", package::run),
    command("msrv", "build the libraries with the oldest Rust that they promise", versions::msrv),
    command("lowest", "build each library with the lowest versions of its dependencies", versions::lowest),
    command("wasm", "run seeds and calls on WebAssembly without a host, in Node", targets::wasm),
    command("vectors", "write the golden vectors of the JavaScript client", vectors::run),
    command("js-package", "check the package of the JavaScript client, and use it in a program", javascript::package),
    command("js-runtimes", "run the JavaScript client in --node, --deno, --bun PATH", javascript::in_runtimes),
    command("release-check", "refuse the release of a version while anything is missing", check::check),
    command("release-notes", "print the section of a version in the changelog", check::print_notes),
    command("dist", "pack the program with man pages and completions; --target TARGET", program::dist),
    command("deb", "build the Debian package of the program; --target TARGET", program::deb),
    command("rpm", "build the RPM package of the program; --target TARGET", program::rpm),
    command("image", "lay out the context of the container image from archives", archive::image),
    command("sbom", "list what the program is built from, as CycloneDX (cargo-cyclonedx)", bill::sbom),
    command("checksums", "write the checksums of the files in target/artifacts", archive::write_checksums),
];

const fn command(name: &'static str, about: &'static str, run: fn(&[OsString]) -> Result) -> Command {
    Command { name, about, run }
}

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
