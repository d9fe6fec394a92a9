use std::ffi::OsString;

use crate::{Result, public_api};

pub(crate) fn run(arguments: &[OsString]) -> Result {
    match arguments {
        [] => public_api::check().map(|compared| println!("{compared}: the snapshots match")),
        [argument] if argument == "--bless" => public_api::bless(),
        _ => Err("the only argument is --bless, which rewrites the snapshots".into()),
    }
}
