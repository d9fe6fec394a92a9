//! A file with a system, whose numbers can be changed by their paths.

use core::ops::Range;
use std::collections::BTreeMap;
use std::fs::File;
use std::io::{self, Read as _};
use std::path::{Path, PathBuf};

use stagger_core::text::nearest;
use toml::de::DeTable;

use super::error::{FileProblem, SystemFileError};
use super::read::{USERS, edge_path, system};
use super::table::{FileContents, FileNumber, Reader};
use crate::system::definition::System;

/// A system as a TOML file, whose numbers can be changed by their paths.
///
/// ```
/// use stagger_sim::system::SystemFile;
///
/// let file = SystemFile::parse(
///     r#"
///     [users]
///     rate = "50/s"
///     [tier.database]
///     service = "2ms"
///     backlog = 1500
///     [[edge]]
///     from = "users"
///     to = "database"
///     policy = { backoff = "zero", max-attempts = 3 }
///     [[trigger]]
///     kind = "stall"
///     "#,
/// )?;
/// assert_eq!(file.system().rate(), 50.0);
/// assert_eq!(file.with("users.rate", "80/s")?.system().rate(), 80.0);
///
/// let wrong = SystemFile::parse("[users]\nraet = 50").unwrap_err();
/// assert_eq!(wrong.problems()[1].to_string(), "line 2, column 1: unknown key `raet`; did you mean `rate`?");
/// # Ok::<(), stagger_sim::system::SystemFileError>(())
/// ```
#[derive(Clone, Debug)]
pub struct SystemFile {
    text: String,
    name: Option<String>,
    directory: Option<PathBuf>,
    /// Values that replace those of the file, by path.
    values: BTreeMap<String, String>,
    system: System,
    numbers: Vec<FileNumber>,
    /// The bytes of values and of the heads of tables, by path.
    places: BTreeMap<String, Range<usize>>,
}

impl SystemFile {
    /// The longest file that is read, in bytes.
    pub const MAX_BYTES: u64 = 1_024 * 1_024;

    /// Reads a file.
    ///
    /// # Errors
    /// [`SystemFileError`] if it cannot be read or is longer than [`MAX_BYTES`](Self::MAX_BYTES), with all problems if
    /// it does not describe a system.
    pub fn read(path: impl AsRef<Path>) -> Result<Self, SystemFileError> {
        let path = path.as_ref();
        let name = path.display().to_string();
        let bytes = match read_at_most(path, Self::MAX_BYTES + 1) {
            Ok(bytes) => bytes,
            Err(error) => return Err(SystemFileError::unreadable(name, error)),
        };
        if bytes.len() as u64 > Self::MAX_BYTES {
            let problem = format!("it is longer than {} bytes; a system is shorter", Self::MAX_BYTES);
            return Err(SystemFileError::of_file(Some(name), problem));
        }
        let Ok(text) = String::from_utf8(bytes) else {
            return Err(SystemFileError::of_file(Some(name), "it is not valid UTF-8; save it as UTF-8"));
        };
        let directory = path.parent().map(Path::to_owned).unwrap_or_default();
        Self::new(text, Some(name), Some(directory), BTreeMap::new())
    }

    /// Parses the text of a file. It cannot name files with policies.
    ///
    /// # Errors
    /// [`SystemFileError`] with all problems.
    pub fn parse(text: impl Into<String>) -> Result<Self, SystemFileError> {
        Self::new(text.into(), None, None, BTreeMap::new())
    }

    fn new(
        text: String,
        name: Option<String>,
        directory: Option<PathBuf>,
        values: BTreeMap<String, String>,
    ) -> Result<Self, SystemFileError> {
        let failed = |problems| SystemFileError { name: name.clone(), problems, source: None };
        let root = DeTable::parse(&text).map_err(|error| {
            let at = error.span().map(|span| span.start);
            failed(vec![FileProblem::new(&text, at, format!("this is not TOML: {}", error.message()))])
        })?;
        let reader = Reader::new(&text, directory.as_deref(), &values);
        let built = system(&reader, root.get_ref());
        let FileContents { problems, numbers, places } = reader.finish();
        match built {
            Some(system) if problems.is_empty() => {
                drop(root);
                Ok(Self { text, name, directory, values, system, numbers, places })
            }
            _ => Err(failed(problems)),
        }
    }

    /// Returns the file with another text, and the values that were set by [`with`](Self::with).
    ///
    /// # Errors
    /// [`SystemFileError`] with all problems.
    pub fn with_text(&self, text: String) -> Result<Self, SystemFileError> {
        Self::new(text, self.name.clone(), self.directory.clone(), self.values.clone())
    }

    /// Returns the system.
    #[must_use]
    pub const fn system(&self) -> &System {
        &self.system
    }

    /// Returns the text of the file.
    #[must_use]
    pub fn text(&self) -> &str {
        &self.text
    }

