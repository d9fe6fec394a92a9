//! AWS SDKs: `AWS_RETRY_MODE` and `AWS_MAX_ATTEMPTS` in the environment, `retry_mode` and `max_attempts` in
//! `~/.aws/config`.
//!
//! The same lines mean different numbers in different languages, and a file does not say which SDK reads it: each place
//! yields an entry for each group of SDKs that agree.
//!
//! Read in botocore's `retries/standard.py`, `args.py` and `configloader.py`, in aws-sdk-cpp's `RetryStrategy.cpp` and
//! `DefaultRetryStrategy.cpp`, and in the announcements of May and November 2026 for the others.
//!
//! | field | default | empty | ignored | refused |
//! |---|---|---|---|---|
//! | `AWS_RETRY_MODE`, `retry_mode` | legacy or standard, by the SDK | the default | in other sections | other words |
//! | `AWS_MAX_ATTEMPTS`, `max_attempts` | by the SDK and its mode | the default | in other sections | 0 |
//! | `AWS_NEW_RETRIES_2026` | false; as if true, in releases from 10 November 2026 on, except for Java | the default | in legacy mode | |
//!
//! A section is one of a profile if it is `[default]` or `[profile NAME]`. In a file of credentials, which has no
//! section `[profile NAME]`, each section is one.

use core::time::Duration;

use stagger_core::Jitter;

use crate::entry::{Entry, EntryKind, Found, Limit, Remark, RemarkKind, RetryBudget, Setting, Settings};
use crate::fields::{shortened, whole};
use crate::format::Format;
use crate::position::Span;
use crate::tree::placeholders::{self, Filled, Syntax};
use crate::tree::{Assignment, assignments};

const CAP: Duration = Duration::from_secs(20);
const QUOTA: RetryBudget = RetryBudget::Tokens { capacity: 500 };

#[derive(Clone, Copy, PartialEq, Eq)]
enum Mode {
    Legacy,
    Standard,
    Adaptive,
}

/// What an SDK does in one of its modes.
#[derive(Clone, Copy)]
struct Numbers {
    attempts: u32,
    base_ms: u64,
    cap: Limit<Duration>,
    jitter: Jitter,
    budget: RetryBudget,
}

/// An SDK: its mode if nothing is set, and its numbers.
struct Sdk {
    name: &'static str,
    mode: Mode,
    /// `None` if it has no legacy mode.
    legacy: Option<Numbers>,
    standard: Numbers,
}

const fn standard(base_ms: u64) -> Numbers {
    Numbers { attempts: 3, base_ms, cap: Limit::At(CAP), jitter: Jitter::Full, budget: QUOTA }
}

const SDKS: [Sdk; 7] = [
    Sdk {
        name: "Python",
        mode: Mode::Legacy,
        legacy: Some(Numbers {
            attempts: 5,
            base_ms: 1_000,
            cap: Limit::None,
            jitter: Jitter::Full,
            budget: RetryBudget::Unlimited,
        }),
        standard: standard(1_000),
    },
    Sdk { name: "Go", mode: Mode::Standard, legacy: None, standard: standard(1_000) },
    Sdk { name: "Rust", mode: Mode::Standard, legacy: None, standard: standard(1_000) },
    Sdk { name: ".NET", mode: Mode::Standard, legacy: None, standard: standard(1_000) },
    Sdk {
        name: "C++",
        mode: Mode::Legacy,
        legacy: Some(Numbers {
            attempts: 11,
            base_ms: 25,
            cap: Limit::None,
            jitter: Jitter::None,
            budget: RetryBudget::Unlimited,
        }),
        standard: standard(1_000),
    },
    Sdk {
        name: "Java",
        mode: Mode::Legacy,
        legacy: Some(Numbers { attempts: 4, ..standard(100) }),
        standard: standard(100),
    },
    Sdk { name: "JavaScript", mode: Mode::Standard, legacy: None, standard: standard(100) },
];

/// The numbers of 2026, which all SDKs share: those of DynamoDB, and of other services.
const NEW: [(&str, Numbers); 2] =
    [("", standard(50)), ("DynamoDB", Numbers { attempts: 4, base_ms: 25, ..standard(50) })];

/// Where the settings of one place stand.
#[derive(Default)]
struct Place<'a> {
    mode: Option<&'a Assignment<'a>>,
    attempts: Option<&'a Assignment<'a>>,
    new: Option<&'a Assignment<'a>>,
}

impl<'a> Place<'a> {
    /// Finds the settings; the last assignment of each counts.
    fn of(assignments: &'a [Assignment<'a>], section: Option<&str>) -> Self {
        let last = |wanted: &str| {
            let is_meant = |found: &&Assignment<'_>| match section {
                None => variable(found) == Some(wanted),
                Some(section) => {
                    found.section == section
                        && wanted.strip_prefix("AWS_").is_some_and(|name| name.eq_ignore_ascii_case(found.name))
                }
            };
            assignments.iter().rev().find(is_meant).filter(|found| !unquoted(&found.value).is_empty())
        };
        Self { mode: last("AWS_RETRY_MODE"), attempts: last("AWS_MAX_ATTEMPTS"), new: last("AWS_NEW_RETRIES_2026") }
    }

    /// The settings that are present.
    fn present(&self) -> impl Iterator<Item = &'a Assignment<'a>> {
        [self.mode, self.attempts, self.new].into_iter().flatten()
    }
}

