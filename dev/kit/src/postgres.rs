use core::time::Duration;
use std::fs;
use std::io::{Error, ErrorKind, Result};
use std::path::{Path, PathBuf};

use tempfile::TempDir;

use crate::process::capture::Stream;
use crate::process::program::{Program, User};
use crate::server::{Port, Ready, Server};

/// Directories in which packages install the server programs of each version, outside of `PATH`.
const VERSIONS: [&str; 3] = ["/usr/lib/postgresql", "/usr/pgsql", "/usr/local/pgsql"];

/// Time limit for creating a database and for a start with recovery, on a loaded machine.
const LIMIT: Duration = Duration::from_secs(60);

/// A PostgreSQL server with a new database, private to this test.
///
/// It runs as an unprivileged user and trusts all connections from 127.0.0.1. Committed data survives [`Server::kill`]
/// and [`Server::restart`]; everything is removed when the value is dropped.
#[derive(Debug)]
pub struct Postgres {
    // Drop order: the server is killed before its directory is removed and its port is released.
    server: Server,
    _data: TempDir,
    port: Port,
    programs: PathBuf,
}

impl Postgres {
    /// Creates a database and starts a server for it.
    ///
    /// # Errors
    /// `NotFound` with the package to install; otherwise the output of `initdb` or the server.
    pub fn start() -> Result<Self> {
        let programs = programs()?;
        let user = User::unprivileged()?;
        let (port, directory) = (Port::reserve()?, user.directory()?);
        let data = directory.path().join("data");
        let program = |name: &str| {
            let program = Program::at(programs.join(name)).arg("-D").arg(&data);
            program.directory(directory.path()).user(user.clone()).env("LC_ALL", "C")
        };
        // No fsync: data must survive the process, not the machine.
        let made = program("initdb").args(["--auth=trust", "--username=postgres", "--encoding=UTF8", "--no-sync"]);
        let made = made.run(LIMIT)?;
        if !made.status.success() {
            return Err(Error::other(format!("initdb: {made}")));
        }
        Self::serve(&program("postgres"), "ready to accept connections", port, directory, programs)
    }

    /// Creates a copy of this server that follows it and is read-only until it is promoted with `select pg_promote()`.
    ///
    /// # Errors
    /// The output of `pg_basebackup` or the server.
    pub fn standby(&self) -> Result<Self> {
        let user = User::unprivileged()?;
        let (port, directory) = (Port::reserve()?, user.directory()?);
        let data = directory.path().join("data");
        let program = |name: &str| {
            let program = Program::at(self.programs.join(name)).arg("-D").arg(&data);
            program.directory(directory.path()).user(user.clone()).env("LC_ALL", "C")
        };
        let source = format!("--dbname={}", self.url());
        let copy = program("pg_basebackup").args(["--write-recovery-conf", "--checkpoint=fast", "--no-sync", &source]);
        let copied = copy.run(LIMIT)?;
        if !copied.status.success() {
            return Err(Error::other(format!("pg_basebackup: {copied}")));
        }
        let programs = self.programs.clone();
        Self::serve(&program("postgres"), "ready to accept read-only connections", port, directory, programs)
    }

    /// Starts the server with the data of this directory.
    fn serve(program: &Program, line: &str, port: Port, data: TempDir, programs: PathBuf) -> Result<Self> {
        let number = port.number().to_string();
        let server = program.clone().args(["-h", "127.0.0.1", "-p", &number, "-k", "", "-F"]);
        // The port is open long before recovery is complete.
        let ready = Ready::Line(Stream::Stderr, line.to_owned());
        Ok(Self { server: Server::start(server, ready, LIMIT)?, _data: data, port, programs })
    }

    /// Returns the server, to kill and restart it.
    pub fn server(&mut self) -> &mut Server {
        &mut self.server
    }

    /// Returns the port on 127.0.0.1, which stays the same across restarts.
    #[must_use]
    pub fn port(&self) -> u16 {
        self.port.number()
    }

    /// Returns the URL for connections.
    #[must_use]
    pub fn url(&self) -> String {
        format!("postgres://postgres@{}/postgres", self.port.address())
    }

    /// Runs statements with `psql` and returns their output without formatting.
    ///
    /// # Errors
    /// The error message of the server.
    pub fn sql(&self, statements: &str) -> Result<String> {
        let client = Program::at(self.programs.join("psql")).arg(self.url());
        // -X: no start-up file. -q: no command tags. -A, -t: no table around the values.
        let client = client.args(["-XqAt", "--set=ON_ERROR_STOP=1", "-c", statements]);
        let done = client.run(LIMIT)?;
        if done.status.success() { Ok(done.stdout_text()) } else { Err(Error::other(format!("psql: {done}"))) }
    }
}

/// Returns the directory with `initdb`, `postgres` and `psql` of the newest version.
fn programs() -> Result<PathBuf> {
    let packaged = VERSIONS.iter().filter_map(|parent| newest(Path::new(parent)));
    let in_path = Program::find("postgres").ok().and_then(|program| program.directory_of());
    packaged.chain(in_path).find(|directory| directory.join("initdb").exists()).ok_or_else(|| {
        let message = "PostgreSQL is not installed; on Debian and Ubuntu: apt-get install postgresql";
        Error::new(ErrorKind::NotFound, message)
    })
}

/// Returns the `bin` directory of the newest version: `parent/15/bin` rather than `parent/9.6/bin`, because versions
/// compare as numbers.
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
    fn only_committed_data_survives_a_kill() {
        let mut postgres = Postgres::start().unwrap();
        postgres.sql("create table effect (id int primary key); insert into effect values (1), (2)").unwrap();
        let url = postgres.url();
        let open = Program::at(postgres.programs.join("psql")).arg(&url).arg("-XqAt").input_open();
        let mut open = open.spawn().unwrap();
        open.write(b"begin; insert into effect values (3); select 'inserted';\n").unwrap();
        assert_eq!(open.next_line(LIMIT).unwrap(), "inserted");
        postgres.server().kill();
        assert!(postgres.sql("select 1").is_err(), "the server is down");
        postgres.server().restart().unwrap();
        assert_eq!(postgres.sql("select id from effect order by id").unwrap(), "1\n2\n");
        assert_eq!(postgres.url(), url);
    }
}
