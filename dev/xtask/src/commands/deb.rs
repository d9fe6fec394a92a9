use std::ffi::OsString;

use crate::release::readiness::contact;
use crate::release::stage::{Program, dist, time, write};
use crate::{Result, tool};

const MAINTAINERS: &str = "The stagger developers";

/// Builds the Debian package that `package.metadata.deb` of the program describes.
pub(crate) fn run(arguments: &[OsString]) -> Result {
    let program = Program::build(arguments)?;
    let dist = dist()?;
    write(&dist.join("root"), &program.package()?)?;
    let deb = tool::pinned("deb", "3.8.0")?.args(["--no-build", "--no-strip", "--package", "stagger-cli"]);
    let deb = deb.args(["--target", &program.target, "--output"]).args([dist]);
    let deb = deb.args(["--maintainer", &maintainer()?]);
    deb.env("SOURCE_DATE_EPOCH", time()?.to_string()).run()
}

/// Returns the maintainers as a Debian package names them, without an address while there is none.
fn maintainer() -> Result<String> {
    let contact = contact()?;
    Ok(if contact.is_empty() { MAINTAINERS.to_owned() } else { format!("{MAINTAINERS} <{contact}>") })
}
