use std::ffi::OsString;
use std::fs;

use crate::workspace::{Workspace, root};
use crate::{Result, tool};

/// One file per library, so that a change of the public API is a change in a diff.
const SNAPSHOTS: &str = "docs/public-api";

pub(crate) fn run(arguments: &[OsString]) -> Result {
    let bless = match arguments {
        [] => false,
        [argument] if argument == "--bless" => true,
        _ => return Err("the only argument is --bless, which writes the snapshots anew".into()),
    };
    let directory = root().join(SNAPSHOTS);
    let mut changed = Vec::new();
    for package in Workspace::here()?.published().filter(|package| !package.targets("lib").is_empty()) {
        let now = tool::cargo("public-api", "--simplified --all-features --package")?.args([&package.name]).output()?;
        let path = directory.join(format!("{}.txt", package.name));
        if bless {
            fs::create_dir_all(&directory)?;
            fs::write(&path, now)?;
        } else if fs::read_to_string(&path).unwrap_or_default() != now {
            changed.push(package.name.clone());
        }
    }
    if changed.is_empty() {
        return Ok(());
    }
    let names = changed.join(", ");
    Err(format!("not as in {SNAPSHOTS}: {names}; `cargo xtask public-api --bless`, then look at the diff").into())
}
