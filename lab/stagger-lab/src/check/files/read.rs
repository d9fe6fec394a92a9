//! Which files are checked, and what is read from them.

use std::collections::BTreeSet;
use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};

use ignore::WalkBuilder;
use stagger_config::Format;
use stagger_lint::config::{ConfigFile, check_layers};
use stagger_lint::{DeploymentContext, FileFinding, Rule, system};
use stagger_sim::system::SystemFile;
use stagger_terminal::input;
use stagger_terminal::output::error::CliError;
use stagger_terminal::output::outside::path_shown;
use stagger_terminal::output::write::say;

use super::notes::{Note, notes};
use super::refused::{nginx, refusal};

/// The longest file that is read, in bytes.
const MAX_BYTES: u64 = 64 * 1_024 * 1_024;
/// The name of standard input.
const STDIN: &str = "standard input";
/// Names of skipped files that are shown.
const SHOWN: usize = 5;

/// A checked file and its findings.
pub(crate) struct FileResult {
    pub(crate) name: String,
    /// What the file is: `system of services`, `Istio`.
    pub(crate) kind: String,
    pub(crate) findings: Vec<FileFinding>,
    /// Context flags that change nothing here.
    pub(crate) unused: Vec<UnusedFlag>,
    content: Content,
}

/// A context flag that changes nothing in a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct UnusedFlag {
    /// The flag without its hyphens.
    pub(crate) name: &'static str,
    pub(crate) reason: &'static str,
}

enum Content {
    System(String),
    Config(ConfigFile),
}

impl FileResult {
    /// Reads and checks the files of the arguments.
    pub(crate) fn all<'a>(
        arguments: impl Iterator<Item = &'a str>,
        format: Option<Format>,
        context: &DeploymentContext,
        allowed: &[&Rule],
    ) -> Result<Vec<Self>, CliError> {
        let (mut results, mut skipped) = (Vec::new(), Vec::new());
        let mut arguments = arguments.peekable();
        let is_asked = arguments.peek().is_some();
        let found = files(arguments)?;
        for file in &found {
            match Self::read(file, format, context) {
                Ok(Some(result)) => results.push(result),
                Ok(None) => {}
                // Of a directory, what can be checked is checked.
                Err(error) if !file.is_named => skipped.push(error.to_string()),
                Err(error) => return Err(error),
            }
        }
        if !skipped.is_empty() {
            let more = skipped.len().saturating_sub(SHOWN);
            let more = if more > 0 { format!("\nand {more} more") } else { String::new() };
            skipped.truncate(SHOWN);
            say(&format!("skipped {}{more}", skipped.join("\nskipped ")));
        }
        if results.is_empty() && is_asked {
            let files =
                if found.len() == 1 { "the file says".to_owned() } else { format!("the {} files say", found.len()) };
            say(&format!("{files} nothing about retries; name one to see how it is read"));
        }
        let configs: Vec<_> =
            results.iter().enumerate().filter_map(|(nth, result)| Some((nth, result.config()?))).collect();
        let (positions, configs): (Vec<_>, Vec<_>) =
            configs.into_iter().map(|(nth, config)| (nth, config.clone())).unzip();
        for (file, found) in check_layers(&configs) {
            results[positions[file]].findings.push(found);
        }
        for result in &mut results {
            result.findings.retain(|found| !allowed.contains(&found.finding().rule()));
        }
        Ok(results)
    }

    /// Reads and checks a file. Returns `None` for one that is not named on the command line and says nothing about
    /// retries.
    fn read(file: &Found, format: Option<Format>, context: &DeploymentContext) -> Result<Option<Self>, CliError> {
        let is_stdin = file.path == Path::new("-");
        let name = if is_stdin { STDIN.to_owned() } else { file.path.display().to_string() };
        let shown = path_shown(&name);
        let text = text(file, &shown)?;
        let ending = ending(&file.path);
        if (ending == "toml" || is_stdin) && format.is_none() && is_system(&text) {
            let read = if is_stdin { SystemFile::parse(&*text) } else { SystemFile::read(&file.path) };
            let findings = system::check(&read.map_err(CliError::usage)?);
            return Ok(Some(Self {
                name,
                kind: "system of services".to_owned(),
                findings,
                unused: unused_by_system(context),
                content: Content::System(text),
            }));
        }
        if ending == "toml" && !file.is_named {
            return Ok(None);
        }
        let config = match ConfigFile::read(&*name, &*text, format) {
            Ok(config) => config,
            Err(error) => {
                // Of a directory, it may be anything.
                let says_what_it_is = matches!(ending, "json" | "yaml" | "yml")
                    && error.to_string().starts_with("not valid")
                    || format.is_none() && nginx(&file.path, &text).is_some();
                if !file.is_named && !says_what_it_is {
                    return Ok(None);
                }
                return Err(CliError::usage(format_args!("{shown}:{}", refusal(&file.path, &text, format, &error))));
            }
        };
        if config.entries().is_empty() && !file.is_named {
            return Ok(None);
        }
        if has_drop_ins(&file.path) {
            say(&format!(
                "{shown}.d has drop-ins, which are not read with {shown}; `systemctl cat {} | stagger check -` checks \
                 all of them as one",
                path_shown(file.path.file_name().unwrap_or_default())
            ));
        }
        let unused =
            config.unused(context).into_iter().map(|fact| UnusedFlag { name: fact.name(), reason: fact.reason() });
        Ok(Some(Self {
            name,
            kind: kind(&config),
            findings: config.check_in(context),
            unused: unused.collect(),
            content: Content::Config(config),
        }))
    }

    /// Returns the text of the file.
    pub(crate) fn text(&self) -> &str {
        match &self.content {
            Content::System(text) => text,
            Content::Config(config) => config.text(),
        }
    }

    /// Returns what its reader has noticed beside the findings: fields that no policy expresses, and facts.
    pub(crate) fn notes(&self) -> Vec<Note<'_>> {
        self.config().map(notes).unwrap_or_default()
    }

    /// Returns whether it has been read from standard input.
    pub(crate) fn is_stdin(&self) -> bool {
        self.name == STDIN
    }

    const fn config(&self) -> Option<&ConfigFile> {
        match &self.content {
            Content::System(_) => None,
            Content::Config(config) => Some(config),
        }
    }
}

