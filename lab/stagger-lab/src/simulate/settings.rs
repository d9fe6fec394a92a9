//! What to simulate: flags over a file, with the origin of each setting for error messages.

use core::fmt;
use std::collections::BTreeMap;
use std::fs::File;
use std::path::Path;

use serde::Deserialize;
use stagger_terminal::input;
use stagger_terminal::output::error::CliError;
use stagger_terminal::output::outside::path_shown;

use super::args::{CommonArgs, ScenarioKind};

/// The longest scenario file in bytes.
const MAX_BYTES: u64 = 1 << 20;

/// Contents of a scenario file.
#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "kebab-case")]
struct ScenarioFile {
    scenario: Option<ScenarioKind>,
    #[serde(default)]
    compare: Vec<String>,
    #[serde(default)]
    sweep: OneOrMany,
    seed: Option<u64>,
    seeds: Option<u32>,
    #[serde(default)]
    assert: Vec<String>,
    /// All other keys. As with flags, an unknown one is found when the scenario is built.
    #[serde(flatten)]
    settings: BTreeMap<String, TomlValue>,
}

/// One text, or a list of them.
#[derive(Debug, Deserialize)]
#[serde(untagged, expecting = "expected a string or a list of strings")]
enum OneOrMany {
    One(String),
    Many(Vec<String>),
}

impl Default for OneOrMany {
    fn default() -> Self {
        Self::Many(Vec::new())
    }
}

impl From<OneOrMany> for Vec<String> {
    fn from(texts: OneOrMany) -> Self {
        match texts {
            OneOrMany::One(text) => vec![text],
            OneOrMany::Many(texts) => texts,
        }
    }
}

/// Value of a setting in a file.
#[derive(Debug, Deserialize)]
#[serde(untagged, expecting = "expected a string or a number")]
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

/// What to simulate, from the file and the flags.
#[derive(Debug)]
pub(super) struct Request {
    pub(super) kind: ScenarioKind,
    pub(super) settings: Settings,
    pub(super) compare: Vec<String>,
    /// Guards of policies by name, where the scenario has none for all.
    pub(super) own_guards: BTreeMap<String, String>,
    pub(super) sweep: Vec<String>,
    pub(super) seed: u64,
    pub(super) seeds: u32,
    pub(super) assert: Vec<String>,
}

/// Settings of a scenario. The scenario takes out those that it has.
#[derive(Clone, Debug, Default)]
pub(super) struct Settings {
    entries: Vec<Setting>,
    /// Names that the scenario has asked for.
    known: Vec<&'static str>,
}

#[derive(Clone, Debug)]
struct Setting {
    name: String,
    text: String,
    /// Where the setting was given, for error messages: `--rate`, `storm.toml: rate`.
    origin: String,
}

/// Default seed of the first run, so that a simulation is reproducible without `--seed`.
const SEED: u64 = 1;

/// Maximum number of runs. The figures of all runs are kept in memory.
pub(super) const MAX_RUNS: usize = 10_000;

/// Maximum number of seeds, as for `--seeds`.
pub(super) const MAX_SEEDS: u32 = 1_000;