/// Returns the name of an environment variable that a line sets: `NAME=value`, also after `export`, `ENV` or `set`.
fn variable<'a>(found: &Assignment<'a>) -> Option<&'a str> {
    if found.section.is_empty() { found.name.rsplit(char::is_whitespace).next() } else { None }
}

fn unquoted(text: &str) -> &str {
    for quote in ['"', '\''] {
        if let Some(rest) = text.strip_prefix(quote)
            && let Some(inner) = rest.strip_suffix(quote)
        {
            return inner.trim();
        }
    }
    text.trim()
}

/// Returns whether a text sets how an AWS SDK retries.
pub(crate) fn is_aws(text: &str) -> bool {
    // The names of the environment say whose they are; in a section they need a second mark.
    const BESIDE: [&str; 12] = [
        "region",
        "output",
        "aws_access_key_id",
        "aws_secret_access_key",
        "aws_session_token",
        "role_arn",
        "source_profile",
        "credential_source",
        "credential_process",
        "sso_session",
        "sso_start_url",
        "retry_mode",
    ];
    let found = assignments(text);
    let has_credentials = has_credentials(&found);
    let is_meant = |section: Option<&str>| {
        let place = Place::of(&found, section);
        match section {
            _ if place.present().next().is_none() => false,
            Some("default") => found.iter().any(|other| {
                !other.section.is_empty() && BESIDE.contains(&other.name) || other.section.starts_with("profile ")
            }),
            Some(section) if section.starts_with("profile ") || has_credentials => true,
            // A section that the SDKs ignore, if it looks like one of theirs.
            Some(section) => found
                .iter()
                .any(|other| other.section == section && BESIDE.contains(&other.name) && other.name != "retry_mode"),
            None => true,
        }
    };
    sections(&found).into_iter().any(is_meant)
}

/// Returns whether a file is one of credentials, in which the name of a section is that of a profile.
fn has_credentials(assignments: &[Assignment<'_>]) -> bool {
    let is_of_config =
        |section: &str| ["profile ", "sso-session ", "services "].iter().any(|start| section.starts_with(start));
    !assignments.iter().any(|found| is_of_config(found.section))
        && assignments.iter().any(|found| !found.section.is_empty() && found.name == "aws_access_key_id")
}

/// The environment, and the sections in their order.
fn sections<'a>(assignments: &[Assignment<'a>]) -> Vec<Option<&'a str>> {
    let mut sections = vec![None];
    for found in assignments.iter().filter(|found| !found.section.is_empty()) {
        // Sections stand together, so this compares with one.
        if sections.last() != Some(&Some(found.section)) {
            sections.push(Some(found.section));
        }
    }
    sections
}

pub(crate) fn read(text: &str) -> Vec<Entry> {
    let assignments = assignments(text);
    let has_credentials = has_credentials(&assignments);
    let mut entries = Vec::new();
    for section in sections(&assignments) {
        let place = Place::of(&assignments, section);
        let Some(first) = place.present().next() else { continue };
        match section {
            None => entries.extend(read_place(&place, "environment", first.span)),
            Some(section) if has_credentials || section == "default" || section.starts_with("profile ") => {
                entries.extend(read_place(&place, &format!("[{section}]"), first.span));
            }
            Some(section) => entries.push(ignored(&place, section, first.span)),
        }
    }
    entries
}

/// Says what stands in a section that is none of a profile.
fn ignored(place: &Place<'_>, section: &str, span: Span) -> Entry {
    let mut entry = Entry::new(Format::Aws, EntryKind::Unread, format!("[{section}]"), span);
    let is_other = ["sso-session ", "services "].iter().any(|start| section.starts_with(start));
    let text = if is_other {
        "has no effect in this section; write it into that of a profile".to_owned()
    } else {
        format!(
            "has an effect in a file of credentials only; in a config file the section of a profile is [profile {}]",
            shortened(section)
        )
    };
    entry.remarks.extend(place.present().map(|found| Remark {
        kind: RemarkKind::NoEffect,
        path: format!("[{section}] {}", found.name),
        span: found.span,
        text: text.clone(),
    }));
    entry
}

