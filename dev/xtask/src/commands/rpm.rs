use std::ffi::OsString;

use crate::release::stage::{Program, dist, time, write};
use crate::{Result, tool};

/// Builds the RPM package that `package.metadata.generate-rpm` of the program describes.
pub(crate) fn run(arguments: &[OsString]) -> Result {
    let program = Program::build(arguments)?;
    let dist = dist()?;
    write(&dist.join("root"), &program.package()?)?;
    let rpm = tool::pinned("generate-rpm", "0.21.1")?.args(["--package", "program/stagger-cli"]);
    let rpm = rpm.args(["--target", &program.target, "--source-date", &time()?.to_string(), "--output"]);
    rpm.args([dist]).run()
}
