use core::time::Duration;

use crate::Result;
use crate::ci::{Note, Options};
use crate::shell::Shell;
use crate::workspace::Workspace;

/// An example that takes longer is not useful to a reader.
const LIMIT: Duration = Duration::from_secs(60);

pub(crate) fn run(_: &Options) -> Result<Note> {
    let workspace = Workspace::here()?;
    let directory = workspace.target_directory.join("debug/examples");
    let mut ran = 0;
    for package in &workspace.packages {
        let examples = package.targets("example");
        if examples.is_empty() {
            continue;
        }
        Shell::cargo("build --examples --all-features --package").args([&package.name]).run()?;
        for example in examples {
            Shell::new(directory.join(example)).run_within(LIMIT)?;
            ran += 1;
        }
    }
    Ok(Some(format!("{ran} ran")))
}
