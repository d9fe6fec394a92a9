use std::ffi::OsString;

use crate::{Result, tool};

pub(crate) fn run(arguments: &[OsString]) -> Result {
    tool::cargo("mutants", "--package stagger-core")?.args(arguments).run()
}
