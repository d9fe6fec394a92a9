//! What the manifest of a published crate has to say.

use crate::Result;
use crate::release::readiness::without_repository;
use crate::workspace::{Package, Workspace, text};

/// What the packages are built for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Purpose {
    Check,
    Release,
}

/// # Errors
///
/// Lists everything that is missing, in all crates.
pub(super) fn check(workspace: &Workspace, purpose: Purpose) -> Result {
    let packages: Vec<_> = workspace.published().collect();
    let problems = problems(&packages, purpose);
    if problems.is_empty() { Ok(()) } else { Err(problems.join("\n").into()) }
}

fn problems(packages: &[&Package], purpose: Purpose) -> Vec<String> {
    let mut problems: Vec<_> = packages.iter().flat_map(|package| problems_of(package)).collect();
    if purpose == Purpose::Release {
        problems.extend(without_repository(packages.iter().map(|package| text(package.manifest("repository")))));
    }
    problems
}

/// Returns what is wrong with the manifest of one crate.
fn problems_of(package: &Package) -> Vec<String> {
    let mut required = vec!["description", "license", "readme"];
    if package.is_library() {
        required.push("documentation");
    }
    let is_empty = |key: &&str| text(package.manifest(key)).is_empty();
    let missing = required.into_iter().filter(is_empty).map(|key| format!("{}: no {key}", package.name));
    // The registry accepts at most five of each.
    let lists = ["keywords", "categories"].into_iter().filter_map(|key| {
        let count = package.manifest(key).as_array().map_or(0, Vec::len);
        (!(1..=5).contains(&count)).then(|| format!("{}: {count} {key}; expected one to five", package.name))
    });
    missing.chain(lists).collect()
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn problems_after(change: impl FnOnce(&mut Value), purpose: Purpose) -> Vec<String> {
        let mut package = json!({
            "name": "a", "description": "does", "license": "MIT", "readme": "README.md", "repository": "https://a.example",
            "documentation": "https://docs.rs/a", "keywords": ["retry"], "categories": ["algorithms"],
            "targets": [{ "kind": ["lib"], "name": "a" }],
        });
        change(&mut package);
        problems(&[&Package::from(&package)], purpose)
    }

    #[test]
    fn a_complete_manifest_can_be_released() {
        assert_eq!(problems_after(|_| {}, Purpose::Release), Vec::<String>::new());
    }

    #[test]
    fn a_release_is_refused_while_the_address_of_the_repository_is_empty() {
        let empty = |package: &mut Value| package["repository"] = json!("");
        assert_eq!(
            problems_after(empty, Purpose::Release),
            ["the address of the repository is empty; fill in `repository` below `[workspace.package]` in Cargo.toml"]
        );
        assert_eq!(problems_after(empty, Purpose::Check), Vec::<String>::new());
    }

    #[test]
    fn every_missing_key_of_a_manifest_is_named() {
        let bare = |package: &mut Value| *package = json!({ "name": "a", "keywords": ["1", "2", "3", "4", "5", "6"] });
        assert_eq!(
            problems_after(bare, Purpose::Check),
            [
                "a: no description",
                "a: no license",
                "a: no readme",
                "a: 6 keywords; expected one to five",
                "a: 0 categories; expected one to five"
            ]
        );
    }

    #[test]
    fn the_published_crates_have_complete_metadata() {
        check(&Workspace::here().unwrap(), Purpose::Check).unwrap();
    }
}
