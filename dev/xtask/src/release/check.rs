//! `cargo xtask release-check` and `release-notes`: the conditions for a release, and the changelog's section about it.

use std::ffi::OsString;
use std::fs;

use serde_json::Value;

use crate::error::Result;
use crate::shell::Shell;
use crate::workspace::{list, root, text};

/// Refuses the release of a version while anything is missing, and lists all of it.
pub(crate) fn check(arguments: &[OsString]) -> Result {
    let version = version(arguments)?;
    let problems = Facts::here(&version)?.problems();
    if !problems.is_empty() {
        return Err(format!("{version} cannot be released:\n- {}", problems.join("\n- ")).into());
    }
    println!("{version} can be released");
    Ok(())
}

/// Returns the only argument, a version as in a tag or without its `v`.
pub(crate) fn version(arguments: &[OsString]) -> Result<String> {
    let [version] = arguments else { return Err("name the version, and nothing else: 1.2.3 or v1.2.3".into()) };
    let version = version.to_str().ok_or("the version is not UTF-8")?;
    Ok(version.strip_prefix('v').unwrap_or(version).to_owned())
}

/// Prints the section of a version in the changelog.
pub(crate) fn notes_command(arguments: &[OsString]) -> Result {
    let changelog = fs::read_to_string(root().join("CHANGELOG.md"))?;
    print!("{}", Changelog::parse(&changelog).notes(&version(arguments)?)?);
    Ok(())
}

/// What the documents say instead of the address of the repository while it is unknown.
const PLACEHOLDER: &str = "https://example.com/stagger";
/// How the README marks what is true only after the first release.
const UNPUBLISHED: &str = "not published yet";

/// What decides whether a version can be released.
pub(crate) struct Facts {
    pub(crate) version: String,
    pub(crate) changelog: String,
    pub(crate) readme: String,
    /// The e-mail address of the maintainers.
    pub(crate) contact: String,
    pub(crate) packages: Vec<Published>,
    /// The changes that are not committed, as `git status` names them.
    pub(crate) uncommitted: Vec<String>,
    pub(crate) head: String,
    /// The commit of the tag of this version, if there is one.
    pub(crate) tagged: Option<String>,
}

/// A package of the workspace that is published.
pub(crate) struct Published {
    pub(crate) name: String,
    pub(crate) version: String,
    pub(crate) repository: String,
    /// The other packages of the workspace that it depends on, with the required version.
    pub(crate) requirements: Vec<(String, String)>,
}

impl Facts {
    /// Reads the facts of the working tree.
    pub(crate) fn here(version: &str) -> Result<Self> {
        let metadata = metadata()?;
        let status = Shell::new("git").args(["status", "--porcelain"]).output()?;
        let commit = |name: &str| Shell::new("git").args(["rev-parse", "--verify", "--quiet", name]);
        let tag = format!("refs/tags/v{version}^{{commit}}");
        Ok(Self {
            version: version.to_owned(),
            changelog: fs::read_to_string(root().join("CHANGELOG.md"))?,
            readme: fs::read_to_string(root().join("README.md"))?,
            contact: contact_of(&metadata),
            packages: list(&metadata["packages"])
                .filter(|package| package["publish"].is_null())
                .map(Published::of)
                .collect(),
            uncommitted: status.lines().map(str::to_owned).collect(),
            head: commit("HEAD").output()?.trim().to_owned(),
            tagged: commit(&tag).output().ok().map(|hash| hash.trim().to_owned()),
        })
    }

