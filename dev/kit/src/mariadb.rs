use core::time::Duration;
use std::fs;
use std::io::{Error, ErrorKind, Result};
use std::path::Path;

use tempfile::TempDir;

use crate::process::capture::Stream;
use crate::process::program::{Program, User};
use crate::server::{Port, Ready, Server};

/// Directories in which packages install the statements that create the system tables.
const SHARED: [&str; 3] = ["/usr/share/mysql", "/usr/share/mariadb", "/usr/local/share/mariadb"];

/// Time limit for creating a database and for a start with recovery, on a loaded machine.
const LIMIT: Duration = Duration::from_secs(60);

/// A MariaDB server with a new database, private to this test.
///
/// It runs as an unprivileged user and listens on 127.0.0.1. The user `root` has no password; the schema `test` belongs
/// to the user
/// `app`, without a password and without the rights of an administrator, so that limits and read-only mode apply to it.
/// Committed data survives [`Server::kill`] and [`Server::restart`]; everything is removed when the value is dropped.
#[derive(Debug)]
pub struct Mariadb {
    // Drop order: the server is killed before its directory is removed and its port is released.
    server: Server,
    _data: TempDir,
    port: Port,
}

impl Mariadb {
    /// Creates a database and starts a server for it, with these further options, such as `--max-connections=10`.
    ///
    /// # Errors
    /// `NotFound` with the package to install; otherwise the output of the server.
    pub fn start(options: &[&str]) -> Result<Self> {
        let (program, tables) = (Program::find("mariadbd")?, system_tables()?);
        let user = User::unprivileged()?;
        let (port, directory) = (Port::reserve()?, user.directory()?);
        let [data, temporary] = ["data", "tmp"].map(|name| directory.path().join(name));
        for directory in [&data, &temporary] {
            fs::create_dir(directory)?;
            user.chown(directory)?;
        }
        let argument = |name: &str, path: &Path| format!("--{name}={}", path.display());
        // No file of options: the machine's own would be read. A server that starts removes the temporary tables of
        // others, so it has a directory of its own. Small files are created faster.
        let program = program
            .arg("--no-defaults")
            .arg(argument("datadir", &data))
            .arg(argument("tmpdir", &temporary))
            .args(["--innodb-log-file-size=4M", "--innodb-buffer-pool-size=16M", "--innodb-flush-log-at-trx-commit=2"]);
        let program = program.directory(directory.path()).user(user);
        let made = program.clone().args(["--bootstrap"]).input(tables).run(LIMIT)?;
        if !made.status.success() {
            return Err(Error::other(format!("mariadbd --bootstrap: {made}")));
        }
        let number = format!("--port={}", port.number());
        let server = program
            .arg(argument("socket", &directory.path().join("socket")))
            .args(["--bind-address=127.0.0.1", "--skip-name-resolve", &number])
            .args(options);
        let ready = Ready::Line(Stream::Stderr, "ready for connections".to_owned());
        Ok(Self { server: Server::start(server, ready, LIMIT)?, _data: directory, port })
    }

    /// Returns the server, to kill and restart it.
    pub fn server(&mut self) -> &mut Server {
        &mut self.server
    }

    /// Returns the URL for connections of this user to the schema `test`.
    #[must_use]
    pub fn url(&self, user: &str) -> String {
        format!("mysql://{user}@{}/test", self.port.address())
    }
}

/// Returns the statements that create the system tables, the schema and the users.
fn system_tables() -> Result<String> {
    let shared = SHARED.iter().map(Path::new).find(|directory| directory.join("mysql_system_tables.sql").exists());
    let shared = shared.ok_or_else(|| {
        let message = "MariaDB is not installed; on Debian and Ubuntu: apt-get install mariadb-server-core";
        Error::new(ErrorKind::NotFound, message)
    })?;
    // As `mariadb-install-db` does, which needs programs of another package.
    let mut statements = "create database mysql;\nuse mysql;\nset @auth_root_socket=NULL;\n".to_owned();
    for file in ["mysql_system_tables.sql", "mysql_system_tables_data.sql"] {
        statements += &fs::read_to_string(shared.join(file))?;
    }
    statements += "\nflush privileges;\ncreate database test;\ncreate user app@'127.0.0.1';\n";
    statements += "grant all privileges on test.* to app@'127.0.0.1';\n";
    Ok(statements)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_killed_mariadb_starts_again_on_its_port() {
        let mut mariadb = Mariadb::start(&["--max-connections=10"]).unwrap();
        let url = mariadb.url("app");
        mariadb.server().kill();
        mariadb.server().restart().unwrap();
        assert_eq!(mariadb.url("app"), url);
    }
}
