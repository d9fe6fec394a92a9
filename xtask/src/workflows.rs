//! Checks the workflows of the forge, as far as this can be done without it.

use std::fs;
use std::path::PathBuf;

use crate::COMMANDS;
use crate::files::{files, shown};
use crate::workspace::{Workspace, root};

fn workflows() -> Vec<PathBuf> {
    files(&root().join(".github/workflows"), "yml").unwrap()
}

/// Returns the actions of a workflow: name, revision, and the version in the comment.
fn actions(workflow: &str) -> Vec<(&str, &str, &str)> {
    let uses = workflow.lines().filter_map(|line| line.trim().trim_start_matches("- ").strip_prefix("uses: "));
    let parts = uses.map(|action| {
        let (action, version) = action.split_once(" # ").unwrap_or((action, ""));
        let (name, revision) = action.split_once('@').unwrap_or((action, ""));
        (name, revision, version)
    });
    parts.collect()
}

#[test]
fn actions_are_pinned_by_commit_and_one_action_has_one_commit() {
    let texts: Vec<_> = workflows().iter().map(|path| fs::read_to_string(path).unwrap()).collect();
    let all: Vec<_> = texts.iter().flat_map(|text| actions(text)).collect();
    assert!(!all.is_empty());
    for (name, revision, version) in &all {
        let is_commit = revision.len() == 40 && revision.bytes().all(|byte| byte.is_ascii_hexdigit());
        assert!(is_commit && version.starts_with('v'), "{name}@{revision} # {version}");
        for (_, other, _) in all.iter().filter(|(other, ..)| other == name) {
            assert_eq!(other, revision, "{name} is used at two commits");
        }
    }
}

#[test]
fn commands_of_workflows_exist() {
    let mut checked = 0;
    for path in workflows() {
        for line in fs::read_to_string(&path).unwrap().lines() {
            for (_, rest) in line.match_indices("cargo xtask ").map(|(at, name)| line.split_at(at + name.len())) {
                let name = rest.split_whitespace().next().unwrap_or_default();
                let name = name.trim_matches(['`', '"', '.', ',', ':']);
                assert!(COMMANDS.iter().any(|command| command.name == name), "{}: `{name}`", shown(&path));
                checked += 1;
            }
        }
    }
    assert!(checked > 0);
}

#[test]
fn jobs_have_a_time_limit_and_workflows_read_only_by_default() {
    for path in workflows() {
        let text = fs::read_to_string(&path).unwrap();
        let count = |line: &str| text.lines().filter(|other| other.trim_start().starts_with(line)).count();
        assert_eq!(count("runs-on:"), count("timeout-minutes:"), "{}", shown(&path));
        assert!(text.contains("\npermissions:\n  contents: read\n"), "{}", shown(&path));
    }
}

#[test]
fn the_forge_checks_the_oldest_compiler_and_the_packages_with_the_commands_of_a_developer() {
    let text = fs::read_to_string(root().join(".github/workflows/ci.yml")).unwrap();
    let runs: Vec<_> =
        text.lines().filter_map(|line| line.trim().trim_start_matches("- ").strip_prefix("run: ")).collect();
    let oldest = Workspace::here().unwrap().published().find_map(|package| package.rust_version.clone()).unwrap();
    let install = format!("rustup toolchain install {oldest}.0 --profile minimal");
    let msrv = format!("STAGGER_MSRV_RUSTC=\"$(rustup which --toolchain {oldest}.0 rustc)\" cargo xtask msrv");
    for wanted in [install.as_str(), msrv.as_str(), "cargo xtask package", "cargo xtask lowest"] {
        assert!(runs.contains(&wanted), "no step runs `{wanted}`");
    }
}
