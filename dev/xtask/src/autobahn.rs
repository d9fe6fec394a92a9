use std::ffi::OsString;
use std::path::Path;

use crate::error::Result;
use crate::shell::Shell;
use crate::workspace::target_directory;

/// The version of the suite that is installed. It runs on Python 2.7 only.
const SUITE: &str = "autobahntestsuite==25.10.1";
/// The last versions of virtualenv that create environments for Python 2.7.
const VIRTUALENV: &str = "virtualenv<20.22";

pub(crate) fn run(arguments: &[OsString]) -> Result {
    let directory = target_directory("autobahn")?;
    let wstest = directory.join("environment/bin/wstest");
    if !wstest.is_file() {
        install(&directory)?;
    }
    let tests = Shell::cargo("test --package stagger-ws --all-features --test autobahn").env("WSTEST", &wstest);
    tests.args(arguments).args(["--", "--ignored", "--nocapture", "--test-threads", "1"]).run()
}

fn install(directory: &Path) -> Result {
    let python = || Shell::new("python2.7");
    if !python().args(["-m", "pip", "--version"]).succeeds() {
        let help = "the Autobahn Test Suite needs `python2.7` with pip in PATH; pyenv, for example, installs it";
        return Err(help.into());
    }
    let tools = directory.join("tools");
    python().args(["-m", "pip", "install", "--quiet", VIRTUALENV, "--target"]).args([&tools]).run()?;
    let environment = directory.join("environment");
    python().env("PYTHONPATH", &tools).args(["-m", "virtualenv", "--quiet"]).args([&environment]).run()?;
    Shell::new(environment.join("bin/pip")).args(["install", "--quiet", SUITE]).run()
}
