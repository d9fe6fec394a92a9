use serde_json::Value;

use crate::ci::{Note, Options};
use crate::shell::Shell;
use crate::workspace::{self, Package, Workspace};
use crate::{Result, rustdoc};

/// Documents each published library with exactly the features and arguments of its `package.metadata.docs.rs`.
///
/// docs.rs has a nightly toolchain, where `cfg(docsrs)` enables unstable features; with `RUSTC_BOOTSTRAP` the stable one
/// accepts them, too.
pub(crate) fn run(_: &Options) -> Result<Note> {
    let workspace = Workspace::here()?;
    let libraries: Vec<_> = workspace.published().filter(|package| package.is_library()).collect();
    for library in &libraries {
        let settings = Settings::of(library)?;
        let cargo = Shell::cargo("rustdoc --quiet --lib --package").args([&library.name]).args(settings.features);
        rustdoc::with_unstable_options(cargo.args(["--", "-D", "warnings"]).args(settings.rustdoc))?.run()?;
    }
    Ok(Some(format!("{} libraries", libraries.len())))
}

/// What a manifest asks of docs.rs.
#[derive(Debug, Default, PartialEq)]
struct Settings {
    features: Vec<String>,
    rustdoc: Vec<String>,
}

impl Settings {
    fn of(package: &Package) -> Result<Self> {
        Self::parse(&package.manifest("metadata")["docs"]["rs"])
            .map_err(|error| format!("{}: {error} in [package.metadata.docs.rs]", package.name).into())
    }

    /// # Errors
    ///
    /// If the table has a key that is not translated here: ignoring it would check something else than what docs.rs builds.
    fn parse(table: &Value) -> core::result::Result<Self, String> {
        let mut settings = Self::default();
        let strings =
            |value: &Value| -> Vec<String> { value.as_array().into_iter().flatten().map(workspace::text).collect() };
        for (key, value) in table.as_object().ok_or("no settings")? {
            match key.as_str() {
                "all-features" if *value == true => settings.features.push("--all-features".to_owned()),
                "no-default-features" if *value == true => settings.features.push("--no-default-features".to_owned()),
                "features" => settings.features.push(format!("--features={}", strings(value).join(","))),
                "rustdoc-args" => settings.rustdoc = strings(value),
                other => return Err(format!("unknown setting `{other} = {value}`")),
            }
        }
        Ok(settings)
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn settings_of_docs_rs_become_arguments_of_cargo_and_rustdoc() {
        let table = json!({ "all-features": true, "rustdoc-args": ["--cfg", "docsrs"] });
        let settings = Settings::parse(&table).unwrap();
        assert_eq!(settings.features, ["--all-features"]);
        assert_eq!(settings.rustdoc, ["--cfg", "docsrs"]);
        let settings = Settings::parse(&json!({ "features": ["a", "b"], "no-default-features": true })).unwrap();
        assert_eq!(settings.features, ["--features=a,b", "--no-default-features"]);
    }

    #[test]
    fn a_setting_of_docs_rs_that_is_not_checked_is_an_error() {
        assert_eq!(Settings::parse(&json!({ "targets": ["a"] })).unwrap_err(), "unknown setting `targets = [\"a\"]`");
        assert_eq!(Settings::parse(&Value::Null).unwrap_err(), "no settings");
    }
}
