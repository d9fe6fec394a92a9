use std::ffi::OsStr;
use std::fs::{self, File};
use std::io::{self, ErrorKind, Write};
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use serde::Serialize;
use tempfile::{Builder, NamedTempFile};

use super::error::CliError;
use super::outside::in_lines;
use crate::output::outside::path_shown;

/// Writes a result to standard output. A closed pipe (`| head`) is not an error.
pub fn print(bytes: &[u8]) -> Result<(), CliError> {
    let mut stdout = io::stdout().lock();
    match stdout.write_all(bytes).and_then(|()| stdout.flush()) {
        Err(error) if error.kind() != ErrorKind::BrokenPipe => {
            Err(CliError::io("cannot write to standard output", error))
        }
        _ => Ok(()),
    }
}

/// Prints a message for humans to standard error.
pub fn say(text: &str) {
    // If standard error is closed, the exit code still reports a failure.
    let _ = writeln!(io::stderr(), "{}", in_lines(text));
}

/// Serializes a document as one line of JSON.
pub fn to_json(document: &impl Serialize) -> Result<String, CliError> {
    let text = serde_json::to_string(document).map_err(|error| CliError::io("cannot write JSON", error))?;
    Ok(text + "\n")
}

/// Returns the command line, quoted so that it can be pasted into a shell.
pub fn command_line() -> String {
    let args: Vec<String> = std::env::args_os().skip(1).map(|arg| arg.to_string_lossy().into_owned()).collect();
    // Fails only for NUL bytes, which an argument cannot contain.
    let args = shlex::try_join(args.iter().map(String::as_str)).unwrap_or_default();
    format!("stagger {args}")
}

/// What each JSON line of a log says besides its event: when it was written, and by which run.
#[derive(Debug, Serialize)]
pub struct Stamp<'a> {
    /// RFC 3339, UTC.
    time: String,
    run: &'a RunId,
}

impl<'a> Stamp<'a> {
    pub fn new(run: &'a RunId, time: SystemTime) -> Self {
        Self { time: humantime::format_rfc3339_micros(time).to_string(), run }
    }
}

/// Identifies a run among all that append to a log, also on other machines and with the same seed.
#[derive(Clone, Debug, Serialize)]
pub struct RunId(String);

impl RunId {
    pub fn random() -> Self {
        Self(format!("{:016x}", stagger::seed().get()))
    }
}

/// The target of an output. It is checked for write access before what is written is computed, which may take long.
#[derive(Debug)]
pub enum Target {
    Stdout,
    /// Written to a temporary file in the same directory and then renamed, so that readers never see a partial file.
    Atomic(PathBuf),
    /// A file that is not regular (`/dev/stderr`, a pipe), written to directly.
    Special(File, PathBuf),
}

/// The endings of files by which readers expect one of the formats that are written.
const FORMATS: [&str; 5] = ["csv", "html", "json", "md", "svg"];

impl Target {
    pub fn open(path: &Path) -> Result<Self, CliError> {
        if path == Path::new("-") {
            return Ok(Self::Stdout);
        }
        // Follow symbolic links: the file is replaced, the link stays.
        let place = fs::canonicalize(path).unwrap_or_else(|_| path.to_owned());
        let is_special = fs::metadata(&place).is_ok_and(|metadata| !metadata.is_file() && !metadata.is_dir());
        let opened = if is_special {
            fs::OpenOptions::new().write(true).open(&place).map(|file| Self::Special(file, place.clone()))
        } else if place.is_dir() {
            Err(io::Error::new(ErrorKind::IsADirectory, "is a directory; name a file in it"))
        } else {
            // Dropped at once, so that a simulation that is killed leaves no file behind.
            temp_file_beside(&place).map(|_| Self::Atomic(place))
        };
        opened.map_err(|source| cannot_write(path, source))
    }

    /// Opens a target for a document in a format, by the ending of its files. The name of another format is refused.
    pub fn open_as(flag: &str, ending: &str, path: &Path) -> Result<Self, CliError> {
        let named = path.extension().and_then(OsStr::to_str).unwrap_or_default().to_ascii_lowercase();
        if named != ending && FORMATS.contains(&&*named) {
            let right = path.with_extension(ending);
            return Err(CliError::usage(format_args!(
                "{flag} writes {ending}, not {named}; name the file {}; other formats have flags of their own",
                path_shown(&right)
            )));
        }
        Self::open(path)
    }

