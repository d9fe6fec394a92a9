use std::env;
use std::fs::{self, DirBuilder};
use std::io::{self, ErrorKind};
use std::os::unix::fs::{DirBuilderExt, MetadataExt};
use std::path::{Path, PathBuf};

use rustix::process::geteuid;
use stagger_terminal::output::error::CliError;

/// Returns the directory of the user's budgets, which only the user can access, and creates it if it is missing.
///
/// # Errors
/// It cannot be created, or others could have put something into it.
pub(super) fn of_user() -> Result<PathBuf, CliError> {
    let user = geteuid().as_raw();
    let runtime = env::var_os("XDG_RUNTIME_DIR").map(PathBuf::from);
    // Of another user after `sudo -E`.
    let is_own = |path: &PathBuf| path.is_absolute() && fs::metadata(path).is_ok_and(|found| found.uid() == user);
    let path = match runtime.filter(is_own) {
        Some(runtime) => runtime.join("stagger"),
        None => env::temp_dir().join(format!("stagger-{user}")),
    };
    match DirBuilder::new().mode(0o700).create(&path) {
        Err(error) if error.kind() != ErrorKind::AlreadyExists => {
            return Err(CliError::io(format_args!("--budget: cannot create {}", path.display()), error));
        }
        _ => {}
    }
    check(&path, user).map(|()| path)
}

/// Checks that nobody but the user can have put files into the directory, or have put it there.
fn check(path: &Path, user: u32) -> Result<(), CliError> {
    let found = fs::symlink_metadata(path);
    let found = found
        .map_err(|error: io::Error| CliError::io(format_args!("--budget: cannot read {}", path.display()), error))?;
    let (shown, mode) = (path.display(), found.mode() & 0o777);
    let problem = if !found.is_dir() {
        format!("{shown} is not a directory; remove it, or set XDG_RUNTIME_DIR to a directory of yours")
    } else if found.uid() != user {
        format!("{shown} belongs to user {}; remove it, or set XDG_RUNTIME_DIR to a directory of yours", found.uid())
    } else if mode & 0o077 != 0 {
        format!("{shown} is open to other users (mode {mode:o}); run `chmod 700 {shown}`")
    } else {
        return Ok(());
    };
    Err(CliError::usage(format_args!("--budget: {problem}")))
}
