use std::fs;
use std::path::{Path, PathBuf};

use ignore::WalkBuilder;

use stagger_terminal::output::error::CliError;
use stagger_terminal::output::write::say;

/// The most files of a directory that are read, and how deep it is searched.
const MAX_FILES: usize = 10_000;
const MAX_DEPTH: usize = 32;
/// The longest file of a directory that is read, in bytes.
const MAX_BYTES: u64 = 4 * 1_024 * 1_024;
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
            Err(error) => say(&format!("skipped {}: {}", error.path().display(), error.error())),
        }
    }
    if found.len() == before {
        return Err(CliError::usage(format_args!("no file matches `{pattern}`; name a file, or a directory")));
    }
    Ok(())
}

/// Adds the files of a directory, except those that git ignores, by name. Links are not followed.
fn directory(root: &Path, found: &mut Vec<Found>) -> Result<(), CliError> {
    fs::read_dir(root).map_err(|error| CliError::io(format_args!("cannot read {}", root.display()), error))?;
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
        let ending = entry.path().extension().and_then(|ending| ending.to_str()).unwrap_or_default();
        if !entry.file_type().is_some_and(|kind| kind.is_file()) || !ENDINGS.contains(&ending) {
            continue;
        }
        match entry.metadata() {
            Ok(metadata) if metadata.len() > MAX_BYTES => {
                say(&format!(
                    "skipped {}: it has more than {} MiB; name it to check it",
                    entry.path().display(),
                    MAX_BYTES >> 20
                ));
                continue;
            }
            Ok(_) => {}
            Err(error) => {
                say(&format!("skipped {}: {}", entry.path().display(), error));
                continue;
            }
        }
        count += 1;
        if count > MAX_FILES {
            say(&format!(
                "{} has more than {MAX_FILES} files; the others are skipped: name a directory below it",
                root.display()
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
