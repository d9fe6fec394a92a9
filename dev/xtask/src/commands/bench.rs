use std::ffi::OsString;

use crate::Result;
use crate::shell::Shell;

pub(crate) fn run(arguments: &[OsString]) -> Result {
    Shell::cargo("run --release --package stagger-bench --").args(arguments).run()
}
