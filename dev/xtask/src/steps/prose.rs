use crate::Result;
use crate::ci::{Note, Options};
use crate::prose::Prose;

/// Prints the places only if a limit is exceeded.
pub(crate) fn run(_: &Options) -> Result<Note> {
    let prose = Prose::from_workspace()?;
    if prose.check().is_err() {
        prose.places().for_each(|place| println!("{place}"));
    }
    prose.check()?;
    Ok(Some(prose.to_string()))
}
