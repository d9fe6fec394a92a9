//! Checks the workflows of the forge, as far as this can be done without it.

use std::fs;
use std::path::PathBuf;

use crate::COMMANDS;
use crate::files::{files, root, shown};
use crate::workspace::{self, Workspace};

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
    let here = Workspace::here().unwrap();
    let oldest = here.published().map(|package| workspace::text(package.manifest("rust_version"))).min().unwrap();
    let install = format!("rustup toolchain install {oldest}.0 --profile minimal");
    let msrv = format!("STAGGER_MSRV_RUSTC=\"$(rustup which --toolchain {oldest}.0 rustc)\" cargo xtask msrv");
    for wanted in [install.as_str(), msrv.as_str(), "cargo xtask package", "cargo xtask lowest"] {
        assert!(runs.contains(&wanted), "no step runs `{wanted}`");
    }
}

/// Returns the text of a step's script.
fn script(action: &str, step: &str) -> String {
    let (_, rest) = action.split_once(&format!("- name: {step}\n")).expect("the step exists");
    let (_, rest) = rest.split_once("run: |\n").expect("it has a script");
    let indent = " ".repeat(8);
    rest.lines().map_while(|line| line.strip_prefix(&indent)).map(|line| format!("{line}\n")).collect()
}

/// Runs the action's installation on releases in a directory, with a program that prints its arguments.
#[cfg(unix)]
#[test]
fn the_action_installs_a_release_and_refuses_one_that_has_been_changed() {
    use std::process::Command;

    use sha2::{Digest, Sha256};

    use crate::files::hex;
    use crate::release::archive::{Entry, tar_gz};

    let action = fs::read_to_string(root().join("action.yml")).unwrap();
    let name = "stagger-0.1.0-x86_64-unknown-linux-musl";
    let program =
        Entry { path: "stagger".into(), content: b"#!/bin/sh\nprintf '<%s>' \"$@\"\n".to_vec(), is_executable: true };
    let archive = tar_gz(name, vec![program], 0).unwrap();
    let digest = hex(&Sha256::digest(&archive));
    for (sums, succeeds) in [
        (format!("{digest}  {name}.tar.gz\n"), true),
        (format!("{}  {name}.tar.gz\n", "0".repeat(64)), false),
        (format!("{digest}  another.tar.gz\n"), false),
    ] {
        let directory = tempfile::tempdir().unwrap();
        let release = directory.path().join("v0.1.0");
        fs::create_dir(&release).unwrap();
        fs::write(release.join(format!("{name}.tar.gz")), &archive).unwrap();
        fs::write(release.join("SHA256SUMS"), &sums).unwrap();
        let run = |script: &str| {
            let mut bash = Command::new("bash");
            bash.args(["-eo", "pipefail", "-c", script]).env("RUNNER_TEMP", directory.path());
            bash.env("RELEASES_URL", format!("file://{}", directory.path().display()));
            bash.envs([("VERSION", "v0.1.0"), ("MACHINE", "Linux-X64")]).current_dir(directory.path());
            // What the shell would split, expand, or take for an option of the program.
            bash.envs([("PATHS", "deploy/**/*.yaml\n*\na file\n--allow=S019\n$(touch x)\n"), ("ARGUMENTS", "")]);
            bash.output().unwrap()
        };
        let installed = run(&script(&action, "Install stagger"));
        assert_eq!(installed.status.success(), succeeds, "{sums}: {}", String::from_utf8_lossy(&installed.stderr));
        if succeeds {
            let checked = run(&script(&action, "Check"));
            assert_eq!(
                String::from_utf8(checked.stdout).unwrap(),
                "<check><--github><--><deploy/**/*.yaml><*><a file><--allow=S019><$(touch x)>"
            );
        }
    }
}
