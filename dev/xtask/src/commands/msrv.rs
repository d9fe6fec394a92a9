//! `cargo xtask msrv`: whether the libraries build with the Rust version that their manifests declare.

use std::env;
use std::ffi::OsString;

use crate::Result;
use crate::rust_version::{Plan, Version};
use crate::shell::Shell;
use crate::workspace::{self, Workspace};

/// Names an old compiler. A variable of its own, because cargo would build xtask itself with that of `RUSTC`.
const VARIABLE: &str = "STAGGER_MSRV_RUSTC";

/// Where Debian's packages put theirs; the one of rustup comes first in `PATH`.
const DEBIAN: &str = "/usr/bin/rustc";

/// The packages of Debian 12 with Rust 1.85.
const APT: &str =
    "apt-get install --no-install-recommends 'rustc-web=1.85.*' 'libstd-rust-web-dev=1.85.*' 'libstd-rust-web-1.85'";

pub(crate) fn run(_: &[OsString]) -> Result {
    let compiler = env::var_os(VARIABLE).unwrap_or_else(|| DEBIAN.into());
    let workspace = Workspace::here()?;
    let versions = workspace.published().filter_map(|package| Version::parse(package.rust_version.as_deref()?));
    let lowest = versions.min().ok_or("no manifest has a rust-version")?;
    let found = Version::of(&compiler);
    if found != Some(lowest) {
        let found = found.map_or("is not there".to_owned(), |found| format!("is Rust {found}"));
        return Err(format!(
            "needs Rust {lowest}, but {} {found}; install Debian's package (`{APT}`), or set {VARIABLE} to another compiler",
            compiler.display(),
        )
        .into());
    }
    let directory = workspace::target_directory("msrv")?;
    let mut report = String::new();
    for package in workspace.published() {
        let plan = Plan::of(package, lowest)?;
        if let Some(arguments) = plan.arguments() {
            // Cargo refuses to build a dependency that declares a newer version.
            Shell::cargo("check --quiet --locked --package")
                .args([&package.name])
                .args(arguments)
                .args(["--target-dir".as_ref(), directory.as_path()])
                .env("RUSTC", &compiler)
                .run()?;
        }
        report += &plan.line(&package.name);
    }
    print!("{report}");
    Ok(())
}
