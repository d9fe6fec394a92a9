use std::fs::{self, File, Permissions};
use std::io::{self, ErrorKind, Read, Write};
use std::path::{Path, PathBuf};

use stagger_terminal::output::error::CliError;
use tempfile::NamedTempFile;

use super::args::{Action, ControlArgs};
use super::command::changed;
use super::controls::Controls;

/// Maximum length of a file, in bytes.
const MAX_LENGTH: u64 = 1 << 20;

/// Shows or changes the controls in a file, and returns them.
pub(super) fn run(args: &ControlArgs, path: &Path) -> Result<Controls, CliError> {
    let shown = path.display();
    let (text, permissions) = match read(path) {
        Err(error) if error.kind() == ErrorKind::NotFound && args.action == Action::Set => (String::new(), None),
        read => {
            let (text, permissions) = read.map_err(|error| CliError::io(format_args!("cannot read {shown}"), error))?;
            (text, Some(permissions))
        }
    };
    let controls = Controls::parse(text).map_err(|error| CliError::usage(format_args!("{shown}: {error}")))?;
    let Some(changed) = changed(args, &controls)? else { return Ok(controls) };
    write(path, changed.text(), permissions)?;
    Ok(changed)
}

fn read(path: &Path) -> io::Result<(String, Permissions)> {
    let file = File::open(path)?;
    let permissions = file.metadata()?.permissions();
    let mut text = String::new();
    file.take(MAX_LENGTH + 1).read_to_string(&mut text)?;
    if text.len() as u64 > MAX_LENGTH {
        return Err(io::Error::new(ErrorKind::InvalidData, "it is longer than 1 MiB, so it is not a file of controls"));
    }
    Ok((text, permissions))
}

/// Replaces a file as a whole: a program that reads it meanwhile sees the old text or the new one.
fn write(path: &Path, text: &str, permissions: Option<Permissions>) -> Result<(), CliError> {
    // A link stays one.
    let path = fs::canonicalize(path).unwrap_or_else(|_| path.to_owned());
    let failed = |error| CliError::io(format_args!("cannot write {}", path.display()), error);
    let directory = path.parent().filter(|parent| !parent.as_os_str().is_empty());
    let directory = directory.map_or_else(|| PathBuf::from("."), Path::to_owned);
    let mut file = NamedTempFile::new_in(directory).map_err(failed)?;
    file.write_all(text.as_bytes()).map_err(failed)?;
    if let Some(permissions) = permissions.or_else(readable_by_all) {
        file.as_file().set_permissions(permissions).map_err(failed)?;
    }
    file.as_file().sync_all().map_err(failed)?;
    file.persist(&path).map(drop).map_err(|error| failed(error.error))
}

/// Returns the mode of a new file, which a program of another user may have to read.
fn readable_by_all() -> Option<Permissions> {
    #[cfg(unix)]
    return Some(std::os::unix::fs::PermissionsExt::from_mode(0o644));
    #[cfg(not(unix))]
    None
}
