use std::fs;
use std::path::{Path, PathBuf};

use crate::ci::{Note, Options};
use crate::error::Result;
use crate::shell::{Shell, is_installed};
use crate::workspace;

/// A Debian package with a program that the tests start, or a library that they link, and cargo cannot build.
struct Package {
    /// The package is installed if one of these is in `PATH`, or exists as an absolute path.
    programs: &'static [&'static str],
    debian: &'static str,
}

const PACKAGES: [Package; 22] = [
    // The tests render the man page.
    Package { programs: &["man"], debian: "man-db" },
    Package { programs: &["groff"], debian: "groff-base" },
    // The tests open reports in a browser.
    Package { programs: &["chromium", "chromium-browser", "google-chrome"], debian: "chromium" },
    // libFuzzer is written in C++.
    Package { programs: &["c++"], debian: "g++" },
    // Debian installs the server outside PATH, but its control program in PATH.
    Package { programs: &["postgres", "pg_ctlcluster"], debian: "postgresql" },
    // /usr/sbin is not in every user's PATH; the tests look there, too.
    Package { programs: &["nginx", "/usr/sbin/nginx"], debian: "nginx-light" },
    Package { programs: &["redis-server"], debian: "redis-server" },
    // The server without its service, so that installing it starts nothing.
    Package { programs: &["mariadbd", "/usr/sbin/mariadbd"], debian: "mariadb-server-core" },
    // The tests of rules for database clients link it.
    Package { programs: &["/usr/include/sqlite3.h"], debian: "libsqlite3-dev" },
    // Generates gRPC clients and servers from their definition.
    Package { programs: &["protoc"], debian: "protobuf-compiler" },
    // The tests run them under `stagger run`.
    Package { programs: &["curl"], debian: "curl" },
    Package { programs: &["wget"], debian: "wget" },
    Package { programs: &["rsync"], debian: "rsync" },
    // The tests of recipes run its configuration, and let systemd verify units.
    Package { programs: &["haproxy", "/usr/sbin/haproxy"], debian: "haproxy" },
    Package { programs: &["systemd-analyze"], debian: "systemd" },
    // The tests of completions ask these shells.
    Package { programs: &["/usr/share/bash-completion/bash_completion"], debian: "bash-completion" },
    Package { programs: &["fish"], debian: "fish" },
    Package { programs: &["zsh"], debian: "zsh" },
    // Programs that `stagger run` is compared with.
    Package { programs: &["parallel"], debian: "parallel" },
    Package { programs: &["retry"], debian: "retry" },
    // Run third-party WebSocket servers.
    Package { programs: &["node"], debian: "nodejs" },
    Package { programs: &["python3"], debian: "python3" },
];

/// A Debian package that is unpacked into the target directory instead of installed.
struct Unpacked {
    /// The package is present if this file is.
    file: &'static str,
    debian: &'static str,
}

/// The compiler of TypeScript, a script for Node.
const TYPESCRIPT: &str = "usr/share/nodejs/typescript/bin/tsc";

const ESBUILD: &str = "usr/bin/esbuild";

const UNPACKED: [Unpacked; 6] = [
    // Installing it would start a server, and would install its web interface.
    Unpacked { file: "usr/bin/promtool", debian: "prometheus" },
    // Installing it would start a service. The tests only check crontabs.
    Unpacked { file: "usr/bin/crontab", debian: "cron" },
    // An installed package is visible to the system's own Node only.
    Unpacked { file: "usr/share/nodejs/ws/package.json", debian: "node-ws" },
    // The compiler of the JavaScript client. npm is not needed, and no registry.
    Unpacked { file: TYPESCRIPT, debian: "node-typescript" },
    // Measures its size.
    Unpacked { file: ESBUILD, debian: "esbuild" },
    // An installed package is visible to the system's own Python only.
    Unpacked { file: "usr/lib/python3/dist-packages/websockets/version.py", debian: "python3-websockets" },
];

pub(crate) fn run(_: &Options) -> Result<Note> {
    let mut notes = vec![install()?];
    for unpacked in &UNPACKED {
        notes.push(unpack(unpacked)?);
    }
    let notes: Vec<_> = notes.into_iter().flatten().collect();
    Ok((!notes.is_empty()).then(|| notes.join(", ")))
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
    let roots = [workspace::target_directory("packages")?, "/".into()];
    Ok(roots.iter().map(|root| root.join(file)).find(|path| path.is_file()))
}

fn install() -> Result<Note> {
    let missing: Vec<_> = PACKAGES
        .iter()
        .filter(|package| !package.programs.iter().any(|program| is_installed(program)))
        .map(|package| package.debian)
        .collect();
    if missing.is_empty() {
        return Ok(None);
    }
    let names = missing.join(" ");
    apt_get_as_root("update", &names)?;
    apt_get_as_root(&format!("install --yes --no-install-recommends {names}"), &names)?;
    Ok(Some(format!("installed {names}")))
}

fn unpack(package: &Unpacked) -> Result<Note> {
    let directory = workspace::target_directory("packages")?;
    let program = package.file.rsplit_once('/').map_or(package.file, |(_, name)| name);
    let is_unpacked_in = |root: &Path| root.join(package.file).is_file();
    if is_installed(program) || is_unpacked_in(Path::new("/")) || is_unpacked_in(&directory) {
        return Ok(None);
    }
    fs::create_dir_all(&directory)?;
    let download = || Shell::new("apt-get").args(["--quiet", "download", package.debian]).directory(&directory);
    // The download fails if the package lists are missing or outdated.
    if !is_installed("apt-get") || !download().succeeds() {
        apt_get_as_root("update", package.debian)?;
        download().run()?;
    }
    let is_archive = |path: &Path| path.extension().is_some_and(|extension| extension == "deb");
    for entry in fs::read_dir(&directory)? {
        let archive = entry?.path();
        if is_archive(&archive) {
            Shell::new("dpkg-deb").args(["--extract".as_ref(), &*archive, &*directory]).run()?;
            fs::remove_file(archive)?;
        }
    }
    Ok(Some(format!("unpacked {}", package.debian)))
}

/// Runs `apt-get` as root.
///
/// # Errors
///
/// If that is not possible, lists the missing packages and how to install them.
fn apt_get_as_root(arguments: &str, missing: &str) -> Result {
    if !is_installed("apt-get") {
        let message = "install the equivalents of these Debian packages with the package manager of this system";
        return Err(format!("missing: {missing}; {message}").into());
    }
    let root: &[&str] = if is_root()? {
        &[]
    } else if Shell::new("sudo").args(["-n", "true"]).succeeds() {
        &["sudo", "-n"]
    } else {
        return Err(format!("missing: {missing}; run `sudo apt-get {arguments}`").into());
    };
    let words = [root, &["env", "DEBIAN_FRONTEND=noninteractive", "apt-get", "--quiet"]].concat();
    let (program, rest) = (words[0], &words[1..]);
    Shell::new(program).args(rest).args(arguments.split_ascii_whitespace()).run()
}

fn is_root() -> Result<bool> {
    Ok(Shell::new("id").args(["-u"]).output()?.trim() == "0")
}
