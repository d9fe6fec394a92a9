//! The sections of `CHANGELOG.md`.

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
    pub(crate) fn notes(&self, version: &str) -> Result<String, String> {
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
