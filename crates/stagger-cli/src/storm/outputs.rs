use std::fs::{self, File};
use std::io::{self, ErrorKind, Write};
use std::path::{Path, PathBuf};

use clap::{Args, ValueHint};
use tempfile::{Builder, NamedTempFile};

use crate::error::CliError;
use crate::output::print;

/// Where a report goes, and in which forms.
#[derive(Args, Clone, Debug, Default)]
#[command(next_help_heading = "Output")]
pub(crate) struct OutputArgs {
    /// Write a report as one HTML file that needs nothing beside it; '-' is standard output
    #[arg(short, long, value_name = "FILE|-", value_hint = ValueHint::FilePath)]
    pub(crate) output: Option<PathBuf>,

    /// Print every figure as JSON (schema stagger.storm/1), or write it into a file
    #[arg(long, value_name = "FILE", num_args = 0..=1, require_equals = true, default_missing_value = "-")]
    pub(crate) json: Option<PathBuf>,

    /// Print the figures as CSV, a line for each run, or write them into a file
    #[arg(long, value_name = "FILE", num_args = 0..=1, require_equals = true, default_missing_value = "-")]
    pub(crate) csv: Option<PathBuf>,

    /// Print what happened in each tenth of a second as CSV, or write it into a file
    #[arg(long, value_name = "FILE", num_args = 0..=1, require_equals = true, default_missing_value = "-")]
    pub(crate) csv_series: Option<PathBuf>,

    /// Print the table as Markdown, or write it into a file
    #[arg(long, value_name = "FILE", num_args = 0..=1, require_equals = true, default_missing_value = "-")]
    pub(crate) md: Option<PathBuf>,

    /// Write the pictures into this directory, an SVG file each
    #[arg(long, value_name = "DIR", value_hint = ValueHint::DirPath)]
    pub(crate) svg: Option<PathBuf>,
}

/// Where each output goes.
#[derive(Debug, Default)]
pub(crate) struct Outputs {
    pub(crate) html: Option<Target>,
    pub(crate) json: Option<Target>,
    pub(crate) csv: Option<Target>,
    pub(crate) csv_series: Option<Target>,
    pub(crate) md: Option<Target>,
    pub(crate) svg: Option<Directory>,
}

/// Where one output goes. Whether it can is tried before the simulation begins, which may take long.
#[derive(Debug)]
pub(crate) enum Target {
    Stdout,
    /// Written beside its place and then put there, so that nobody ever sees half of it.
    Atomic(PathBuf),
    /// What is no regular file (`/dev/stderr`, a pipe) is written to as it is.
    Special(File, PathBuf),
}

/// Where several files go.
#[derive(Debug)]
pub(crate) struct Directory {
    path: PathBuf,
}

impl Outputs {
    /// # Errors
    /// Two outputs want standard output, or one cannot be written.
    pub(crate) fn open(args: &OutputArgs) -> Result<Self, CliError> {
        let asked = [
            ("--output", &args.output),
            ("--json", &args.json),
            ("--csv", &args.csv),
            ("--csv-series", &args.csv_series),
            ("--md", &args.md),
        ];
        let to_stdout: Vec<&str> =
            asked.iter().filter(|(_, path)| path.as_deref() == Some(Path::new("-"))).map(|(flag, _)| *flag).collect();
        if let [first, second, ..] = to_stdout[..] {
            return Err(CliError::usage(format_args!(
                "{first} and {second} both want standard output; name a file for one of them, like {second}=FILE"
            )));
        }
        let open = |path: &Option<PathBuf>| path.as_deref().map(Target::open).transpose();
        Ok(Self {
            html: open(&args.output)?,
            json: open(&args.json)?,
            csv: open(&args.csv)?,
            csv_series: open(&args.csv_series)?,
            md: open(&args.md)?,
            svg: args.svg.as_deref().map(Directory::open).transpose()?,
        })
    }