    /// Lists everything that prevents the release, in sentences that say how to mend it.
    pub(crate) fn problems(&self) -> Vec<String> {
        let version = &self.version;
        let mut problems = Changelog::parse(&self.changelog).problems(version);
        for package in &self.packages {
            problems.extend(package.problems(version));
        }
        problems.extend(without_repository(self.packages.iter().map(|package| &package.repository)));
        if self.contact.is_empty() {
            let place = "fill in `contact` below `[workspace.metadata.release]` in Cargo.toml";
            problems.push(format!("the e-mail address of the maintainers is empty; {place}"));
        }
        for (text, fix) in [
            (PLACEHOLDER, "write the address of the repository"),
            (UNPUBLISHED, "describe how to install what is published"),
        ] {
            if self.readme.contains(text) {
                problems.push(format!("README.md says `{text}`; {fix}"));
            }
        }
        if !self.uncommitted.is_empty() {
            problems.push(format!(
                "{} changes are not committed: {}",
                self.uncommitted.len(),
                self.uncommitted.join(", ")
            ));
        }
        if let Some(tagged) = self.tagged.as_ref().filter(|tagged| **tagged != self.head) {
            problems.push(format!("the tag v{version} is at {tagged}, but the checked-out commit is {}", self.head));
        }
        problems
    }
}

/// Returns what to do if the address of the repository is empty in any package. All of them inherit it from one place.
pub(crate) fn without_repository<T: AsRef<str>>(repositories: impl IntoIterator<Item = T>) -> Option<String> {
    let is_empty = repositories.into_iter().any(|repository| repository.as_ref().is_empty());
    let place = "fill in `repository` below `[workspace.package]` in Cargo.toml";
    is_empty.then(|| format!("the address of the repository is empty; {place}"))
}

/// Returns the e-mail address of the maintainers. Empty while nobody has filled it in.
pub(crate) fn contact() -> Result<String> {
    Ok(contact_of(&metadata()?))
}

fn contact_of(metadata: &Value) -> String {
    text(&metadata["metadata"]["release"]["contact"])
}

fn metadata() -> Result<Value> {
    let metadata = Shell::cargo("metadata --no-deps --locked --format-version 1").output()?;
    Ok(serde_json::from_str(&metadata)?)
}

impl Published {
    fn of(package: &Value) -> Self {
        let name = |value: &Value| text(&value["name"]);
        let own = list(&package["dependencies"]).filter(|dependency| dependency["path"].is_string());
        // A dependency of the tests by path alone has the requirement `*`, and is left out of the package.
        let own = own.map(|dependency| (name(dependency), text(&dependency["req"])));
        Self {
            name: name(package),
            version: text(&package["version"]),
            repository: text(&package["repository"]),
            requirements: own.filter(|(_, requirement)| requirement != "*").collect(),
        }
    }

    fn problems(&self, version: &str) -> Vec<String> {
        let mut problems = Vec::new();
        if self.version != version {
            problems.push(format!("the version of {} is {} and not {version}", self.name, self.version));
        }
        for (name, requirement) in self.requirements.iter().filter(|(_, found)| *found != format!("^{version}")) {
            problems.push(format!("{} requires {name} {requirement} and not ^{version}", self.name));
        }
        problems
    }
}

/// The name of the section with what is not released yet.
const UNRELEASED: &str = "Unreleased";

/// A changelog in the format of <https://keepachangelog.com>: a heading of the second level for each version.
pub(crate) struct Changelog<'a> {
    sections: Vec<Section<'a>>,
}

struct Section<'a> {
    version: &'a str,
    date: &'a str,
    lines: Vec<&'a str>,
}

impl<'a> Changelog<'a> {
    pub(crate) fn parse(text: &'a str) -> Self {
        let mut sections: Vec<Section<'a>> = Vec::new();
        let mut in_code = false;
        for line in text.lines() {
            in_code ^= line.starts_with("```");
            if let (Some(heading), false) = (line.strip_prefix("## "), in_code) {
                let (version, date) = heading.split_once(" - ").unwrap_or((heading, ""));
                let version = version.trim().trim_start_matches('[').trim_end_matches(']');
                sections.push(Section { version, date: date.trim(), lines: Vec::new() });
            } else if let Some(section) = sections.last_mut() {
                section.lines.push(line);
            }
        }
        Self { sections }
    }

