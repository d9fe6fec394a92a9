use std::ffi::OsString;
use std::fs;

use crate::release::bill::published;
use crate::release::notices::sources;
use crate::release::stage::{Program, dist, time};
use crate::workspace::Workspace;
use crate::{Result, tool};

/// The name that the tool gives its file in each package of the workspace.
const NAME: &str = "bill-of-materials";

/// Writes the bill of materials of the program: every package that it is built from, with version, license and checksum.
pub(crate) fn run(arguments: &[OsString]) -> Result {
    let target = Program::target(arguments)?;
    let tool =
        tool::pinned("cyclonedx", "0.5.9")?.args(["--format", "json", "--spec-version", "1.5", "--no-build-deps"]);
    let tool = tool.args(["--target", &target, "--override-filename", NAME]);
    tool.env("SOURCE_DATE_EPOCH", time()?.to_string()).run()?;
    let written = dist()?.join(format!("stagger-{target}.cdx.json"));
    for package in Workspace::here()?.packages {
        let found = package.directory().join(NAME).with_extension("json");
        if package.name == "stagger-cli" {
            fs::write(&written, published(&fs::read_to_string(&found)?, &sources(&target)?)?)?;
        }
        // The other packages have a bill of their own, which is not published.
        if found.is_file() {
            fs::remove_file(found)?;
        }
    }
    println!("{}", written.display());
    Ok(())
}
