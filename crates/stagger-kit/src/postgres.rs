use core::time::Duration;
use std::fs;
use std::io::{Error, ErrorKind, Result};
use std::path::{Path, PathBuf};

use tempfile::TempDir;

use crate::capture::Stream;
use crate::port::Port;
use crate::program::Program;
use crate::server::{Ready, Server};
use crate::user::User;

/// Where packages keep the server programs of each version, out of everybody's `PATH`.
const VERSIONS: [&str; 3] = ["/usr/lib/postgresql", "/usr/pgsql", "/usr/local/pgsql"];

/// How long the making of a database, and a start with recovery, may take on a busy machine.
const LIMIT: Duration = Duration::from_secs(60);

/// A PostgreSQL server with a fresh database, for this test alone.
///
/// It runs as an ordinary user and trusts whoever connects to it on 127.0.0.1. What was committed
/// survives [`Server::kill`] and [`Server::restart`]; the whole of it is gone when the value is
/// dropped.
#[derive(Debug)]
pub struct Postgres {
    // In this order: the server is killed before its directory is removed and its port is given
    // back.
    server: Server,
    _data: TempDir,
    port: Port,
    programs: PathBuf,
}

impl Postgres {
    /// Makes a database and starts a server for it.
    ///
    /// # Errors
    /// `NotFound` with what to install; otherwise with what `initdb` or the server wrote.
    pub fn start() -> Result<Self> {
        let programs = programs()?;
        let user = User::unprivileged()?;
        let (port, directory) = (Port::reserve()?, user.directory()?);
        let data = directory.path().join("data");
        let program = |name: &str| {
            let program = Program::at(programs.join(name)).arg("-D").arg(&data);
            program.directory(directory.path()).user(user.clone()).env("LC_ALL", "C")
        };
        // Data need only outlive the process, not the machine: no fsync.
        let made = program("initdb").args(["--auth=trust", "--username=postgres", "--encoding=UTF8", "--no-sync"]);
        let made = made.run(LIMIT)?;
        if !made.status.success() {
            return Err(Error::other(format!("initdb: {made}")));
        }
        let number = port.number().to_string();
        let server = program("postgres").args(["-h", "127.0.0.1", "-p", &number, "-k", "", "-F"]);
        // The port is open long before recovery is over.
        let ready = Ready::Line(Stream::Stderr, "ready to accept connections".to_owned());
        Ok(Self { server: Server::start(server, ready, LIMIT)?, _data: directory, port, programs })
    }

    /// The server, to be killed and restarted.
    pub fn server(&mut self) -> &mut Server {
        &mut self.server
    }

    /// The port that it listens on, on 127.0.0.1, before and after every restart.
    #[must_use]
    pub fn port(&self) -> u16 {
        self.port.number()
    }

    /// Where to connect to.
    #[must_use]
    pub fn url(&self) -> String {
        format!("postgres://postgres@{}/postgres", self.port.address())
    }

    /// Runs statements with `psql` and returns what they print, unadorned.
    ///
    /// # Errors
    /// With what the server said.
    pub fn sql(&self, statements: &str) -> Result<String> {
        let client = Program::at(self.programs.join("psql")).arg(self.url());
        // -X: no start-up file. -q: no command tags. -A, -t: no table around the values.
        let client = client.args(["-XqAt", "--set=ON_ERROR_STOP=1", "-c", statements]);
        let done = client.run(LIMIT)?;
        if done.status.success() { Ok(done.stdout_text()) } else { Err(Error::other(format!("psql: {done}"))) }
    }
}

/// The directory with `initdb`, `postgres` and `psql` of the newest version.
fn programs() -> Result<PathBuf> {
    let packaged = VERSIONS.iter().filter_map(|parent| newest(Path::new(parent)));
    let in_path = Program::find("postgres").ok().and_then(|program| program.directory_of());
    packaged.chain(in_path).find(|directory| directory.join("initdb").exists()).ok_or_else(|| {
        let message = "PostgreSQL is not installed; on Debian and Ubuntu: apt-get install postgresql";
        Error::new(ErrorKind::NotFound, message)
    })
}

/// `parent/15/bin` rather than `parent/9.6/bin`: versions compare as numbers.
fn newest(parent: &Path) -> Option<PathBuf> {
    let versions = fs::read_dir(parent).ok()?.flatten().filter_map(|entry| {
        let version: f64 = entry.file_name().to_str()?.parse().ok()?;
        Some((version, entry.path().join("bin")))
    });
    versions.max_by(|(one, _), (other, _)| one.total_cmp(other)).map(|(_, directory)| directory)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_compare_as_numbers() {
        let parent = tempfile::tempdir().unwrap();
        for version in ["9.6", "16", "8.4", "common"] {
            fs::create_dir_all(parent.path().join(version).join("bin")).unwrap();
        }
        assert_eq!(newest(parent.path()), Some(parent.path().join("16/bin")));
    }

    #[test]
    fn what_was_committed_survives_a_kill_and_what_was_not_does_not() {
        let mut postgres = Postgres::start().unwrap();
        postgres.sql("create table effect (id int primary key); insert into effect values (1), (2)").unwrap();
        let url = postgres.url();
        let open = Program::at(postgres.programs.join("psql")).arg(&url).arg("-XqAt").input_open();
        let mut open = open.spawn().unwrap();
        open.write(b"begin; insert into effect values (3); select 'inserted';\n").unwrap();
        assert_eq!(open.next_line(LIMIT).unwrap(), "inserted");
        postgres.server().kill();
        assert!(postgres.sql("select 1").is_err(), "nobody answers");
        postgres.server().restart().unwrap();
        assert_eq!(postgres.sql("select id from effect order by id").unwrap(), "1\n2\n");
        assert_eq!(postgres.url(), url);
    }
}
