use crate::Result;
use crate::ci::{Note, Options};
use crate::shell::Shell;
use crate::workspace::{Package, Workspace};

pub(crate) fn run(_: &Options) -> Result<Note> {
    let mut checked = 0;
    for package in Workspace::here()?.published() {
        for set in sets(package) {
            // The flags for clippy alone, not RUSTFLAGS: those would build every dependency once more.
            let clippy = Shell::cargo("clippy --package").args([&package.name]).args(&set);
            clippy.args(["--", "-D", "warnings"]).run()?;
            checked += 1;
        }
    }
    Ok(Some(format!("{checked} sets")))
}

/// No feature, each alone, all. One of them is enough for a package without features.
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