    /// Writes `bytes` to the target.
    pub fn write(self, bytes: &[u8]) -> Result<(), CliError> {
        match self {
            Self::Stdout => print(bytes),
            Self::Atomic(path) => write_atomically(&path, bytes).map_err(|source| cannot_write(&path, source)),
            Self::Special(mut file, path) => file.write_all(bytes).map_err(|source| cannot_write(&path, source)),
        }
    }
}

fn write_atomically(path: &Path, bytes: &[u8]) -> io::Result<()> {
    let mut file = temp_file_beside(path)?;
    file.write_all(bytes)?;
    file.persist(path).map(drop).map_err(|error| error.error)
}

/// Creates a temporary file in the directory of `path`, with the permissions of any new file.
fn temp_file_beside(path: &Path) -> io::Result<NamedTempFile> {
    let directory = path.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let mut builder = Builder::new();
    builder.prefix(".stagger-");
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt;
        // The umask still applies.
        builder.permissions(fs::Permissions::from_mode(0o666));
    }
    builder.tempfile_in(directory)
}

fn cannot_write(path: &Path, source: io::Error) -> CliError {
    // The error of a temporary file ends with its name.
    let text = source.to_string();
    let source = match text.split_once(" at path ") {
        Some((reason, _)) => io::Error::new(source.kind(), reason),
        None => source,
    };
    let remedy = match source.kind() {
        ErrorKind::NotFound => " (create the directory first)",
        ErrorKind::PermissionDenied | ErrorKind::ReadOnlyFilesystem => " (choose a writable location)",
        _ => "",
    };
    CliError::io(format_args!("cannot write {}{remedy}", path_shown(path)), source)
}

/// Creates a directory for files, if it does not exist.
pub fn open_directory(path: &Path) -> Result<PathBuf, CliError> {
    // Also create a file in it: the directory may exist and be read-only.
    let result = fs::create_dir_all(path).and_then(|()| temp_file_beside(&path.join("chart.svg")));
    result.map(|_| path.to_owned()).map_err(|source| cannot_write(path, source))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_output_file_appears_only_when_complete() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("storm.json");
        fs::write(&path, "old").unwrap();
        let target = Target::open(&path).unwrap();
        assert_eq!(fs::read_to_string(&path).unwrap(), "old");
        target.write(b"new").unwrap();
        assert_eq!(fs::read_to_string(&path).unwrap(), "new");
        drop(Target::open(&directory.path().join("never.json")).unwrap());
        assert_eq!(fs::read_dir(directory.path()).unwrap().count(), 1);
    }

    #[test]
    fn an_unwritable_target_fails_before_the_simulation() {
        let directory = tempfile::tempdir().unwrap();
        let missing = Target::open(Path::new("/no/such/place/storm.json")).unwrap_err().to_string();
        assert!(missing.starts_with("cannot write /no/such/place/storm.json"), "{missing}");
        assert!(missing.ends_with("No such file or directory (os error 2)"), "{missing}");
        assert!(Target::open(directory.path()).unwrap_err().to_string().contains("name a file in it"));
        let other = Target::open_as("--output", "html", Path::new("storm.SVG")).unwrap_err().to_string();
        assert!(other.starts_with("--output writes html, not svg; name the file storm.html"), "{other}");
    }

    #[cfg(unix)]
    #[test]
    fn a_reader_of_the_old_file_keeps_its_contents() {
        use std::io::Read;
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("storm.json");
        fs::write(&path, "old").unwrap();
        let mut reader = File::open(&path).unwrap();
        Target::open(&path).unwrap().write(b"new").unwrap();
        let mut read = String::new();
        reader.read_to_string(&mut read).unwrap();
        assert_eq!((&*read, &*fs::read_to_string(&path).unwrap()), ("old", "new"));
    }

    #[cfg(unix)]
    #[test]
    fn devices_stay_devices_and_links_stay_links() {
        Target::open(Path::new("/dev/null")).unwrap().write(b"gone").unwrap();
        assert!(!fs::metadata("/dev/null").unwrap().is_file());
        let directory = tempfile::tempdir().unwrap();
        let (file, link) = (directory.path().join("file"), directory.path().join("link"));
        fs::write(&file, "old").unwrap();
        std::os::unix::fs::symlink(&file, &link).unwrap();
        Target::open(&link).unwrap().write(b"new").unwrap();
        assert_eq!(fs::read_to_string(&file).unwrap(), "new");
        assert!(fs::symlink_metadata(&link).unwrap().is_symlink());
    }
}
