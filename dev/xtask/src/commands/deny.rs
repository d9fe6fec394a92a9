use std::ffi::OsString;

use crate::{Result, tool};

/// Checks everything but advisories: their database changes independently of this repository.
pub(crate) fn run(arguments: &[OsString]) -> Result {
    tool::cargo("deny", "--all-features check")?.args(arguments).args(["bans", "licenses", "sources"]).run()
}
