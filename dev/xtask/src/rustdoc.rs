//! What rustdoc makes of the libraries: their pages, as here and on docs.rs, and their public interfaces.

use std::collections::BTreeSet;
use std::ffi::OsString;
use std::process::{Command, ExitCode};
use std::{env, fs};

use crate::ci::{Note, Options};
use crate::files::root;
use crate::shell::{Result, Shell};
use crate::workspace::{Package, Workspace, everything};

/// Documents the workspace as docs.rs does: with all features, and with `cfg(docsrs)`, which enables unstable ones of
/// rustdoc. docs.rs has a nightly toolchain; with `RUSTC_BOOTSTRAP` the stable one accepts them, too.
pub(crate) fn pages(_: &Options) -> Result<Note> {
    let workspace = Workspace::here()?;
    for library in workspace.libraries() {
        if library.manifest("metadata")["docs"]["rs"]["all-features"] != true {
            return Err(format!("{}: docs.rs needs all-features in [package.metadata.docs.rs]", library.name).into());
        }
    }
    let cargo = Shell::cargo("doc --no-deps").args(everything()?).env("RUSTDOCFLAGS", "-D warnings --cfg docsrs");
    with_unstable_options(cargo)?.run()?;
    Ok(Some(format!("{} libraries", workspace.libraries().count())))
}

/// Names the program that this one runs in place of itself, when cargo starts it as rustdoc.
const REAL: &str = "XTASK_RUSTDOC";

/// Lets the rustdoc of a cargo command accept unstable options.
///
/// A stable rustdoc does with `RUSTC_BOOTSTRAP` in its environment. Were the variable in that of cargo, build scripts
/// of dependencies would read it as well, and everything that depends on them would be built for this command alone. So
/// cargo starts this program as its rustdoc, which starts the real one with the variable.
fn with_unstable_options(cargo: Shell) -> Result<Shell> {
    let real = env::var_os("RUSTDOC").unwrap_or("rustdoc".into());
    Ok(cargo.env("RUSTDOC", env::current_exe()?).env(REAL, real))
}

/// Runs the real rustdoc if cargo has started this program in its place, and returns its exit code.
pub(crate) fn run_in_place(arguments: &[OsString]) -> Option<ExitCode> {
    let real = env::var_os(REAL)?;
    let status = Command::new(&real).args(arguments).env_remove(REAL).env("RUSTC_BOOTSTRAP", "1").status();
    Some(match status {
        Ok(status) if status.success() => ExitCode::SUCCESS,
        Ok(_) => ExitCode::FAILURE,
        Err(error) => {
            eprintln!("cannot start `{}`: {error}", real.display());
            ExitCode::FAILURE
        }
    })
}

/// The directory with a file for each library whose interface is compared, so that a change of it shows up in a diff.
const SNAPSHOTS: &str = "docs/public-api";

/// Compares each interface that has a snapshot with it, and prints the lines that differ.
pub(crate) fn compare_interfaces(_: &Options) -> Result<Note> {
    let libraries = with_snapshot()?;
    let mut changed = Vec::new();
    for (library, snapshot) in &libraries {
        let interface = interface(library)?;
        if *snapshot != interface {
            println!("{0} differs from {SNAPSHOTS}/{0}.txt:\n{1}", library.name, diff(snapshot, &interface));
            changed.push(library.name.as_str());
        }
    }
    if !changed.is_empty() {
        let advice = "if intended: cargo xtask public-api --bless";
        return Err(format!("the interface differs from {SNAPSHOTS}: {}; {advice}", changed.join(", ")).into());
    }
    Ok(Some(format!("{} libraries", libraries.len())))
}

/// Compares the interfaces as the step does, or rewrites the snapshots.
pub(crate) fn public_api(arguments: &[OsString]) -> Result {
    match arguments {
        [] => compare_interfaces(&Options::default()).map(|_| ()),
        [argument] if argument == "--bless" => {
            for (library, _) in with_snapshot()? {
                fs::write(root().join(SNAPSHOTS).join(format!("{}.txt", library.name)), interface(&library)?)?;
            }
            Ok(())
        }
        _ => Err("the only argument is --bless, which rewrites the snapshots".into()),
    }
}

/// Returns the libraries that have a snapshot, with its text.
pub(crate) fn with_snapshot() -> Result<Vec<(Package, String)>> {
    let mut found = Vec::new();
    for package in Workspace::here()?.packages {
        if let Ok(snapshot) = fs::read_to_string(root().join(SNAPSHOTS).join(format!("{}.txt", package.name))) {
            found.push((package, snapshot));
        }
    }
    Ok(found)
}

/// Renders the interface of a library with all its features, an item per line, without the items of blanket and auto
/// trait implementations. A derived implementation is its `impl` line alone.
fn interface(library: &Package) -> Result<String> {
    let cargo = Shell::cargo("rustdoc --quiet --lib --all-features --package").args([&library.name]);
    with_unstable_options(cargo.args(["--", "-Z", "unstable-options", "--output-format", "json"]))?.run()?;
    let json = Workspace::here()?.target_directory.join(format!("doc/{}.json", library.name.replace('-', "_")));
    let builder = public_api::Builder::from_rustdoc_json(json).omit_blanket_impls(true).omit_auto_trait_impls(true);
    // Each toolchain writes one version of the JSON, and each version of `public-api` reads one.
    let toolchain =
        "use Rust 1.95, or update `public-api` in dev/xtask/Cargo.toml together with the toolchain in ci.yml";
    let all = builder.clone().build().map_err(|error| format!("{error}; {toolchain}"))?.to_string();
    let without_derived = builder.omit_auto_derived_impls(true).build()?.to_string();
    let without_derived: BTreeSet<_> = without_derived.lines().collect();
    let mut interface = String::new();
    for line in all.lines() {
        // `derive(PartialEq)` also marks the type for the compiler.
        let is_impl = line.starts_with("impl") && !line.contains("::StructuralPartialEq for ");
        if is_impl || without_derived.contains(line) {
            interface += line;
            interface += "\n";
        }
    }
    Ok(interface)
}

/// Returns the lines that occur in only one of the two texts: first those of `old` (`-`), then those of `new` (`+`).
fn diff(old: &str, new: &str) -> String {
    let (before, after): (BTreeSet<_>, BTreeSet<_>) = (old.lines().collect(), new.lines().collect());
    let removed = old.lines().filter(|line| !after.contains(line)).map(|line| format!("-{line}\n"));
    let added = new.lines().filter(|line| !before.contains(line)).map(|line| format!("+{line}\n"));
    removed.chain(added).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn diff_has_the_lines_of_one_side_only() {
        assert_eq!(diff("a\nb\nc\n", "a\nc\nd\n"), "-b\n+d\n");
        assert_eq!(diff("", "a\n"), "+a\n");
        assert_eq!(diff("a\n", "a\n"), "");
    }
}
