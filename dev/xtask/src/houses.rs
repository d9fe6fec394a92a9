//! Checks that dependencies between the folders of the workspace have one direction: a user of the library gets nothing
//! of the lab or the program.

use crate::files::root;
use crate::workspace::{Workspace, list, text};

/// Each folder with those that its crates may depend on, beside their own. `dev` is for tests, and may be used by them
/// only.
const MAY_USE: [(&str, &[&str]); 5] = [
    ("crates", &[]),
    ("fleet", &["crates"]),
    ("lab", &["crates", "fleet"]),
    ("program", &["crates", "fleet", "lab"]),
    ("dev", &["crates", "fleet", "lab", "program"]),
];

/// Returns the folder of a path below the root of the workspace.
fn folder(path: &str) -> String {
    let path = std::path::Path::new(path).strip_prefix(root()).unwrap();
    path.iter().next().unwrap().to_string_lossy().into_owned()
}

#[test]
fn dependencies_between_folders_have_one_direction() {
    for package in Workspace::here().unwrap().packages {
        let own = folder(&package.directory().to_string_lossy());
        let (_, may_use) = MAY_USE.iter().find(|(name, _)| *name == own).unwrap();
        for dependency in list(package.manifest("dependencies")) {
            // Tests may depend on anything.
            if let (Some(path), false) = (dependency["path"].as_str(), dependency["kind"] == "dev") {
                let other = folder(path);
                let name = text(&dependency["name"]);
                let is_allowed = other == own || may_use.contains(&other.as_str());
                assert!(is_allowed, "{} in {own}/ depends on {name} in {other}/", package.name);
            }
        }
    }
}
