use std::ffi::OsString;

use crate::Result;
use crate::rust_version::Plan;
use crate::shell::{Shell, is_installed};
use crate::targets::{MISSING, select, version_for};
use crate::workspace::Workspace;

const TARGET: &str = "x86_64-pc-windows-gnu";

/// The C compiler for what dependencies have in C and assembly, and the package of Debian that has it.
const C_COMPILER: [&str; 2] = ["x86_64-w64-mingw32-gcc", "gcc-mingw-w64-x86-64"];

/// Compiles every published package for Windows, with all features that the compiler is new enough for. It does not link, and
/// runs no test: the workflow `ci.yml` does both, on Windows itself.
pub(crate) fn run(arguments: &[OsString]) -> Result {
    if !arguments.is_empty() {
        return Err("takes no arguments".into());
    }
    let [compiler, package] = C_COMPILER;
    if !is_installed(compiler) {
        return Err(format!("needs {compiler}; install Debian's {package}").into());
    }
    let mut report = String::new();
    for package in Workspace::here()?.published() {
        let version = version_for(TARGET)?.ok_or_else(|| format!("{TARGET} cannot be built: {MISSING}"))?;
        let plan = Plan::of(package, version)?;
        if let Some(arguments) = plan.arguments() {
            let cargo = Shell::cargo("check --quiet --locked --package").args([&package.name]).args(arguments);
            let cargo = select(cargo, TARGET, "std,panic_abort", "windows")?;
            cargo.ok_or_else(|| format!("{TARGET} cannot be built: {MISSING}"))?.run()?;
        }
        report += &plan.line(&package.name);
    }
    print!("{report}");
    Ok(())
}