    /// Returns the text below the heading of `version`, without the heading.
    ///
    /// # Errors
    ///
    /// If the version has no section, or an empty one.
    pub(crate) fn notes(&self, version: &str) -> core::result::Result<String, String> {
        let section = self.sections.iter().find(|section| section.version == version);
        let section = section.ok_or_else(|| format!("CHANGELOG.md has no heading `## {version} - YYYY-MM-DD`"))?;
        if section.entries() == 0 {
            return Err(format!("CHANGELOG.md has no entry for {version}"));
        }
        Ok(section.lines.join("\n").trim().to_owned() + "\n")
    }

    /// Lists what prevents a release of `version`.
    pub(crate) fn problems(&self, version: &str) -> Vec<String> {
        let mut problems: Vec<_> = self.notes(version).err().into_iter().collect();
        let named = |name| self.sections.iter().filter(move |section| section.version == name);
        if named(version).count() > 1 {
            problems.push(format!("CHANGELOG.md has {} headings for {version}; keep one", named(version).count()));
        }
        for section in named(version).filter(|section| !is_date(section.date)) {
            let date = if section.date.is_empty() { "no date" } else { section.date };
            problems.push(format!(
                "the heading of {version} in CHANGELOG.md has {date}; write `## {version} - YYYY-MM-DD`"
            ));
        }
        let left: usize = named(UNRELEASED).map(Section::entries).sum();
        if left > 0 {
            problems
                .push(format!("CHANGELOG.md has {left} lines under `{UNRELEASED}`; move them below `## {version}`"));
        }
        problems
    }
}

impl Section<'_> {
    /// Returns the number of lines that are neither blank nor headings.
    fn entries(&self) -> usize {
        self.lines.iter().filter(|line| !line.trim().is_empty() && !line.starts_with('#')).count()
    }
}

