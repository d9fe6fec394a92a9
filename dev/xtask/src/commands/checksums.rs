use std::ffi::OsString;
use std::fs;

use crate::Result;
use crate::release::archive::checksums;
use crate::release::stage::dist;

/// The name of the file with the checksums of the others.
const SUMS: &str = "SHA256SUMS";

/// Writes the checksums of the files of a release, in the format that `sha256sum --check` reads.
pub(crate) fn run(arguments: &[OsString]) -> Result {
    if !arguments.is_empty() {
        return Err("takes no arguments".into());
    }
    let dist = dist()?;
    let sums = checksums(&dist, SUMS)?;
    fs::write(dist.join(SUMS), &sums)?;
    print!("{sums}");
    Ok(())
}