impl Request {
    /// Combines the file, if one is given, with the flags, which override it.
    pub(super) fn new(
        kind: ScenarioKind,
        given: &[(&'static str, String)],
        args: &CommonArgs,
    ) -> Result<Self, CliError> {
        let file = args.file.as_deref().map(read).transpose()?.unwrap_or_default();
        let path = args.file.as_deref().unwrap_or(Path::new("")).display().to_string();
        if let Some(other) = file.scenario.filter(|other| *other != kind) {
            let (shown, name) = (path_shown(args.file.as_deref().unwrap_or(Path::new(""))), other.name());
            return Err(CliError::usage(format_args!(
                "--file: {shown} is of another scenario; use: stagger simulate {name} --file {shown}"
            )));
        }
        let mut settings = file.settings(&path);
        for (name, text) in given {
            settings.set(name, text, &format!("--{name}"));
        }
        let flags_or = |flags: &[String], file: Vec<String>| if flags.is_empty() { file } else { flags.to_vec() };
        Ok(Self {
            kind,
            settings,
            compare: flags_or(&args.compare, file.compare),
            own_guards: BTreeMap::new(),
            sweep: flags_or(&args.sweep, file.sweep.into()),
            seed: args.policy.seed.or(file.seed).unwrap_or(SEED),
            seeds: match args.runs.seeds.or(file.seeds).unwrap_or(1) {
                seeds @ 1..=MAX_SEEDS => seeds,
                seeds => {
                    return Err(CliError::usage(format_args!(
                        "{path}: seeds: {seeds} is outside 1 to {MAX_SEEDS}; use a number in between"
                    )));
                }
            },
            assert: flags_or(&args.runs.assert, file.assert),
        })
    }

    /// Returns the number of seeds that are run: one if the scenario is deterministic.
    pub(super) const fn seed_count(&self) -> u32 {
        if self.kind.is_random() { self.seeds } else { 1 }
    }
}

fn read(path: &Path) -> Result<ScenarioFile, CliError> {
    let shown = path_shown(path);
    let text = input::text("--file: ", &shown, File::open(path), MAX_BYTES)?;
    toml::from_str(&text).map_err(|error| {
        let error = error.to_string();
        CliError::usage(format_args!("--file: in {shown}: {}\nuse TOML, such as clients = \"10k\"", error.trim_end()))
    })
}

impl ScenarioFile {
    /// Returns its settings, whose errors name the file.
    fn settings(&self, path: &str) -> Settings {
        let entries = self.settings.iter().map(|(name, value)| Setting {
            name: name.clone(),
            text: value.to_string(),
            origin: format!("{path}: {name}"),
        });
        Settings { entries: entries.collect(), known: Vec::new() }
    }
}

impl Settings {
    /// Sets a setting, in place of one of the same name. `origin` is where it was given.
    pub(super) fn set(&mut self, name: &str, text: &str, origin: &str) {
        self.entries.retain(|entry| entry.name != name);
        self.entries.push(Setting { name: name.to_owned(), text: text.to_owned(), origin: origin.to_owned() });
    }

    /// Takes out a setting and parses it; returns `None` if it was not given.
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

    /// Returns whether a setting was given.
    pub(super) fn has(&self, name: &str) -> bool {
        self.entries.iter().any(|entry| entry.name == name)
    }

    /// Passes a setting to the setter of a builder, if it was given.
    pub(super) fn apply<B, T>(
        &mut self,
        builder: B,
        name: &'static str,
        parse: impl FnOnce(&str) -> Result<T, String>,
        set: impl FnOnce(B, T) -> B,
    ) -> Result<B, CliError> {
        Ok(match self.take(name, parse)? {
            Some(value) => set(builder, value),
            None => builder,
        })
    }

    /// Checks that no setting is left over.
    pub(super) fn finish(self, kind: &str) -> Result<(), CliError> {
        let Some(Setting { name, origin, .. }) = self.entries.first() else {
            return Ok(());
        };
        let known = self.known.join(", ");
        Err(CliError::usage(format_args!(
            "{origin}: the {kind} scenario has no setting `{name}`; remove it or use one of {known}"
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
    fn an_unknown_setting_is_rejected_with_the_known_ones() {
        let mut settings = settings(&[("clients", "3"), ("weather", "fine")]);
        assert_eq!(settings.take("clients", |text| Ok(text.to_owned())).unwrap().as_deref(), Some("3"));
        assert_eq!(settings.take("rate", |text| Ok(text.to_owned())).unwrap(), None);
        let error = settings.finish("reconnect").unwrap_err().to_string();
        assert_eq!(
            error,
            "--weather: the reconnect scenario has no setting `weather`; remove it or use one of clients, rate"
        );
    }

    #[test]
    fn a_parse_error_names_the_origin_of_the_setting() {
        let error = settings(&[("clients", "some")]).take("clients", |_| Err::<(), _>("no".to_owned())).unwrap_err();
        assert_eq!(error.to_string(), "--clients: no");
    }
}
