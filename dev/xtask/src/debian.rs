//! Debian packages with what the tests need and cargo cannot build: programs that they start, and libraries.

use std::fs;
use std::path::PathBuf;

use crate::ci::{Note, Options};
use crate::files::files;
use crate::shell::{Result, Shell, is_installed};
use crate::workspace::target_directory;

/// A package to install, and what it has: it is installed if one of these is in `PATH`, or exists as an absolute path.
const INSTALLED: [(&str, &[&str]); 22] = [
    // The tests render the man page.
    ("man-db", &["man"]),
    ("groff-base", &["groff"]),
    // The tests open reports in a browser.
    ("chromium", &["chromium", "chromium-browser", "google-chrome"]),
    // libFuzzer is written in C++.
    ("g++", &["c++"]),
    // Debian installs the server outside PATH, but its control program in PATH.
    ("postgresql", &["postgres", "pg_ctlcluster"]),
    // /usr/sbin is not in every user's PATH; the tests look there, too.
    ("nginx-light", &["nginx", "/usr/sbin/nginx"]),
    ("redis-server", &["redis-server"]),
    // The server without its service, so that installing it starts nothing.
    ("mariadb-server-core", &["mariadbd", "/usr/sbin/mariadbd"]),
    // The tests of rules for database clients link it.
    ("libsqlite3-dev", &["/usr/include/sqlite3.h"]),
    // Generates gRPC clients and servers from their definition.
    ("protobuf-compiler", &["protoc"]),
    // The tests run them under `stagger run`.
    ("curl", &["curl"]),
    ("wget", &["wget"]),
    ("rsync", &["rsync"]),
    // The tests of recipes run its configuration, and let systemd verify units.
    ("haproxy", &["haproxy", "/usr/sbin/haproxy"]),
    ("systemd", &["systemd-analyze"]),
    // The tests of completions ask these shells.
    ("bash-completion", &["/usr/share/bash-completion/bash_completion"]),
    ("fish", &["fish"]),
    ("zsh", &["zsh"]),
    // Programs that `stagger run` is compared with.
    ("parallel", &["parallel"]),
    ("retry", &["retry"]),
    // Run third-party WebSocket servers.
    ("nodejs", &["node"]),
    ("python3", &["python3"]),
];

/// The compiler of TypeScript, a script for Node.
const TYPESCRIPT: &str = "usr/share/nodejs/typescript/bin/tsc";
const ESBUILD: &str = "usr/bin/esbuild";

/// A package that is unpacked into the target directory instead of installed, and a file that it has.
const UNPACKED: [(&str, &str); 6] = [
    // Installing it would start a server, and would install its web interface.
    ("prometheus", "usr/bin/promtool"),
    // Installing it would start a service. The tests only check crontabs.
    ("cron", "usr/bin/crontab"),
    // An installed package is visible to the system's own Node only.
    ("node-ws", "usr/share/nodejs/ws/package.json"),
    // The compiler of the JavaScript client. npm is not needed, and no registry.
    ("node-typescript", TYPESCRIPT),
    // Measures its size.
    ("esbuild", ESBUILD),
    // An installed package is visible to the system's own Python only.
    ("python3-websockets", "usr/lib/python3/dist-packages/websockets/version.py"),
];

/// Installs and unpacks what is missing.
pub(crate) fn packages(_: &Options) -> Result<Note> {
    let is_missing = |programs: &[&str]| !programs.iter().any(|program| is_installed(program));
    let mut missing: Vec<_> = INSTALLED.iter().filter(|(_, has)| is_missing(has)).map(|(name, _)| *name).collect();
    if !missing.is_empty() {
        let names = missing.join(" ");
        apt_get_as_root("update", &names)?;
        apt_get_as_root(&format!("install --yes --no-install-recommends {names}"), &names)?;
    }
    for (name, file) in UNPACKED {
        let program = file.rsplit('/').next().unwrap_or(file);
        if unpacked(file)?.is_none() && !is_installed(program) {
            unpack(name)?;
            missing.push(name);
        }
    }
    Ok(if missing.is_empty() { None } else { Some(format!("installed {}", missing.join(" "))) })
}

/// Returns the command of TypeScript's compiler.
pub(crate) fn typescript() -> Result<Shell> {
    match unpacked(TYPESCRIPT)? {
        Some(script) => Ok(Shell::new("node").args([script])),
        None if is_installed("tsc") => Ok(Shell::new("tsc")),
        None => Err("TypeScript's compiler is missing; run `cargo xtask ci --only packages`".into()),
    }
}

/// Returns the command of the bundler.
pub(crate) fn esbuild() -> Result<Shell> {
    match unpacked(ESBUILD)? {
        Some(program) => Ok(Shell::new(program)),
        None if is_installed("esbuild") => Ok(Shell::new("esbuild")),
        None => Err("esbuild is missing; run `cargo xtask ci --only packages`".into()),
    }
}

/// Returns the path of a file of an unpacked or installed package.
fn unpacked(file: &str) -> Result<Option<PathBuf>> {
    let roots = [target_directory("packages")?, "/".into()];
    Ok(roots.iter().map(|root| root.join(file)).find(|path| path.is_file()))
}

fn unpack(package: &str) -> Result {
    let directory = target_directory("packages")?;
    fs::create_dir_all(&directory)?;
    let download = || Shell::new("apt-get").args(["--quiet", "download", package]).directory(&directory);
    // The download fails if the package lists are missing or outdated.
    if !is_installed("apt-get") || !download().succeeds() {
        apt_get_as_root("update", package)?;
        download().run()?;
    }
    for archive in files(&directory, "deb")? {
        Shell::new("dpkg-deb").args(["--extract".as_ref(), &*archive, &*directory]).run()?;
        fs::remove_file(archive)?;
    }
    Ok(())
}

/// Runs `apt-get` as root. If that is not possible, the error says what is missing and how to install it.
fn apt_get_as_root(arguments: &str, missing: &str) -> Result {
    if !is_installed("apt-get") {
        let message = "install the equivalents of these Debian packages with the package manager of this system";
        return Err(format!("missing: {missing}; {message}").into());
    }
    let environment = ["env", "DEBIAN_FRONTEND=noninteractive", "apt-get", "--quiet"];
    let shell = if Shell::new("id").args(["-u"]).output()?.trim() == "0" {
        Shell::new("env").args(&environment[1..])
    } else if Shell::new("sudo").args(["-n", "true"]).succeeds() {
        Shell::new("sudo").args(["-n"]).args(environment)
    } else {
        return Err(format!("missing: {missing}; run `sudo apt-get {arguments}`").into());
    };
    shell.args(arguments.split_ascii_whitespace()).run()
}
