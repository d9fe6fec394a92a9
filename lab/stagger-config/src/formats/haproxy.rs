//! `HAProxy`: `retries`, `retry-on`, `option redispatch` and timeouts.
//!
//! Read in `doc/configuration.txt` of version 3.3.

use core::time::Duration;

use stagger_core::Jitter;

use crate::entry::{Entry, EntryKind, Limit, Remark, RemarkKind, RetryBudget, Setting};
use crate::fields::whole;
use crate::format::Format;
use crate::position::{Position, Span};
use crate::units;

const RETRIES: u32 = 3;
/// Before the same server is tried again, unless `timeout connect` is shorter.
const DELAY: Duration = Duration::from_secs(1);

const SECTIONS: [&str; 14] = [
    "global",
    "defaults",
    "frontend",
    "backend",
    "listen",
    "resolvers",
    "peers",
    "mailers",
    "userlist",
    "program",
    "http-errors",
    "cache",
    "ring",
    "crt-store",
];

/// A line: its words and place.
struct Line<'a> {
    words: Vec<&'a str>,
    span: Span,
}

fn lines(text: &str) -> impl Iterator<Item = Line<'_>> {
    text.lines().enumerate().filter_map(|(at, line)| {
        let content = line.split('#').next().unwrap_or_default();
        let words: Vec<_> = content.split_whitespace().collect();
        let start = content.chars().take_while(|character| character.is_whitespace()).count() + 1;
        let end = content.trim_end().chars().count() + 1;
        if words.is_empty() {
            return None;
        }
        Some(Line { words, span: Span::new(Position::new(at + 1, start), Position::new(at + 1, end)) })
    })
}

pub(crate) fn is_haproxy(text: &str) -> bool {
    let is_section = |line: &Line<'_>| {
        line.span.start.column == 1
            && matches!(line.words[0], "global" | "defaults" | "backend" | "listen" | "frontend")
    };
    let found: Vec<_> = lines(text).take(10_000).filter(is_section).collect();
    found.iter().any(|line| line.words.len() <= 4) && lines(text).take(10_000).all(|line| !line.words[0].ends_with(':'))
}

/// What a section says, and inherits from its defaults.
#[derive(Clone, Default)]
struct Section {
    retries: Option<Setting<u32>>,
    connect: Option<Setting<Duration>>,
    server: Option<Setting<Duration>>,
    is_http: Option<bool>,
    /// Conditions of `retry-on`.
    conditions: Vec<String>,
    conditions_span: Option<Span>,
    redispatches: bool,
    has_servers: bool,
    remarks: Vec<Remark>,
}

pub(crate) fn read(text: &str) -> Vec<Entry> {
    let mut entries = Vec::new();
    let mut defaults = Section::default();
    // Defaults by name, for `defaults B from A` and `backend x from A`.
    let mut named: Vec<(String, Section)> = Vec::new();
    let mut current: Option<(String, Span, Section)> = None;
    let finish = |found: Option<(String, Span, Section)>,
                  defaults: &mut Section,
                  named: &mut Vec<(String, Section)>,
                  entries: &mut Vec<Entry>| {
        let Some((title, span, section)) = found else { return };
        if title.starts_with("defaults") {
            if let Some(name) = title.split(' ').nth(1) {
                named.push((name.to_owned(), section.clone()));
            }
            *defaults = Section { remarks: Vec::new(), ..section };
        } else if (title.starts_with("backend") || title.starts_with("listen")) && section.has_servers {
            entries.push(entry(title, span, section));
        }
    };
    for line in lines(text) {
        if SECTIONS.contains(&line.words[0]) {
            finish(current.take(), &mut defaults, &mut named, &mut entries);
            let title = line.words.iter().take(2).copied().collect::<Vec<_>>().join(" ");
            // Defaults inherit from those that they name only, and other sections from the last defaults.
            let is_defaults = line.words[0] == "defaults";
            let mut inherited = if is_defaults { Section::default() } else { defaults.clone() };
            let from = line.words.iter().skip_while(|word| **word != "from").nth(1);
            if let Some(from) = from
                && let Some((_, section)) = named.iter().rev().find(|(name, _)| name == from)
            {
                inherited = section.clone();
            }
            current = Some((title, line.span, inherited));
        } else if let Some((_, _, section)) = &mut current {
            section.read(&line);
        }
    }
    finish(current, &mut defaults, &mut named, &mut entries);
    entries
}

impl Section {
    fn read(&mut self, line: &Line<'_>) {
        let words = &line.words[..];
        match words {
            ["retries", number] => match whole(number) {
                Some(number) => self.retries = Some(Setting::stated(number, line.span)),
                None => self.invalid(line, "retries", number, "a whole number"),
            },
            ["timeout", name @ ("connect" | "server"), length, ..] => match (units::haproxy(length), *name) {
                (Some(length), "connect") => self.connect = Some(Setting::stated(length, line.span)),
                (Some(length), _) => self.server = Some(Setting::stated(length, line.span)),
                (None, name) => self.invalid(line, &format!("timeout {name}"), length, "a length of time, such as 5s"),
            },
            ["mode", mode] => self.is_http = Some(*mode == "http"),
            ["retry-on", conditions @ ..] => {
                self.conditions = conditions.iter().map(|word| (*word).to_owned()).collect();
                self.conditions_span = Some(line.span);
            }
            ["option", "redispatch", ..] => self.redispatches = true,
            ["no", "option", "redispatch"] => self.redispatches = false,
            ["server" | "server-template", ..] => self.has_servers = true,
            _ => {}
        }
    }

    fn invalid(&mut self, line: &Line<'_>, path: &str, value: &str, wanted: &str) {
        let text = format!("`{value}` is not {wanted}");
        self.remarks.push(Remark { kind: RemarkKind::Invalid, path: path.to_owned(), span: line.span, text });
    }
}

fn entry(title: String, span: Span, section: Section) -> Entry {
    let mut entry = Entry::new(Format::Haproxy, EntryKind::Call, title, span);
    entry.remarks = section.remarks;
    let retries = section.retries.unwrap_or(Setting::default(RETRIES));
    entry.settings.attempts = Some(retries.map(|retries| Limit::At(retries.saturating_add(1))));
    let connect = section.connect;
    let delay = Setting::value_or(connect, DELAY).min(DELAY);
    if retries.value > 0 {
        entry.settings = core::mem::take(&mut entry.settings).constant(Setting::default(delay));
        entry.settings.jitter = Some(Setting::default(Jitter::None));
    }
    entry.settings.budget = Some(Setting::default(RetryBudget::Unlimited));
    // A response is waited for as long as the server's timeout.
    entry.settings.attempt_timeout = section.server.or(connect).map(|length| length.map(Limit::At));
    entry.settings.timeout = Some(Setting::default(Limit::None));
    const NEW_CONNECTION: [&str; 3] = ["none", "conn-failure", "0rtt-rejected"];
    let unsafe_conditions = section.conditions.iter().any(|word| !NEW_CONNECTION.contains(&word.as_str()));
    entry.may_repeat_unsafe = Some(unsafe_conditions && section.is_http != Some(false));
    let mut note = |kind, span, text: &str| {
        entry.remarks.push(Remark { kind, path: entry.path.clone(), span, text: text.to_owned() });
    };
    if let (Some(span), Some(false)) = (section.conditions_span, section.is_http) {
        note(RemarkKind::NoEffect, span, "retry-on has an effect in mode http only");
    }
    note(
        RemarkKind::Note,
        span,
        if section.redispatches {
            "the last retry goes to another server, at once; the others wait for the same server"
        } else {
            "the delay is before the same server is tried again"
        },
    );
    entry
}
