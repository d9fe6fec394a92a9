//! Where controls are: in a file, or in Redis.

use core::time::Duration;
use std::fs::{self, File, Permissions};
use std::io::{self, ErrorKind, Read, Write};
use std::path::Path;

#[cfg(feature = "fleet")]
use stagger_redis::{ControlStore, ControlStoreError, StoredControls};
use stagger_terminal::output::error::CliError;
use tempfile::NamedTempFile;
#[cfg(feature = "fleet")]
use tokio::runtime::Builder;

use super::args::{Action, ControlArgs};
#[cfg(feature = "fleet")]
use super::controls::note;
use super::controls::{Controls, changed};
use crate::run::StoreAddress;

/// Maximum length of a file, in bytes.
const MAX_LENGTH: u64 = 1 << 20;

/// Shows or changes the controls in a file, and returns them.
pub(super) fn run_file(args: &ControlArgs, path: &Path) -> Result<Controls, CliError> {
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
    let directory = match path.parent() {
        Some(parent) if !parent.as_os_str().is_empty() => parent,
        _ => Path::new("."),
    };
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

/// What is known of controls in Redis beside their text.
#[derive(Clone, Copy, Debug)]
pub(super) struct Stored {
    /// How long ago they were set; `None` if they never were.
    pub(super) age: Option<Duration>,
    /// How long they stay in force; `None` without an end.
    pub(super) ends_in: Option<Duration>,
}

/// Shows or changes the controls of a fleet, and returns them.
#[cfg(feature = "fleet")]
pub(super) fn run_store(args: &ControlArgs, address: &StoreAddress) -> Result<(Controls, Stored), CliError> {
    let shown = &address.shown;
    let runtime = Builder::new_current_thread().enable_all().build();
    let runtime = runtime.map_err(|error| CliError::io("cannot start a connection", error))?;
    let mut store = ControlStore::new(&address.url, &address.name)
        .map_err(|error| CliError::usage(format_args!("{shown}: {error}")))?;
    let failed = |error| match error {
        ControlStoreError::Unreachable(reason) => {
            CliError::io(format_args!("cannot reach {shown}"), io::Error::other(reason))
        }
        error => CliError::usage(format_args!("{shown}: {error}")),
    };
    let stored = runtime.block_on(store.read()).map_err(failed)?;
    let version = stored.as_ref().map_or(0, |stored| stored.version);
    // After their end they are as good as cleared.
    let in_force = stored.as_ref().filter(|stored| stored.ends_in.is_none_or(|rest| !rest.is_zero()));
    // A change begins with what is in force; only `show` shows what has ended.
    let shown_anyway = if args.action == Action::Show { stored.as_ref() } else { None };
    let text = match in_force.or(shown_anyway) {
        Some(stored) => stored.text.clone(),
        None => String::new(),
    };
    let controls = Controls::parse(text);
    let controls = controls.map_err(|error| CliError::usage(format_args!("{shown}: {error}")))?;
    let Some(changed) = changed(args, &controls)? else {
        return Ok((controls, known(stored.as_ref())));
    };
    // A change of one target does not take the end from the others.
    let length = args.length.or(in_force.and_then(|stored| stored.ends_in));
    let note = note(args)?;
    let set = store.set(version, changed.text(), &note, length);
    let stored = runtime.block_on(set).map_err(failed)?;
    Ok((changed, known(Some(&stored))))
}

/// Says that this build does not know controls in Redis.
#[cfg(not(feature = "fleet"))]
pub(super) fn run_store(_: &ControlArgs, address: &StoreAddress) -> Result<(Controls, Stored), CliError> {
    Err(CliError::usage(address.unsupported()))
}

#[cfg(feature = "fleet")]
fn known(stored: Option<&StoredControls>) -> Stored {
    Stored { age: stored.map(|stored| stored.age), ends_in: stored.and_then(|stored| stored.ends_in) }
}
