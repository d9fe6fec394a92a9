use core::fmt;
use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use serde::Deserialize;

use super::args::{ScenarioKind, SimulateArgs};
use crate::error::CliError;

/// What a file says.
#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "kebab-case")]
struct ScenarioFile {
    scenario: Option<ScenarioKind>,
    #[serde(default)]
    compare: Vec<String>,
    sweep: Option<String>,
    seed: Option<u64>,
    seeds: Option<u32>,
    #[serde(default)]
    assert: Vec<String>,
    /// What is not a setting is found where the scenario is built, as with flags.
    #[serde(flatten)]
    settings: BTreeMap<String, TomlValue>,
}

/// A value as it stands in a file.
#[derive(Debug, Deserialize)]
#[serde(untagged)]
enum TomlValue {
    Text(String),
    Whole(i64),
    Fraction(f64),
}

impl fmt::Display for TomlValue {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Text(text) => f.write_str(text),
            Self::Whole(number) => number.fmt(f),
            Self::Fraction(number) => number.fmt(f),
        }
    }
}

/// All that was asked for, by file and by flags.
#[derive(Debug)]
pub(super) struct Request {
    pub(super) kind: ScenarioKind,
    pub(super) settings: Settings,
    pub(super) compare: Vec<String>,
    pub(super) sweep: Option<String>,
    pub(super) seed: u64,
    pub(super) seeds: u32,
    pub(super) assert: Vec<String>,
}

/// The settings of a scenario; what is taken out is gone.
#[derive(Debug, Default)]
pub(super) struct Settings {
    entries: Vec<Setting>,
    /// The names that somebody asked for.
    known: Vec<&'static str>,
}

#[derive(Debug)]
struct Setting {
    name: String,
    text: String,
    /// Where it stands, for those who have to mend it: `--rate`, `storm.toml: rate`.
    origin: String,
}

/// The seed of the first run, unless another is given: the same simulation comes out the same every time.
const SEED: u64 = 1;

impl Request {
    /// Reads the file, if there is one; flags override it.
    ///
    /// # Errors
    /// The file cannot be read, or is not TOML.
    pub(super) fn new(args: &SimulateArgs) -> Result<Self, CliError> {
        let file = args.file.as_deref().map(read).transpose()?.unwrap_or_default();
        let path = args.file.as_deref().unwrap_or(Path::new("")).display();
        let from_file = file.settings.iter().map(|(name, value)| Setting {
            name: name.clone(),
            text: value.to_string(),
            origin: format!("{path}: {name}"),
        });
        let mut entries: Vec<Setting> = from_file.collect();
        for (name, text) in args.settings.given() {
            entries.retain(|entry| entry.name != name);
            entries.push(Setting { name: name.to_owned(), text: text.to_owned(), origin: format!("--{name}") });
        }
        let flags_or = |flags: &[String], file: Vec<String>| if flags.is_empty() { file } else { flags.to_vec() };
        Ok(Self {
            kind: args.scenario.or(file.scenario).unwrap_or_default(),
            settings: Settings { entries, known: Vec::new() },
            compare: flags_or(&args.compare, file.compare),
            sweep: args.sweep.clone().or(file.sweep),
            seed: args.policy.seed.or(file.seed).unwrap_or(SEED),
            seeds: args.seeds.or(file.seeds).unwrap_or(1).max(1),
            assert: flags_or(&args.assert, file.assert),
        })
    }
}

fn read(path: &Path) -> Result<ScenarioFile, CliError> {
    let shown = path.display();
    let text =
        fs::read_to_string(path).map_err(|error| CliError::io(format_args!("--file: cannot read {shown}"), error))?;
    toml::from_str(&text).map_err(|error| {
        let error = error.to_string();
        CliError::usage(format_args!(
            "--file: in {shown}: {}\nwrite it as TOML, like clients = \"10k\"",
            error.trim_end()
        ))
    })
}

impl Settings {
    /// A setting, read by `parse`; `None` if it was not given.
    ///
    /// # Errors
    /// It cannot be understood.
    pub(super) fn take<T>(
        &mut self,
        name: &'static str,
        parse: impl FnOnce(&str) -> Result<T, String>,
    ) -> Result<Option<T>, CliError> {
        self.known.push(name);
        let Some(at) = self.entries.iter().position(|entry| entry.name == name) else {
            return Ok(None);
        };
        let Setting { text, origin, .. } = self.entries.remove(at);
        parse(&text).map(Some).map_err(|error| CliError::usage(format_args!("{origin}: {error}")))
    }

    /// Nothing is left over.
    ///
    /// # Errors
    /// Something is, which this kind of scenario does not have.
    pub(super) fn finish(self, kind: &str) -> Result<(), CliError> {
        let Some(Setting { name, origin, .. }) = self.entries.first() else {
            return Ok(());
        };
        let known = self.known.join(", ");
        Err(CliError::usage(format_args!(
            "{origin}: `{name}` is not a setting of {kind}, which has {known}; leave it out"
        )))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn settings(pairs: &[(&str, &str)]) -> Settings {
        let entry = |&(name, text): &(&str, &str)| Setting {
            name: name.to_owned(),
            text: text.to_owned(),
            origin: format!("--{name}"),
        };
        Settings { entries: pairs.iter().map(entry).collect(), known: Vec::new() }
    }

    #[test]
    fn what_nobody_takes_is_refused_with_what_there_is() {
        let mut settings = settings(&[("clients", "3"), ("weather", "fine")]);
        assert_eq!(settings.take("clients", |text| Ok(text.to_owned())).unwrap().as_deref(), Some("3"));
        assert_eq!(settings.take("rate", |text| Ok(text.to_owned())).unwrap(), None);
        let error = settings.finish("reconnect").unwrap_err().to_string();
        assert_eq!(error, "--weather: `weather` is not a setting of reconnect, which has clients, rate; leave it out");
    }

    #[test]
    fn what_cannot_be_understood_names_its_place() {
        let error = settings(&[("clients", "some")]).take("clients", |_| Err::<(), _>("no".to_owned())).unwrap_err();
        assert_eq!(error.to_string(), "--clients: no");
    }
}