/// Returns whether the text is a date such as `2026-02-28`. The days of a month are not counted.
fn is_date(text: &str) -> bool {
    let parts: Vec<_> = text.split('-').collect();
    let [year, month, day] = parts[..] else { return false };
    let within = |part: &str, length, most| {
        let is_number = part.len() == length && part.bytes().all(|byte| byte.is_ascii_digit());
        is_number && part.parse().is_ok_and(|number: u32| (1..=most).contains(&number))
    };
    within(year, 4, 9999) && within(month, 2, 12) && within(day, 2, 31)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_version_is_read_from_a_tag_too() {
        let read = |words: &[&str]| version(&words.iter().map(Into::into).collect::<Vec<_>>());
        assert_eq!(read(&["v1.2.3"]).unwrap(), "1.2.3");
        assert_eq!(read(&["1.2.3"]).unwrap(), "1.2.3");
        assert!(read(&[]).is_err() && read(&["1.2.3", "--force"]).is_err());
    }

    fn ready() -> Facts {
        Facts {
            version: "1.2.0".to_owned(),
            changelog: "## Unreleased\n\n## 1.2.0 - 2026-03-04\n\n- A.\n".to_owned(),
            readme: "# stagger\n".to_owned(),
            contact: "developers@git.example".to_owned(),
            packages: vec![Published {
                name: "stagger-sim".to_owned(),
                version: "1.2.0".to_owned(),
                repository: "https://git.example/stagger".to_owned(),
                requirements: vec![("stagger-core".to_owned(), "^1.2.0".to_owned())],
            }],
            uncommitted: Vec::new(),
            head: "a".to_owned(),
            tagged: Some("a".to_owned()),
        }
    }

    #[test]
    fn nothing_prevents_a_release_that_is_ready() {
        assert_eq!(ready().problems(), [""; 0]);
        assert_eq!(Facts { tagged: None, ..ready() }.problems(), [""; 0]);
    }

    #[test]
    fn each_unmet_condition_prevents_a_release() {
        type Spoil = fn(&mut Facts);
        let cases: [(Spoil, &str); 9] = [
            (|facts| facts.changelog.clear(), "no heading `## 1.2.0"),
            (
                |facts| facts.packages[0].version = "1.1.0".to_owned(),
                "the version of stagger-sim is 1.1.0 and not 1.2.0",
            ),
            (
                |facts| facts.packages[0].requirements[0].1 = "^1.1.0".to_owned(),
                "stagger-sim requires stagger-core ^1.1.0 and not ^1.2.0",
            ),
            (
                |facts| facts.packages[0].repository.clear(),
                "the address of the repository is empty; fill in `repository`",
            ),
            (|facts| facts.contact.clear(), "the e-mail address of the maintainers is empty; fill in `contact`"),
            (|facts| facts.readme += PLACEHOLDER, "README.md says `https://example.com/stagger`"),
            (|facts| facts.readme += UNPUBLISHED, "README.md says `not published yet`"),
            (|facts| facts.uncommitted.push(" M README.md".to_owned()), "1 changes are not committed:  M README.md"),
            (|facts| facts.head = "b".to_owned(), "the tag v1.2.0 is at a, but the checked-out commit is b"),
        ];
        for (spoil, wanted) in cases {
            let mut facts = ready();
            spoil(&mut facts);
            let problems = facts.problems();
            assert!(problems.len() == 1 && problems[0].contains(wanted), "{wanted}: {problems:?}");
        }
    }

    #[test]
    fn the_facts_of_this_workspace_are_read() {
        let facts = Facts::here("0.0.0").unwrap();
        let program = facts.packages.iter().find(|package| package.name == "stagger-cli").unwrap();
        let wanted = ("stagger-sim".to_owned(), format!("^{}", program.version));
        assert!(program.requirements.contains(&wanted), "{:?}", program.requirements);
        assert!(facts.packages.iter().all(|package| package.name != "xtask"));
        assert!(facts.packages.iter().flat_map(|package| &package.requirements).all(|(name, _)| name != "stagger-kit"));
        assert_eq!(facts.tagged, None);
    }

    const READY: &str = "# Changelog\n\n## Unreleased\n\n## 0.2.0 - 2026-03-04\n\n### Added\n\n- A.\n\n## [0.1.0] - 2026-01-02\n\n- B.\n";

    #[test]
    fn a_dated_section_with_entries_is_ready() {
        for version in ["0.2.0", "0.1.0"] {
            assert_eq!(Changelog::parse(READY).problems(version), [""; 0], "{version}");
        }
    }

    #[test]
    fn the_notes_of_a_version_end_at_the_next_version() {
        assert_eq!(Changelog::parse(READY).notes("0.2.0").unwrap(), "### Added\n\n- A.\n");
        assert_eq!(Changelog::parse(READY).notes("0.1.0").unwrap(), "- B.\n");
    }

    #[test]
    fn each_fault_of_a_changelog_is_named() {
        for (changelog, wanted) in [
            ("## Unreleased\n", "no heading `## 1.0.0 - YYYY-MM-DD`"),
            ("## 1.0.0-rc.1 - 2026-01-02\n- A.\n", "no heading `## 1.0.0 - YYYY-MM-DD`"),
            ("```\n## 1.0.0 - 2026-01-02\n```\n- A.\n", "no heading `## 1.0.0 - YYYY-MM-DD`"),
            ("## 1.0.0 - 2026-01-02\n\n### Added\n\n## 0.9.0 - 2026-01-01\n- A.\n", "no entry for 1.0.0"),
            ("## 1.0.0\n- A.\n", "has no date; write `## 1.0.0 - YYYY-MM-DD`"),
            ("## 1.0.0 - soon\n- A.\n", "has soon; write"),
            ("## 1.0.0 - 2026-13-02\n- A.\n", "has 2026-13-02; write"),
            ("## 1.0.0 - 2026-1-2\n- A.\n", "has 2026-1-2; write"),
            ("## Unreleased\n### Added\n- A.\n- B.\n## 1.0.0 - 2026-01-02\n- C.\n", "2 lines under `Unreleased`"),
            ("## 1.0.0 - 2026-01-02\n- A.\n## 1.0.0 - 2026-01-02\n- B.\n", "2 headings for 1.0.0; keep one"),
        ] {
            let problems = Changelog::parse(changelog).problems("1.0.0");
            assert!(problems.len() == 1 && problems[0].contains(wanted), "{changelog:?}: {problems:?}");
        }
    }
}
