use std::ffi::OsString;

use crate::{Result, tool};

/// Without the advisories: their database is another repository, and has a day of its own.
pub(crate) fn run(arguments: &[OsString]) -> Result {
    tool::cargo("deny", "--all-features check")?.args(arguments).args(["bans", "licenses", "sources"]).run()
}
