//! Checks the style of documentation: functions begin with a verb, and sentences name their subject.

use core::fmt;
use std::fs;

use crate::Result;
use crate::files::{entries, files, shown};
use crate::workspace::root;

/// The required share of documented public functions whose documentation begins with a verb in the third person.
const VERBS: f64 = 0.85;

/// The limit for words of [`SUBJECTS`] in the comments of `crates/*/src`.
const SUBJECTS_IN_COMMENTS: usize = 60;

/// The limit for words of [`SUBJECTS`] in the pages: README, ARCHITECTURE, CONTRIBUTING and `docs/**/*.md`.
const SUBJECTS_IN_PAGES: usize = 40;

/// Holds no messages for users; a test runs as the system's user `nobody`.
const WITHOUT_MESSAGES: &str = "dev/kit/";

/// Pronouns that stand in place of a named subject: the caller, the task, the server.
const SUBJECTS: [&str; 5] = ["who", "whoever", "whom", "nobody", "somebody"];

/// Capitalized words that end in `s` and are not verbs.
const NOT_VERBS: [&str; 25] = [
    "Across",
    "Always",
    "As",
    "Attempts",
    "Besides",
    "Bytes",
    "Connections",
    "Delays",
    "Errors",
    "Headers",
    "Hours",
    "Its",
    "Less",
    "Messages",
    "Milliseconds",
    "Minutes",
    "Names",
    "Nanoseconds",
    "Others",
    "Perhaps",
    "Plus",
    "Requests",
    "Seconds",
    "This",
    "Unless",
];

/// The counts, with the places that they consist of.
#[derive(Debug, Default)]
pub(crate) struct Prose {
    functions: usize,
    /// `file:line: text` of each function whose documentation does not begin with a verb.
    without_verb: Vec<String>,
    /// `file:line: text` of each word of [`SUBJECTS`] in a comment.
    in_comments: Vec<String>,
    /// `file:line: text` of each word of [`SUBJECTS`] in a page.
    in_pages: Vec<String>,
    /// `file:line: text` of each string literal with a word of [`SUBJECTS`], or with "is no …" in place of "is not a …".
    in_messages: Vec<String>,
}

impl Prose {
    /// Reads the sources and the pages of the workspace.
    pub(crate) fn from_workspace() -> Result<Self> {
        let mut prose = Self::default();
        for directory in entries(&root().join("crates"))? {
            for path in files(&directory.join("src"), "rs")? {
                prose.read_source(&shown(&path), &fs::read_to_string(&path)?);
            }
        }
        let mut pages = files(&root().join("docs"), "md")?;
        pages.extend(["README.md", "ARCHITECTURE.md", "CONTRIBUTING.md"].map(|name| root().join(name)));
        for path in pages {
            prose.read_page(&shown(&path), &fs::read_to_string(&path)?);
        }
        Ok(prose)
    }

    /// Returns every counted place as `file:line: text`.
    pub(crate) fn places(&self) -> impl Iterator<Item = &str> {
        [&self.without_verb, &self.in_comments, &self.in_pages, &self.in_messages]
            .into_iter()
            .flatten()
            .map(String::as_str)
    }

    /// Checks the counts against the limits.
    ///
    /// # Errors
    ///
    /// Lists the limits that are exceeded.
    pub(crate) fn check(&self) -> Result {
        let mut problems = Vec::new();
        if self.verbs() < VERBS {
            problems.push(format!("fewer than {:.0} % of the functions begin with a verb", 100.0 * VERBS));
        }
        let subjects = SUBJECTS.join(", ");
        if self.in_comments.len() > SUBJECTS_IN_COMMENTS {
            problems.push(format!("more than {SUBJECTS_IN_COMMENTS} uses of {subjects} in comments"));
        }
        if self.in_pages.len() > SUBJECTS_IN_PAGES {
            problems.push(format!("more than {SUBJECTS_IN_PAGES} uses of {subjects} in pages"));
        }
        if !self.in_messages.is_empty() {
            problems.push(format!("{subjects} or \"is no ...\" in messages"));
        }
        if problems.is_empty() { Ok(()) } else { Err(format!("{self}: {}", problems.join("; ")).into()) }
    }

    fn verbs(&self) -> f64 {
        #[expect(clippy::cast_precision_loss, reason = "some thousands")]
        let share = |part: usize| part as f64 / self.functions.max(1) as f64;
        1.0 - share(self.without_verb.len())
    }

    fn read_source(&mut self, file: &str, source: &str) {
        // The first line of the next item's documentation. Attributes may come between the two.
        let mut documentation: Option<&str> = None;
        let mut open_brackets = 0;
        for (number, line) in (1..).zip(source.lines().map(str::trim)) {
            if line.starts_with("//") {
                self.in_comments.extend(subjects(line).map(|_| format!("{file}:{number}: {line}")));
            } else if literal(line).is_some_and(is_unclear) && !file.starts_with(WITHOUT_MESSAGES) {
                self.in_messages.push(format!("{file}:{number}: {line}"));
            }
            if open_brackets > 0 || line.starts_with("#[") {
                open_brackets += brackets(line);
            } else if let Some(text) = line.strip_prefix("///") {
                documentation.get_or_insert(text.trim());
            } else if let Some(text) = documentation.take()
                && is_public_function(line)
            {
                self.functions += 1;
                if !begins_with_verb(text) {
                    self.without_verb.push(format!("{file}:{number}: {text}"));
                }
            }
        }
    }