    /// Returns the numbers that can be changed, those that have their default included.
    #[must_use]
    pub fn numbers(&self) -> &[FileNumber] {
        &self.numbers
    }

    /// Returns the bytes of the value at a path, or of the head of the table; `None` if the file does not have it.
    #[must_use]
    pub fn span(&self, path: &str) -> Option<Range<usize>> {
        self.places.get(path).cloned()
    }

    /// Returns the paths of the edges, in their order: `edge.orders-database`, and `edge.orders-database#2` for a
    /// second one between the same services.
    #[must_use]
    pub fn edge_paths(&self) -> Vec<String> {
        let layout = self.system.layout();
        let mut names = Vec::new();
        let mut paths = Vec::new();
        for edge in &layout.edges {
            let from = match edge.from {
                Some(service) => &*layout.services[service].name,
                None => USERS,
            };
            let to = &layout.services[edge.to].name;
            paths.push(edge_path(&mut names, format!("{from}-{to}")));
        }
        paths
    }

    /// Returns the numbers that a name stands for: the one with this path, or all whose path ends with it. `attempts`
    /// stands for `max-attempts`, `budget` for `tokens`, `length` and `duration` for `for`, and `size` for the `share`,
    /// `factor` or `workers` of the triggers.
    ///
    /// # Errors
    /// The names that are similar, if there is no such number.
    pub fn find(&self, name: &str) -> Result<Vec<&FileNumber>, String> {
        let name = match name {
            "attempts" => "max-attempts",
            "budget" => "tokens",
            "length" | "duration" => "for",
            name => name,
        };
        if name == "size" {
            let is_size = |path: &str| {
                path.starts_with("trigger.") && [".share", ".factor", ".workers"].iter().any(|end| path.ends_with(end))
            };
            let sizes: Vec<_> = self.numbers.iter().filter(|number| is_size(&number.path)).collect();
            let no_size =
                "no trigger of the file has a size; use a trigger of kind share, error, workers, slow or spike";
            return if sizes.is_empty() { Err(no_size.to_owned()) } else { Ok(sizes) };
        }
        let ends = |path: &str| path == name || path.strip_suffix(name).is_some_and(|rest| rest.ends_with('.'));
        let found: Vec<_> = self.numbers.iter().filter(|number| ends(&number.path)).collect();
        if !found.is_empty() {
            return Ok(found);
        }
        let paths = self.numbers.iter().map(|number| &*number.path);
        let last = paths.clone().filter_map(|path| path.rsplit('.').next());
        Err(match nearest(name, paths.clone().chain(last)) {
            Some(nearest) => format!("the file has no number `{name}`; did you mean `{nearest}`?"),
            None => {
                let all: Vec<_> = paths.collect();
                format!("the file has no number `{name}`; use the path of one, or its last word: {}", all.join(", "))
            }
        })
    }

    /// Returns the file with another value at a path, as the file would have it: `80/s`, `1.5s`, `3`.
    ///
    /// # Errors
    /// [`SystemFileError`] if the value does not fit.
    pub fn with(&self, path: &str, value: &str) -> Result<Self, SystemFileError> {
        self.with_all([(path, value)])
    }

    /// Returns the file with other values at several paths.
    ///
    /// # Errors
    /// [`SystemFileError`] if the values do not fit.
    pub fn with_all<'v>(&self, values: impl IntoIterator<Item = (&'v str, &'v str)>) -> Result<Self, SystemFileError> {
        let mut all = self.values.clone();
        for (path, value) in values {
            if !self.numbers.iter().any(|number| number.path == path) {
                let problem = match self.find(path) {
                    Err(problem) => problem,
                    Ok(_) => format!("`{path}` is not a whole path"),
                };
                return Err(SystemFileError::of_file(self.name.clone(), problem));
            }
            all.insert(path.to_owned(), value.to_owned());
        }
        Self::new(self.text.clone(), self.name.clone(), self.directory.clone(), all)
    }
}

/// Reads the start of a file. The limit keeps a wrong path, such as that of a device, from filling the memory.
fn read_at_most(path: &Path, limit: u64) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    File::open(path)?.take(limit).read_to_end(&mut bytes)?;
    Ok(bytes)
}

impl System {
    /// Reads a system from a TOML file: see [`SystemFile`].
    ///
    /// # Errors
    /// [`SystemFileError`] if the file cannot be read, or with all problems of the system.
    pub fn from_file(path: impl AsRef<Path>) -> Result<Self, SystemFileError> {
        SystemFile::read(path).map(|file| file.system)
    }

    /// Parses a system from the text of such a file.
    ///
    /// # Errors
    /// [`SystemFileError`] with all problems of the system.
    pub fn from_toml(text: &str) -> Result<Self, SystemFileError> {
        SystemFile::parse(text).map(|file| file.system)
    }
}
