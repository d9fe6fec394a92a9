use crate::Result;
use crate::ci::{Note, Options};
use crate::shell::Shell;
use crate::workspace::{self, Workspace};

/// Runs the tests with `loom` in their names, in the packages that depend on loom.
///
/// Other tests are left out: under `cfg(loom)` they would use loom's atomics outside a model, which panics.
pub(crate) fn run(_: &Options) -> Result<Note> {
    let workspace = Workspace::here()?;
    let tested = workspace.packages.iter().filter(|package| package.dependencies.iter().any(|name| name == "loom"));
    let names: Vec<_> = tested.map(|package| package.name.as_str()).collect();
    if names.is_empty() {
        return Ok(Some("no package depends on loom".to_owned()));
    }
    let directory = workspace::target_directory("loom")?;
    for name in &names {
        // Optimized, because a model runs thousands of times.
        Shell::cargo("test --release --lib --tests loom --package")
            .args([name, "--target-dir"])
            .args([&directory])
            .env("RUSTFLAGS", "--cfg loom")
            .run()?;
    }
    Ok(Some(names.join(", ")))
}