    fn read_page(&mut self, file: &str, page: &str) {
        for (number, line) in (1..).zip(page.lines()) {
            self.in_pages.extend(subjects(line).map(|_| format!("{file}:{number}: {line}")));
        }
    }
}

impl fmt::Display for Prose {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{:.1} % of {} functions begin with a verb; pronouns as subjects: {} in comments, {} in pages, {} in messages",
            100.0 * self.verbs(),
            self.functions,
            self.in_comments.len(),
            self.in_pages.len(),
            self.in_messages.len(),
        )
    }
}

fn is_public_function(line: &str) -> bool {
    let Some(mut rest) = line.strip_prefix("pub ") else { return false };
    while let Some(shorter) = ["const ", "async ", "unsafe "].iter().find_map(|word| rest.strip_prefix(word)) {
        rest = shorter;
    }
    rest.starts_with("fn ")
}

/// Returns whether the text begins with a capitalized word that ends in `s` and is not in [`NOT_VERBS`].
fn begins_with_verb(text: &str) -> bool {
    let Some(word) = words(text).next().filter(|word| text.starts_with(word)) else { return false };
    let (first, rest) = word.split_at(1);
    let is_capitalized = first.chars().all(|c| c.is_ascii_uppercase()) && rest.chars().all(|c| c.is_ascii_lowercase());
    is_capitalized && rest.ends_with('s') && !NOT_VERBS.contains(&word)
}

fn subjects(line: &str) -> impl Iterator<Item = &str> {
    words(line).filter(|word| SUBJECTS.iter().any(|subject| subject.eq_ignore_ascii_case(word)))
}

/// Returns what lies between the first and the last quotation mark of a line.
fn literal(line: &str) -> Option<&str> {
    let (from, to) = (line.find('"')?, line.rfind('"')?);
    line.get(from + 1..to)
}

/// Returns whether a message leaves its subject open, or says "`x` is no y".
fn is_unclear(message: &str) -> bool {
    let says_is_no = message
        .match_indices("is no ")
        .any(|(at, found)| !message[..at].ends_with("there ") && !message[at + found.len()..].starts_with("longer"));
    says_is_no || subjects(message).next().is_some()
}

fn words(text: &str) -> impl Iterator<Item = &str> {
    let is_word = |c: char| c.is_ascii_alphanumeric() || c == '_';
    text.split(move |c| !is_word(c)).filter(|word| !word.is_empty())
}

fn brackets(line: &str) -> i32 {
    line.chars().map(|c| i32::from(c == '[') - i32::from(c == ']')).sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn verbs_in_the_third_person_are_recognized() {
        for text in ["Returns the delay.", "Is it open?", "Has a permit.", "Sets, once."] {
            assert!(begins_with_verb(text), "{text}");
        }
        for text in ["", "The delay.", "This policy.", "Return it.", "`Sets` it.", "HTTPs", "s", "Unless it is open."] {
            assert!(!begins_with_verb(text), "{text}");
        }
    }

    #[test]
    fn public_functions_count_by_the_first_line_of_their_documentation() {
        let source = "\
            /// Returns it.\n/// The second line.\n#[must_use]\n#[expect(\n    a,\n)]\npub const fn a() {}\n\
            /// The other.\npub async fn b() {}\n\
            /// Not public.\nfn c() {}\n/// Not outside.\npub(crate) fn d() {}\n\
            /// A type.\npub struct E;\npub fn undocumented() {}\n";
        let mut prose = Prose::default();
        prose.read_source("lib.rs", source);
        assert_eq!((prose.functions, prose.without_verb), (2, vec!["lib.rs:9: The other.".to_owned()]));
    }

    #[test]
    fn subjects_count_as_whole_words_in_comments_only() {
        let mut prose = Prose::default();
        prose.read_source("lib.rs", "// Whoever asks, nobody knows whom.\nlet who = 1; // who\n/// whole who_am_i\n");
        assert_eq!(prose.in_comments.len(), 3, "{:?}", prose.in_comments);
        prose.read_page("README.md", "Who\nsomebody else's");
        assert_eq!(prose.in_pages.len(), 2, "{:?}", prose.in_pages);
    }

    #[test]
    fn messages_name_their_subject_and_say_is_not() {
        let mut prose = Prose::default();
        let source =
            "f(\"whoever it is\");\nf(\"`x` is no y\");\nf(\"there is no y\");\nf(\"x is no longer y\");\nf(who);\n";
        prose.read_source("lib.rs", source);
        assert_eq!(prose.in_messages.len(), 2, "{:?}", prose.in_messages);
        prose.read_source("dev/kit/src/user.rs", "named(\"nobody\")");
        assert_eq!(prose.in_messages.len(), 2, "{:?}", prose.in_messages);
    }

    #[test]
    fn each_exceeded_limit_is_reported() {
        let few = Prose { functions: 20, without_verb: vec![String::new(); 3], ..Prose::default() };
        few.check().unwrap();
        let places = |count| vec![String::new(); count];
        let many = Prose {
            functions: 20,
            without_verb: places(4),
            in_comments: places(61),
            in_pages: places(41),
            in_messages: places(1),
        };
        let error = many.check().unwrap_err().to_string();
        assert!(error.contains("80.0 % of 20 functions begin with a verb;"), "{error}");
        for problem in ["fewer than 85 %", "more than 60 uses of who", "more than 40 uses of who", "in messages"] {
            assert!(error.contains(problem), "{error}");
        }
    }
}
