use crate::Result;
use crate::ci::{Note, Options};
use crate::shell::Shell;
use crate::workspace::everything;

pub(crate) fn run(_: &Options) -> Result<Note> {
    Shell::cargo("clippy --all-targets").args(everything()?).args(["--", "-D", "warnings"]).run()?;
    Ok(None)
}