/// Returns the flags that are given: a system of services has facts of its own.
fn unused_by_system(context: &DeploymentContext) -> Vec<UnusedFlag> {
    let reason = "a system of services states its own load, time limits and guards";
    context.given().map(|name| UnusedFlag { name, reason }).collect()
}

/// Returns whether a unit of systemd has drop-ins beside it, which replace what it says.
fn has_drop_ins(path: &Path) -> bool {
    if !["service", "mount", "swap"].contains(&ending(path)) {
        return false;
    }
    let mut directory = path.as_os_str().to_owned();
    directory.push(".d");
    // A directory that is missing or cannot be read has none.
    let Ok(files) = fs::read_dir(directory) else { return false };
    files.flatten().any(|file| ending(&file.path()) == "conf")
}

/// Returns what the name of a file ends with, without the dot; nothing if that is no text.
pub(super) fn ending(path: &Path) -> &str {
    match path.extension() {
        Some(ending) => ending.to_str().unwrap_or_default(),
        None => "",
    }
}

/// Returns the systems that a file configures.
fn kind(config: &ConfigFile) -> String {
    const INCLUDE: &str = "include ";
    let includes = || config.text().lines().any(|line| line.trim_start().starts_with(INCLUDE));
    let formats: BTreeSet<_> = config.entries().iter().map(|entry| entry.format.to_string()).collect();
    match config.entries().len() {
        0 if includes() => "says nothing about retries, restarts or probes; what it includes is not read".to_owned(),
        0 => "says nothing about retries, restarts or probes".to_owned(),
        _ => formats.into_iter().collect::<Vec<_>>().join(", "),
    }
}

pub(super) fn text(file: &Found, name: &str) -> Result<String, CliError> {
    if file.path == Path::new("-") {
        return input::text("", name, Ok(io::stdin().lock()), MAX_BYTES);
    }
    input::text("", name, File::open(&file.path), MAX_BYTES)
}

/// Returns whether a TOML file has the tables of a system, also if it is not valid.
fn is_system(text: &str) -> bool {
    const TABLES: [&str; 3] = ["users", "tier", "edge"];
    let is_head =
        |line: &str| TABLES.iter().any(|table| line == format!("[[{table}]]") || line == format!("[{table}]"));
    match text.parse::<toml::Table>() {
        Ok(root) => root.keys().filter(|key| TABLES.contains(&key.as_str())).count() >= 2,
        Err(_) => text.lines().any(|line| is_head(line.trim())),
    }
}

/// The most files of a directory that are read, and how deep it is searched.
const MAX_FILES: usize = 10_000;
const MAX_DEPTH: usize = 32;
/// The longest file of a directory that is read, in bytes.
const MAX_FOUND_BYTES: u64 = 4 * 1_024 * 1_024;
/// Endings of files that may contain retry settings.
const ENDINGS: [&str; 12] =
    ["cfg", "conf", "json", "jsonc", "mount", "nginx", "properties", "service", "swap", "toml", "yaml", "yml"];

