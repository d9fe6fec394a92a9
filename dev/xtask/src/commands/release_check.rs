use std::ffi::OsString;

use crate::Result;
use crate::release::readiness::Facts;

/// Refuses the release of a version while anything is missing, and lists all of it.
pub(crate) fn run(arguments: &[OsString]) -> Result {
    let version = version(arguments)?;
    let problems = Facts::here(&version)?.problems();
    if !problems.is_empty() {
        return Err(format!("{version} cannot be released:\n- {}", problems.join("\n- ")).into());
    }
    println!("{version} can be released");
    Ok(())
}

/// Returns the only argument, a version as in a tag or without its `v`.
pub(crate) fn version(arguments: &[OsString]) -> Result<String> {
    let [version] = arguments else { return Err("name the version, and nothing else: 1.2.3 or v1.2.3".into()) };
    let version = version.to_str().ok_or("the version is not UTF-8")?;
    Ok(version.strip_prefix('v').unwrap_or(version).to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_version_is_read_from_a_tag_too() {
        let read = |words: &[&str]| version(&words.iter().map(Into::into).collect::<Vec<_>>());
        assert_eq!(read(&["v1.2.3"]).unwrap(), "1.2.3");
        assert_eq!(read(&["1.2.3"]).unwrap(), "1.2.3");
        assert!(read(&[]).is_err() && read(&["1.2.3", "--force"]).is_err());
    }
}
