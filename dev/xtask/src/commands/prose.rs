use std::ffi::OsString;

use crate::Result;
use crate::prose::Prose;

/// Prints each place that is counted, then the counts.
pub(crate) fn run(arguments: &[OsString]) -> Result {
    if !arguments.is_empty() {
        return Err("takes no arguments".into());
    }
    let prose = Prose::from_workspace()?;
    prose.places().for_each(|place| println!("{place}"));
    println!("{prose}");
    prose.check()
}
