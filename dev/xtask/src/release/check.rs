//! `cargo xtask release-check` and `release-notes`: the conditions for a release, and the changelog's section about it.

use std::ffi::OsString;
use std::fs;

use crate::files::root;
use crate::shell::Result;
use crate::workspace::{Workspace, text};

/// What the README says before the first release, and what to do about it.
const UNPUBLISHED: [(&str, &str); 2] = [
    ("https://example.com/stagger", "write the address of the repository"),
    ("not published yet", "describe how to install what is published"),
];

/// Refuses the release of a version while anything is missing that cargo does not miss, and lists all of it.
pub(crate) fn check(arguments: &[OsString]) -> Result {
    let version = version(arguments)?;
    let workspace = Workspace::here()?;
    let mut problems = changelog_problems(&fs::read_to_string(root().join("CHANGELOG.md"))?, &version);
    for package in workspace.published().filter(|package| package.version != version) {
        problems.push(format!("the version of {} is {} and not {version}", package.name, package.version));
    }
    problems.extend(without_repository(&workspace));
    if contact(&workspace).is_empty() {
        let place = "fill in `contact` below `[workspace.metadata.release]` in Cargo.toml";
        problems.push(format!("the e-mail address of the maintainers is empty; {place}"));
    }
    let readme = fs::read_to_string(root().join("README.md"))?;
    for (text, fix) in UNPUBLISHED {
        if readme.contains(text) {
            problems.push(format!("README.md says `{text}`; {fix}"));
        }
    }
    if !problems.is_empty() {
        return Err(format!("{version} cannot be released:\n- {}", problems.join("\n- ")).into());
    }
    println!("{version} can be released");
    Ok(())
}

/// Prints the section of a version in the changelog.
pub(crate) fn print_notes(arguments: &[OsString]) -> Result {
    print!("{}", notes(&fs::read_to_string(root().join("CHANGELOG.md"))?, &version(arguments)?)?);
    Ok(())
}

/// Returns the only argument, a version as in a tag or without its `v`.
fn version(arguments: &[OsString]) -> Result<String> {
    let [version] = arguments else { return Err("name the version, and nothing else: 1.2.3 or v1.2.3".into()) };
    let version = version.to_str().ok_or("the version is not UTF-8")?;
    Ok(version.strip_prefix('v').unwrap_or(version).to_owned())
}

/// Returns what to do if the address of the repository is empty. All packages inherit it from one place.
pub(crate) fn without_repository(workspace: &Workspace) -> Option<String> {
    let is_empty = workspace.published().any(|package| text(package.manifest("repository")).is_empty());
    let place = "fill in `repository` below `[workspace.package]` in Cargo.toml";
    if is_empty { Some(format!("the address of the repository is empty; {place}")) } else { None }
}

/// Returns the e-mail address of the maintainers. Empty while nobody has filled it in.
pub(crate) fn contact(workspace: &Workspace) -> String {
    text(&workspace.metadata["release"]["contact"])
}

/// Lists what prevents a release of `version`.
fn changelog_problems(changelog: &str, version: &str) -> Vec<String> {
    let mut problems: Vec<_> = notes(changelog, version).err().into_iter().collect();
    if let Some((date, _)) = section(changelog, version)
        && !is_date(date)
    {
        let form = format!("write `## {version} - YYYY-MM-DD`");
        problems.push(format!("the heading of {version} in CHANGELOG.md has the date `{date}`; {form}"));
    }
    if let Some((_, lines)) = section(changelog, "Unreleased")
        && has_entries(&lines)
    {
        problems.push(format!("CHANGELOG.md has lines under `Unreleased`; move them below `## {version}`"));
    }
    problems
}

/// Returns the text below the heading of `version`, without the heading.
fn notes(changelog: &str, version: &str) -> core::result::Result<String, String> {
    match section(changelog, version) {
        None => Err(format!("CHANGELOG.md has no heading `## {version} - YYYY-MM-DD`")),
        Some((_, lines)) if !has_entries(&lines) => Err(format!("CHANGELOG.md has no entry for {version}")),
        Some((_, lines)) => Ok(lines.join("\n").trim().to_owned() + "\n"),
    }
}