fn read_place(place: &Place<'_>, name: &str, span: Span) -> Vec<Entry> {
    let mut remarks = Vec::new();
    let mut remark = |found: &Assignment<'_>, kind, text: String| {
        remarks.push(Remark { kind, path: found.name.to_owned(), span: found.span, text });
    };
    // Returns the value with what its placeholders have as defaults; `None` if it is not known.
    let filled = |found: &Assignment<'_>, remark: &mut dyn FnMut(&Assignment<'_>, RemarkKind, String)| {
        let written = unquoted(&found.value);
        let value = match placeholders::filled(written, Syntax::Shell) {
            Filled::Plain => return Some(written.to_owned()),
            Filled::Default(value) => Some(value),
            Filled::Unknown => None,
        };
        let (kind, text) = placeholders::said(written, value.is_some());
        remark(found, kind, text);
        value
    };
    let mut mode = None;
    let mut is_known = true;
    if let Some(found) = place.mode {
        match filled(found, &mut remark).map(|mode| mode.to_ascii_lowercase()).as_deref() {
            None => is_known = false,
            Some("") => {}
            Some("legacy") => mode = Some(Mode::Legacy),
            Some("standard") => mode = Some(Mode::Standard),
            Some("adaptive") => {
                mode = Some(Mode::Adaptive);
                let text = "adaptive mode also limits the rate of requests in the client after throttling";
                remark(found, RemarkKind::Unmapped, text.to_owned());
            }
            Some(_) => {
                is_known = false;
                let text = format!("`{}` is not legacy, standard or adaptive", shortened(unquoted(&found.value)));
                remark(found, RemarkKind::Invalid, text);
            }
        }
    }
    let mut attempts = Found::Absent;
    if let Some(found) = place.attempts {
        attempts = Found::Unknown(found.span);
        if let Some(value) = filled(found, &mut remark) {
            match whole(&value) {
                None | Some(0) => {
                    let text = format!("`{}` is not a whole number of 1 or more", shortened(&value));
                    remark(found, RemarkKind::Invalid, text);
                }
                Some(number) => attempts = Found::Known(Setting::stated(number, found.span)),
            }
        }
    }
    let is_new = match place.new {
        Some(found) => match filled(found, &mut remark) {
            Some(value) => value.eq_ignore_ascii_case("true"),
            None => {
                is_known = false;
                false
            }
        },
        None => false,
    };
    let groups = if !is_known {
        // Without the mode, the attempts are all that is known.
        vec![("all SDKs".to_owned(), Settings { attempts: attempts.limit(), ..Settings::default() })]
    } else if is_new && mode != Some(Mode::Legacy) {
        new_groups(attempts)
    } else {
        groups(mode, attempts)
    };
    let mut entries: Vec<Entry> = groups
        .into_iter()
        .map(|(readers, settings)| {
            let mut entry = Entry::new(Format::Aws, EntryKind::Call, format!("{name} in {readers}"), span);
            entry.settings = settings;
            entry
        })
        .collect();
    if let Some(first) = entries.first_mut() {
        let mut text = "the numbers depend on the SDK that reads this: each entry names its SDKs".to_owned();
        if attempts == Found::Absent && matches!(mode, None | Some(Mode::Legacy)) && !is_new {
            text += "; in legacy mode, the one for Python makes 10 attempts at DynamoDB";
        }
        if !is_new {
            text += "; releases from 10 November 2026 on, except those for Java, have the numbers of \
                     AWS_NEW_RETRIES_2026=true";
        }
        remarks.push(Remark { kind: RemarkKind::Note, path: name.to_owned(), span, text });
        first.remarks = remarks;
    }
    entries
}

/// The SDKs that do the same, with what they do.
fn groups(mode: Option<Mode>, attempts: Found<u32>) -> Vec<(String, Settings)> {
    let mut groups: Vec<(String, Settings)> = Vec::new();
    for sdk in &SDKS {
        let numbers = match mode.unwrap_or(sdk.mode) {
            Mode::Legacy => sdk.legacy.unwrap_or(sdk.standard),
            Mode::Standard | Mode::Adaptive => sdk.standard,
        };
        let settings = settings(numbers, attempts);
        match groups.iter_mut().find(|(_, others)| *others == settings) {
            Some((names, _)) => names.extend([", ", sdk.name]),
            None => groups.push((format!("SDKs for {}", sdk.name), settings)),
        }
    }
    groups
}

fn new_groups(attempts: Found<u32>) -> Vec<(String, Settings)> {
    NEW.iter()
        .map(|(service, numbers)| {
            let readers = if service.is_empty() { "all SDKs".to_owned() } else { format!("all SDKs for {service}") };
            (readers, settings(*numbers, attempts))
        })
        .collect()
}

fn settings(numbers: Numbers, attempts: Found<u32>) -> Settings {
    Settings {
        attempts: Some(attempts.limit_or(Limit::At(numbers.attempts))),
        base: Some(Setting::default(Duration::from_millis(numbers.base_ms))),
        cap: Some(Setting::default(numbers.cap)),
        multiplier: Some(Setting::default(2.0)),
        jitter: Some(Setting::default(numbers.jitter)),
        budget: Some(Setting::default(numbers.budget)),
        ..Settings::default()
    }
}
