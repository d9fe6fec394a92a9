//! The cost of one build.

use std::collections::HashSet;
use std::fs;
use std::io;

/// The cost of one clean build.
#[derive(Debug, Clone, Copy, PartialEq, serde::Serialize)]
pub(crate) struct Build {
    /// Time from scratch to the program.
    pub(crate) seconds: f64,
    /// Number of compiled crates, without the dependant itself.
    pub(crate) crates: u32,
    /// Size of the stripped program in bytes.
    pub(crate) bytes: u64,
}

impl Build {
    /// Returns the faster of two builds.
    pub(super) const fn faster(self, other: Self) -> Self {
        if other.seconds < self.seconds { other } else { self }
    }

    /// Creates the cost from `messages`, the output of cargo with `--message-format=json`.
    ///
    /// # Errors
    /// If the build produced no program, or the program cannot be read.
    pub(super) fn from_messages(messages: &str, seconds: f64) -> io::Result<Self> {
        let mut packages = HashSet::new();
        let mut program = None;
        for line in messages.lines() {
            let message: serde_json::Value = serde_json::from_str(line)?;
            if message["reason"] != "compiler-artifact" {
                continue;
            }
            packages.insert(message["package_id"].to_string());
            if let Some(path) = message["executable"].as_str() {
                program = Some(fs::metadata(path)?.len());
            }
        }
        let bytes = program.ok_or_else(|| io::Error::other("cargo built no program"))?;
        Ok(Self { seconds, crates: packages.len().saturating_sub(1) as u32, bytes })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_package_with_a_build_script_counts_once_and_the_dependant_does_not_count() {
        let program = tempfile::NamedTempFile::new().unwrap();
        fs::write(program.path(), [0; 10]).unwrap();
        let messages = format!(
            r#"{{"reason":"compiler-artifact","package_id":"a","executable":null}}
{{"reason":"build-script-executed","package_id":"a"}}
{{"reason":"compiler-artifact","package_id":"a","executable":null}}
{{"reason":"compiler-artifact","package_id":"b","executable":null}}
{{"reason":"compiler-artifact","package_id":"dependant","executable":{path:?}}}
{{"reason":"build-finished","success":true}}"#,
            path = program.path()
        );
        let build = Build::from_messages(&messages, 1.5).unwrap();
        assert_eq!(build, Build { seconds: 1.5, crates: 2, bytes: 10 });
    }

    #[test]
    fn a_build_without_a_program_is_an_error() {
        assert!(Build::from_messages(r#"{"reason":"build-finished","success":false}"#, 1.0).is_err());
    }
}
