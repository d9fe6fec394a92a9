use std::fs::{self, Permissions};
use std::io::{Error, ErrorKind, Result};
use std::os::unix::fs::{PermissionsExt, chown};
use std::path::Path;

use rustix::process::{getegid, geteuid};
use tempfile::{Builder, TempDir};

/// Whom a program runs as.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct User {
    uid: u32,
    gid: u32,
}

impl User {
    /// Who runs this process.
    #[must_use]
    pub fn current() -> Self {
        Self { uid: geteuid().as_raw(), gid: getegid().as_raw() }
    }

    /// The user of this name, from `/etc/passwd`.
    ///
    /// # Errors
    /// `NotFound` if there is no such user.
    pub fn named(name: &str) -> Result<Self> {
        let passwd = fs::read_to_string("/etc/passwd")?;
        passwd
            .lines()
            .find_map(|line| entry(line, name))
            .ok_or_else(|| Error::new(ErrorKind::NotFound, format!("there is no user `{name}` in /etc/passwd")))
    }

    /// Somebody without privileges: who runs this process, or `nobody` if that is root.
    ///
    /// Servers that guard other people's data, PostgreSQL among them, refuse to run as root, and a
    /// test server has no need to.
    ///
    /// # Errors
    /// As [`named`](Self::named).
    pub fn unprivileged() -> Result<Self> {
        if geteuid().is_root() { Self::named("nobody") } else { Ok(Self::current()) }
    }

    /// Whether this is who runs this process.
    #[must_use]
    pub fn is_current(&self) -> bool {
        *self == Self::current()
    }

    /// Makes `path`, but not what is in it, this user's own. Nothing to do for the current user.
    ///
    /// # Errors
    /// Only root can give something to somebody else.
    pub fn chown(&self, path: impl AsRef<Path>) -> Result<()> {
        if self.is_current() { Ok(()) } else { chown(path, Some(self.uid), Some(self.gid)) }
    }

    /// A new empty directory that nobody else may look into, removed when the value is dropped.
    ///
    /// # Errors
    /// As [`chown`](Self::chown), or if it cannot be created.
    pub fn directory(&self) -> Result<TempDir> {
        let directory = Builder::new().prefix("kit-").permissions(Permissions::from_mode(0o700)).tempdir()?;
        self.chown(directory.path())?;
        Ok(directory)
    }

    /// The user id.
    #[must_use]
    pub fn uid(&self) -> u32 {
        self.uid
    }

    /// The id of the user's own group.
    #[must_use]
    pub fn gid(&self) -> u32 {
        self.gid
    }
}

/// `name:password:uid:gid:…`, passwd(5).
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
    fn an_entry_is_found_by_its_whole_name() {
        let line = "nobody:x:65534:65533:nobody:/nonexistent:/usr/sbin/nologin";
        assert_eq!(entry(line, "nobody"), Some(User { uid: 65_534, gid: 65_533 }));
        assert_eq!(entry(line, "nob"), None);
        assert_eq!(entry("nobody:x:", "nobody"), None);
    }

    #[test]
    fn an_ordinary_user_is_never_root_and_owns_the_directory_made_for_it() {
        let user = User::unprivileged().unwrap();
        let directory = user.directory().unwrap();
        let script = "id -u && touch mine && ls -ld . | cut -c1-10";
        let shell = Program::find("sh").unwrap().args(["-c", script]);
        let done = shell.directory(directory.path()).user(user.clone()).run(Duration::from_secs(5)).unwrap();
        assert_eq!(done.code(), Some(0), "{done}");
        let lines: Vec<_> = done.stdout_text().lines().map(ToOwned::to_owned).collect();
        assert_eq!(lines.first(), Some(&user.uid().to_string()));
        assert_ne!(user.uid(), 0);
        assert_eq!(lines.last().map(String::as_str), Some("drwx------"), "nobody else looks in");
        assert!(directory.path().join("mine").exists());
    }
}
