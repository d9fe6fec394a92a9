use std::fs::{self, Permissions};
use std::io::{Error, ErrorKind, Result};
use std::os::unix::fs::{PermissionsExt, chown};
use std::path::Path;

use rustix::process::{getegid, geteuid};
use tempfile::{Builder, TempDir};

/// The user that a program runs as.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct User {
    uid: u32,
    gid: u32,
}

impl User {
    /// Returns the user of this process.
    #[must_use]
    pub fn current() -> Self {
        Self { uid: geteuid().as_raw(), gid: getegid().as_raw() }
    }

    /// Looks up a user by name in `/etc/passwd`.
    ///
    /// # Errors
    /// `NotFound` if there is no such user.
    pub fn named(name: &str) -> Result<Self> {
        let passwd = fs::read_to_string("/etc/passwd")?;
        passwd
            .lines()
            .find_map(|line| entry(line, name))
            .ok_or_else(|| Error::new(ErrorKind::NotFound, format!("no user `{name}` in /etc/passwd")))
    }

    /// Returns a user without privileges: the user of this process, or `nobody` if that is root.
    ///
    /// Some servers, such as PostgreSQL, refuse to run as root, and a test server does not need to.
    ///
    /// # Errors
    /// As [`named`](Self::named).
    pub fn unprivileged() -> Result<Self> {
        if geteuid().is_root() { Self::named("nobody") } else { Ok(Self::current()) }
    }

    /// Returns whether this is the user of this process.
    #[must_use]
    pub fn is_current(&self) -> bool {
        *self == Self::current()
    }

    /// Changes the owner of `path` to this user, not recursively. Does nothing for the current user.
    ///
    /// # Errors
    /// Only root can change the owner to another user.
    pub fn chown(&self, path: impl AsRef<Path>) -> Result<()> {
        if self.is_current() { Ok(()) } else { chown(path, Some(self.uid), Some(self.gid)) }
    }

    /// Creates an empty directory that only this user can access, removed when the value is dropped.
    ///
    /// # Errors
    /// As [`chown`](Self::chown), or if it cannot be created.
    pub fn directory(&self) -> Result<TempDir> {
        let directory = Builder::new().prefix("kit-").permissions(Permissions::from_mode(0o700)).tempdir()?;
        self.chown(directory.path())?;
        Ok(directory)
    }

    /// Returns the user ID.
    #[must_use]
    pub fn uid(&self) -> u32 {
        self.uid
    }

    /// Returns the ID of the user's primary group.
    #[must_use]
    pub fn gid(&self) -> u32 {
        self.gid
    }
}

/// Parses a line of passwd(5), `name:password:uid:gid:…`; `None` if it is of another user.
fn entry(line: &str, name: &str) -> Option<User> {
    let mut fields = line.split(':');
    if fields.next()? != name {
        return None;
    }
    let uid = fields.nth(1)?.parse().ok()?;
    let gid = fields.next()?.parse().ok()?;
    Some(User { uid, gid })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Program;
    use core::time::Duration;

    #[test]
    fn an_entry_is_matched_by_its_full_name() {
        let line = "nobody:x:65534:65533:nobody:/nonexistent:/usr/sbin/nologin";
        assert_eq!(entry(line, "nobody"), Some(User { uid: 65_534, gid: 65_533 }));
        assert_eq!(entry(line, "nob"), None);
        assert_eq!(entry("nobody:x:", "nobody"), None);
    }

    #[test]
    fn an_unprivileged_user_is_not_root_and_owns_its_directory() {
        let user = User::unprivileged().unwrap();
        let directory = user.directory().unwrap();
        let script = "id -u && touch mine && ls -ld . | cut -c1-10";
        let shell = Program::find("sh").unwrap().args(["-c", script]);
        let done = shell.directory(directory.path()).user(user.clone()).run(Duration::from_secs(5)).unwrap();
        assert_eq!(done.code(), Some(0), "{done}");
        let lines: Vec<_> = done.stdout_text().lines().map(ToOwned::to_owned).collect();
        assert_eq!(lines.first(), Some(&user.uid().to_string()));
        assert_ne!(user.uid(), 0);
        assert_eq!(lines.last().map(String::as_str), Some("drwx------"), "only the owner has access");
        assert!(directory.path().join("mine").exists());
    }
}
