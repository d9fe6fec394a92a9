use std::fs;
use std::path::Path;

use crate::Result;
use crate::ci::{Note, Options};
use crate::shell::{Shell, is_installed};
use crate::workspace;

/// Something that the tests start and that cargo cannot build.
struct Package {
    /// One of these programs is enough: in `PATH`, or at the place that is named.
    programs: &'static [&'static str],
    debian: &'static str,
}

const PACKAGES: [Package; 10] = [
    // The man page is rendered, not only written.
    Package { programs: &["man"], debian: "man-db" },
    Package { programs: &["groff"], debian: "groff-base" },
    // Reports are opened in a real browser.
    Package { programs: &["chromium", "chromium-browser", "google-chrome"], debian: "chromium" },
    // libFuzzer is written in C++.
    Package { programs: &["c++"], debian: "g++" },
    // Debian keeps the server itself out of PATH, but not what controls it.
    Package { programs: &["postgres", "pg_ctlcluster"], debian: "postgresql" },
    // Not everybody has the directory in PATH; the tests look there, too.
    Package { programs: &["nginx", "/usr/sbin/nginx"], debian: "nginx-light" },
    Package { programs: &["redis-server"], debian: "redis-server" },
    // Makes clients and servers of gRPC from their description.
    Package { programs: &["protoc"], debian: "protobuf-compiler" },
    // Servers of other people, for WebSockets.
    Package { programs: &["node"], debian: "nodejs" },
    Package { programs: &["python3"], debian: "python3" },
];

/// What is unpacked beside what is built, and not installed.
struct Unpacked {
    /// This file is enough.
    file: &'static str,
    debian: &'static str,
}

const UNPACKED: [Unpacked; 3] = [
    // It would start a server and bring along what that shows to browsers.
    Unpacked { file: "usr/bin/promtool", debian: "prometheus" },
    // Installed, it would be found by the system's own Node only.
    Unpacked { file: "usr/share/nodejs/ws/package.json", debian: "node-ws" },
    // And this by the system's own Python only.
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
    let is_there = |root: &Path| root.join(package.file).is_file();
    if is_installed(program) || is_there(Path::new("/")) || is_there(&directory) {
        return Ok(None);
    }
    fs::create_dir_all(&directory)?;
    let download = || Shell::new("apt-get").args(["--quiet", "download", package.debian]).directory(&directory);
    // Without lists of packages, or with old ones, there is nothing to be found.
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

/// Runs `apt-get`, or says how to come by what is missing.
fn apt_get_as_root(arguments: &str, missing: &str) -> Result {
    if !is_installed("apt-get") {
        let message = "install what is called so on Debian, with this system's own package manager";
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
