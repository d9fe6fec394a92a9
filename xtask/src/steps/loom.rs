use crate::Result;
use crate::ci::{Note, Options};
use crate::shell::Shell;
use crate::workspace::{self, Workspace};

/// Runs the tests with `loom` in their names, of the packages that depend on loom.
///
/// By name, because under `cfg(loom)` the other tests would meet loom's atomics outside of a model, where
/// they panic.
pub(crate) fn run(_: &Options) -> Result<Note> {
    let workspace = Workspace::here()?;
    let tested = workspace.packages.iter().filter(|package| package.dependencies.iter().any(|name| name == "loom"));
    let names: Vec<_> = tested.map(|package| package.name.as_str()).collect();
    if names.is_empty() {
        return Ok(Some("no package depends on loom".to_owned()));
    }
    let directory = workspace::target_directory("loom")?;
    for name in &names {
        // Optimised, because a model runs thousands of times.
        Shell::cargo("test --release --lib --tests loom --package")
            .args([name, "--target-dir"])
            .args([&directory])
            .env("RUSTFLAGS", "--cfg loom")
            .run()?;
    }
    Ok(Some(names.join(", ")))
}