/// Returns the date of a version and the lines below its heading, in the format of <https://keepachangelog.com>: a
/// heading of the second level for each version.
fn section<'a>(changelog: &'a str, version: &str) -> Option<(&'a str, Vec<&'a str>)> {
    let mut found = None;
    for line in changelog.lines() {
        if let Some(heading) = line.strip_prefix("## ") {
            if found.is_some() {
                break;
            }
            let (name, date) = heading.split_once(" - ").unwrap_or((heading, ""));
            if name.trim().trim_matches(['[', ']']) == version {
                found = Some((date.trim(), Vec::new()));
            }
        } else if let Some((_, lines)) = &mut found {
            lines.push(line);
        }
    }
    found
}

/// Returns whether any line is neither blank nor a heading.
fn has_entries(lines: &[&str]) -> bool {
    lines.iter().any(|line| !line.trim().is_empty() && !line.starts_with('#'))
}

/// Returns whether the text has the form of a date such as `2026-02-28`.
fn is_date(text: &str) -> bool {
    let digits: Vec<_> = text.split('-').map(|part| (part.len(), part.parse::<u16>().is_ok())).collect();
    digits == [(4, true), (2, true), (2, true)]
}

#[cfg(test)]
mod tests {
    use super::*;

    const READY: &str = "# Changelog\n\n## Unreleased\n\n## 0.2.0 - 2026-03-04\n\n### Added\n\n- A.\n\n\
                         ## [0.1.0] - 2026-01-02\n\n- B.\n";

    #[test]
    fn a_version_is_read_from_a_tag_too() {
        let read = |words: &[&str]| version(&words.iter().map(Into::into).collect::<Vec<_>>());
        assert_eq!(read(&["v1.2.3"]).unwrap(), "1.2.3");
        assert_eq!(read(&["1.2.3"]).unwrap(), "1.2.3");
        assert!(read(&[]).is_err() && read(&["1.2.3", "--force"]).is_err());
    }

    #[test]
    fn a_dated_section_with_entries_is_ready() {
        for version in ["0.2.0", "0.1.0"] {
            assert_eq!(changelog_problems(READY, version), [""; 0], "{version}");
        }
    }

    #[test]
    fn the_notes_of_a_version_end_at_the_next_version() {
        assert_eq!(notes(READY, "0.2.0").unwrap(), "### Added\n\n- A.\n");
        assert_eq!(notes(READY, "0.1.0").unwrap(), "- B.\n");
    }

    #[test]
    fn each_fault_of_a_changelog_is_named() {
        for (changelog, wanted) in [
            ("## Unreleased\n", "no heading `## 1.0.0 - YYYY-MM-DD`"),
            ("## 1.0.0-rc.1 - 2026-01-02\n- A.\n", "no heading `## 1.0.0 - YYYY-MM-DD`"),
            ("## 1.0.0 - 2026-01-02\n\n### Added\n\n## 0.9.0 - 2026-01-01\n- A.\n", "no entry for 1.0.0"),
            ("## 1.0.0\n- A.\n", "has the date ``; write `## 1.0.0 - YYYY-MM-DD`"),
            ("## 1.0.0 - soon\n- A.\n", "has the date `soon`; write"),
            ("## 1.0.0 - 2026-1-2\n- A.\n", "has the date `2026-1-2`; write"),
            ("## Unreleased\n### Added\n- A.\n- B.\n## 1.0.0 - 2026-01-02\n- C.\n", "lines under `Unreleased`"),
        ] {
            let problems = changelog_problems(changelog, "1.0.0");
            assert!(problems.len() == 1 && problems[0].contains(wanted), "{changelog:?}: {problems:?}");
        }
    }
}
