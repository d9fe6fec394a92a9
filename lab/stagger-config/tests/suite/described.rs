use core::fmt::Display;
use core::time::Duration;

use stagger_config::{Entry, Limit, RemarkKind, Setting, read};

/// Returns a line for each entry: kind, path, place, and the settings; a `*` marks what is a default.
pub(crate) fn described(text: &str) -> Vec<String> {
    read(text, None).unwrap_or_else(|error| panic!("{}: {error}", error.position())).iter().map(line).collect()
}

/// Fails unless the first entry has these settings, and what is refused or ignored is exactly what is named.
#[track_caller]
pub(crate) fn holds(text: &str, settings: &str, invalid: &str, ignored: &str) {
    let lines = described(text);
    assert!(lines[0].contains(settings), "{text}: {lines:?}");
    for (kind, part) in [(RemarkKind::Invalid, invalid), (RemarkKind::NoEffect, ignored)] {
        let found = remarks(text, kind);
        assert!(found.iter().all(|remark| remark.contains(part)), "{text}: {found:?}");
        assert_eq!(found.is_empty(), part.is_empty(), "{text}: {found:?}");
    }
}

fn line(entry: &Entry) -> String {
    let settings = &entry.settings;
    let mut parts = vec![format!("{:?} {} at {}:", entry.kind, entry.path, entry.span.start)];
    let mut add = |name: &str, value: Option<(String, bool)>| {
        parts.extend(value.map(|(value, is_stated)| format!("{name}={value}{}", if is_stated { "" } else { "*" })));
    };
    add("attempts", told(settings.attempts, |limit| limited(limit, |attempts| attempts.to_string())));
    add("base", told(settings.base, length));
    add("cap", told(settings.cap, |limit| limited(limit, length)));
    add(
        "multiplier",
        told(settings.multiplier, |multiplier| {
            format!("{multiplier:.3}").trim_end_matches(['0']).trim_end_matches('.').to_owned()
        }),
    );
    add("jitter", told(settings.jitter, |jitter| jitter.to_string()));
    add("each", told(settings.attempt_timeout, |limit| limited(limit, length)));
    add("all", told(settings.timeout, |limit| limited(limit, length)));
    add("budget", told(settings.budget, |budget| format!("({budget})")));
    if entry.may_repeat_unsafe == Some(true) {
        parts.push("unsafe".to_owned());
    }
    parts.join(" ")
}

fn told<T: Copy>(setting: Option<Setting<T>>, write: impl FnOnce(T) -> String) -> Option<(String, bool)> {
    setting.map(|setting| (write(setting.value), setting.is_stated()))
}

fn limited<T>(limit: Limit<T>, write: impl FnOnce(T) -> String) -> String {
    match limit {
        Limit::At(value) => write(value),
        Limit::None => "none".to_owned(),
        Limit::Unknown => "unknown".to_owned(),
    }
}

fn length(length: Duration) -> String {
    format!("{length:?}")
}

/// Returns the remarks of a kind, as `place path: text`, of all entries.
pub(crate) fn remarks(text: &str, kind: RemarkKind) -> Vec<String> {
    let entries = read(text, None).unwrap_or_else(|error| panic!("{}: {error}", error.position()));
    let all = entries.into_iter().flat_map(|entry| entry.remarks);
    all.filter(|remark| remark.kind == kind)
        .map(|remark| format!("{} {}: {}", remark.span.start, remark.path, remark.text))
        .collect()
}

/// Compares lists, and shows all of both if they differ.
pub(crate) fn expect<T: Display>(found: &[T], wanted: &[&str]) {
    let found: Vec<String> = found.iter().map(ToString::to_string).collect();
    assert_eq!(found, wanted, "\nfound:\n{}\nwanted:\n{}\n", found.join("\n"), wanted.join("\n"));
}
