use std::ffi::OsString;

use crate::Result;
use crate::shell::Shell;

pub(crate) fn run(arguments: &[OsString]) -> Result {
    Shell::cargo("run --release --quiet --package stagger-truth --").args(arguments).run()
}
