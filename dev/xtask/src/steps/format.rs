use crate::Result;
use crate::ci::{Note, Options};
use crate::shell::Shell;
use crate::steps::{fuzz, no_std};

pub(crate) fn run(_: &Options) -> Result<Note> {
    Shell::cargo("fmt --all --check").run()?;
    for manifest in [fuzz::MANIFEST, no_std::MANIFEST] {
        Shell::cargo("fmt --check --manifest-path").args([manifest]).run()?;
    }
    Ok(None)
}