    /// Whether something but the table goes to standard output.
    pub(crate) fn take_stdout(&self) -> bool {
        let targets = [&self.html, &self.json, &self.csv, &self.csv_series, &self.md];
        targets.iter().any(|target| matches!(target, Some(Target::Stdout)))
    }
}

impl Target {
    fn open(path: &Path) -> Result<Self, CliError> {
        if path == Path::new("-") {
            return Ok(Self::Stdout);
        }
        // What a link leads to is replaced, not the link.
        let place = fs::canonicalize(path).unwrap_or_else(|_| path.to_owned());
        let is_special = fs::metadata(&place).is_ok_and(|metadata| !metadata.is_file() && !metadata.is_dir());
        let opened = if is_special {
            fs::OpenOptions::new().write(true).open(&place).map(|file| Self::Special(file, place.clone()))
        } else if place.is_dir() {
            Err(io::Error::new(ErrorKind::IsADirectory, "it is a directory; name a file in it"))
        } else {
            // It is gone at once: who is killed meanwhile leaves nothing behind.
            temp_file_beside(&place).map(|_| Self::Atomic(place))
        };
        opened.map_err(|source| cannot_write(path, source))
    }

    /// # Errors
    /// It cannot be written.
    pub(crate) fn write(self, bytes: &[u8]) -> Result<(), CliError> {
        match self {
            Self::Stdout => print(bytes),
            Self::Atomic(path) => write_atomically(&path, bytes).map_err(|source| cannot_write(&path, source)),
            Self::Special(mut file, path) => file.write_all(bytes).map_err(|source| cannot_write(&path, source)),
        }
    }
}

impl Directory {
    fn open(path: &Path) -> Result<Self, CliError> {
        // A file in it is tried as well: it may be there and read-only.
        let tried = fs::create_dir_all(path).and_then(|()| temp_file_beside(&path.join("picture.svg")));
        tried.map_err(|source| cannot_write(path, source))?;
        Ok(Self { path: path.to_owned() })
    }

    /// # Errors
    /// It cannot be written.
    pub(crate) fn write(&self, name: &str, bytes: &[u8]) -> Result<(), CliError> {
        Target::open(&self.path.join(name))?.write(bytes)
    }
}

fn write_atomically(path: &Path, bytes: &[u8]) -> io::Result<()> {
    let mut file = temp_file_beside(path)?;
    file.write_all(bytes)?;
    file.persist(path).map(drop).map_err(|error| error.error)
}

/// A new file in the same directory, with the rights that any new file gets.
fn temp_file_beside(path: &Path) -> io::Result<NamedTempFile> {
    let directory = path.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let mut builder = Builder::new();
    builder.prefix(".stagger-");
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt;
        // Less what the umask takes away.
        builder.permissions(fs::Permissions::from_mode(0o666));
    }
    builder.tempfile_in(directory)
}

fn cannot_write(path: &Path, source: io::Error) -> CliError {
    // What was tried had another name, which is nobody's concern.
    let source = source.raw_os_error().map_or(source, io::Error::from_raw_os_error);
    let remedy = match source.kind() {
        ErrorKind::NotFound => " (make the directory first)",
        ErrorKind::PermissionDenied | ErrorKind::ReadOnlyFilesystem => " (name a place where you may write)",
        _ => "",
    };
    CliError::io(format_args!("cannot write {}{remedy}", path.display()), source)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_is_there_until_the_whole_is() {
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
    fn what_cannot_be_written_is_told_before() {
        let directory = tempfile::tempdir().unwrap();
        let missing = Target::open(Path::new("/no/such/place/storm.json")).unwrap_err().to_string();
        assert!(missing.starts_with("cannot write /no/such/place/storm.json"), "{missing}");
        assert!(Target::open(directory.path()).unwrap_err().to_string().contains("name a file in it"));
    }

    #[cfg(unix)]
    #[test]
    fn who_reads_the_old_file_is_not_disturbed() {
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