/// A file to check.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Found {
    pub(super) path: PathBuf,
    /// Whether the command line names it. Of other files, only those are reported that say something about retries.
    pub(super) is_named: bool,
}

/// Returns the files of the arguments: files, the files of directories, and those that match patterns.
pub(super) fn files<'a>(arguments: impl Iterator<Item = &'a str>) -> Result<Vec<Found>, CliError> {
    let mut found = Vec::new();
    for argument in arguments {
        let path = Path::new(argument);
        if path.is_dir() {
            directory(path, &mut found)?;
        } else if argument != "-" && !path.exists() && argument.contains(['*', '?', '[']) {
            matches(argument, &mut found)?;
        } else {
            found.push(Found { path: path.to_owned(), is_named: true });
        }
    }
    let mut seen = std::collections::HashSet::new();
    found.retain(|file: &Found| seen.insert(file.path.clone()));
    Ok(found)
}

/// Adds the files that match a pattern.
fn matches(pattern: &str, found: &mut Vec<Found>) -> Result<(), CliError> {
    let paths =
        glob::glob(pattern).map_err(|error| CliError::usage(format_args!("`{pattern}` is not a pattern: {error}")))?;
    let before = found.len();
    for path in paths.take(MAX_FILES) {
        match path {
            Ok(path) if path.is_dir() => {}
            // As in a directory, what is of another kind is passed over.
            Ok(path) => found.push(Found { path, is_named: false }),
            Err(error) => say(&format!("skipped {}: {}", path_shown(error.path()), error.error())),
        }
    }
    if found.len() == before {
        return Err(CliError::usage(format_args!("no file matches `{pattern}`; name a file, or a directory")));
    }
    Ok(())
}

/// Adds the files of a directory, except those that git ignores, by name. Links are not followed.
fn directory(root: &Path, found: &mut Vec<Found>) -> Result<(), CliError> {
    fs::read_dir(root).map_err(|error| CliError::io(format_args!("cannot read {}", path_shown(root)), error))?;
    let walk =
        WalkBuilder::new(root).max_depth(Some(MAX_DEPTH)).require_git(false).sort_by_file_path(Path::cmp).build();
    let mut count = 0;
    for entry in walk {
        let entry = match entry {
            Ok(entry) => entry,
            Err(error) => {
                say(&format!("skipped: {error}"));
                continue;
            }
        };
        let ending = ending(entry.path());
        if !entry.file_type().is_some_and(|kind| kind.is_file()) || !ENDINGS.contains(&ending) {
            continue;
        }
        match entry.metadata() {
            Ok(metadata) if metadata.len() > MAX_FOUND_BYTES => {
                say(&format!(
                    "skipped {}: it has more than {} MiB; name it to check it",
                    path_shown(entry.path()),
                    MAX_FOUND_BYTES >> 20
                ));
                continue;
            }
            Ok(_) => {}
            Err(error) => {
                say(&format!("skipped {}: {}", path_shown(entry.path()), error));
                continue;
            }
        }
        count += 1;
        if count > MAX_FILES {
            say(&format!(
                "{} has more than {MAX_FILES} files; the others are skipped: name a directory below it",
                path_shown(root)
            ));
            return Ok(());
        }
        found.push(Found { path: entry.into_path(), is_named: false });
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(found: &[Found], root: &Path) -> Vec<String> {
        let name = |found: &Found| found.path.strip_prefix(root).unwrap_or(&found.path).display().to_string();
        found.iter().map(name).collect()
    }

    #[test]
    fn a_directory_is_searched_without_what_git_ignores() {
        let root = tempfile::tempdir().unwrap();
        for (name, text) in [
            ("b.yaml", ""),
            ("deep/er/a.service", ""),
            ("target/c.yaml", ""),
            ("notes.md", ""),
            (".gitignore", "target\n"),
        ] {
            let path = root.path().join(name);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        }
        let text = root.path().display().to_string();
        let found = files([&*text].into_iter()).unwrap();
        assert_eq!(names(&found, root.path()), ["b.yaml", "deep/er/a.service"]);
        assert!(found.iter().all(|file| !file.is_named));
        let pattern = format!("{text}/**/*.service");
        let found = files([&*pattern, &*pattern].into_iter()).unwrap();
        assert_eq!(names(&found, root.path()), ["deep/er/a.service"]);
        let error = files(["/nothing/*.here"].into_iter()).unwrap_err().to_string();
        assert!(error.contains("no file matches `/nothing/*.here`"), "{error}");
    }
}
