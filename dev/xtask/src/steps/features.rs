use crate::Result;
use crate::ci::{Note, Options};
use crate::shell::Shell;
use crate::workspace::{Package, Workspace};

pub(crate) fn run(_: &Options) -> Result<Note> {
    let mut checked = 0;
    for package in Workspace::here()?.published() {
        for set in sets(package) {
            // Passed to clippy alone: RUSTFLAGS would build every dependency again.
            let clippy = Shell::cargo("clippy --package").args([&package.name]).args(&set);
            clippy.args(["--", "-D", "warnings"]).run()?;
            checked += 1;
        }
    }
    Ok(Some(format!("{checked} sets")))
}

/// Returns the arguments for no feature, each feature alone, and all features. A package without features needs one run.
fn sets(package: &Package) -> Vec<Vec<&str>> {
    let mut sets = vec![vec!["--no-default-features"]];
    for feature in &package.features {
        sets.push(vec!["--no-default-features", "--features", feature]);
    }
    if !package.features.is_empty() {
        sets.push(vec!["--all-features"]);
    }
    sets
}
