use core::time::Duration;

use crate::Result;
use crate::ci::{Note, Options};
use crate::shell::Shell;
use crate::workspace::{Workspace, everything};

/// An example that takes longer is not useful to a reader.
const LIMIT: Duration = Duration::from_secs(60);

pub(crate) fn run(_: &Options) -> Result<Note> {
    let workspace = Workspace::here()?;
    // All at once and with the features of the step `test`, which has built their dependencies.
    Shell::cargo("build --examples").args(everything()?).run()?;
    let directory = workspace.target_directory.join("debug/examples");
    let mut ran = 0;
    for package in &workspace.packages {
        for example in package.targets("example") {
            Shell::new(directory.join(example)).run_within(LIMIT)?;
            ran += 1;
        }
    }
    Ok(Some(format!("{ran} ran")))
}
