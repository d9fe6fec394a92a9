//! `HAProxy`: `retries`, `retry-on`, `option redispatch` and timeouts.
//!
//! Read in `doc/configuration.txt`, and in `back_handle_st_cer` of `backend.c`, version 3.3.
//!
//! | field | default | 0 | ignored | refused |
//! |---|---|---|---|---|
//! | `retries` | 3 | 0: no retry | in a frontend | no whole number |
//! | `retry-on` | `conn-failure` | `none`: no retry | in mode tcp | other words |
//! | `mode` | tcp | | | |
//! | `option redispatch` | off; -1 without a number | 0: off | with one server | no whole number |
//! | `timeout connect` | no limit; the delay is it, 1 s at most | 0: no limit, and a delay of 1 s | | |
//! | `timeout server` | no limit | 0: no limit | | |
//!
//! An interval of `option redispatch` above 0 sends each so-many-th retry to another server, at once; one below 0 the
//! retry that is so many before the end.

use core::time::Duration;

use stagger_core::Jitter;

use crate::entry::{Entry, EntryKind, Found, Limit, Remark, RemarkKind, RetryBudget, Setting};
use crate::fields::{shortened, whole};
use crate::format::Format;
use crate::position::{Position, Span};
use crate::tree::placeholders::{self, Filled, Syntax};
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
    // A keyword of its own, beside a section that other files may have as well.
    const KEYWORDS: [&str; 16] = [
        "server",
        "server-template",
        "bind",
        "timeout",
        "mode",
        "balance",
        "option",
        "retries",
        "retry-on",
        "log",
        "maxconn",
        "default_backend",
        "use_backend",
        "default-server",
        "stats",
        "daemon",
    ];
    let has_keyword = lines(text).take(10_000).any(|line| KEYWORDS.contains(&line.words[0]));
    has_keyword
        && found.iter().any(|line| line.words.len() <= 4)
        && lines(text).take(10_000).all(|line| !line.words[0].ends_with(':'))
}

/// What a section says, and inherits from its defaults.
#[derive(Clone)]
struct Section {
    retries: Found<u32>,
    connect: Found<Duration>,
    server: Found<Duration>,
    is_http: bool,
    /// Conditions of `retry-on`.
    conditions: Vec<String>,
    conditions_span: Option<Span>,
    redispatches: Redispatch,
    servers: u32,
    /// What is said about retries here, and not inherited.
    own: Vec<(&'static str, Span)>,
    remarks: Vec<Remark>,
}

/// Which retries go to another server.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Redispatch {
    Never,
    /// Every so many.
    Each(u32),
    /// The one that is so many before the end; 1 is the last.
    BeforeEnd(u32),
    /// The file does not say it.
    Unknown,
}

impl Default for Section {
    fn default() -> Self {
        Self {
            retries: Found::Absent,
            connect: Found::Absent,
            server: Found::Absent,
            // The mode is tcp unless the file says another.
            is_http: false,
            conditions: Vec::new(),
            conditions_span: None,
            redispatches: Redispatch::Never,
            servers: 0,
            own: Vec::new(),
            remarks: Vec::new(),
        }
    }
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
                named.push((name.to_owned(), Section { own: Vec::new(), ..section.clone() }));
            }
            *defaults = Section { remarks: Vec::new(), own: Vec::new(), ..section };
        } else if (title.starts_with("backend") || title.starts_with("listen")) && section.servers > 0 {
            entries.push(entry(title, span, section));
        } else if title.starts_with("frontend") {
            entries.extend(ignored(title, span, &section));
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
            ["retries", ..] => self.own.push(("retries", line.span)),
            ["retry-on", ..] => self.own.push(("retry-on", line.span)),
            ["option", "redispatch", ..] => self.own.push(("option redispatch", line.span)),
            _ => {}
        }
        match words {
            ["retries", number, ..] => self.retries = self.value(line, "retries", number, "a whole number", whole),
            ["timeout", "connect", length, ..] => {
                self.connect = self.value(line, "timeout connect", length, LENGTH, units::haproxy);
            }
            ["timeout", "server", length, ..] => {
                self.server = self.value(line, "timeout server", length, LENGTH, units::haproxy);
            }
            ["mode", mode, ..] => self.is_http = *mode == "http",
            ["retry-on", conditions @ ..] => {
                self.conditions = conditions.iter().map(|word| (*word).to_owned()).collect();
                self.conditions_span = Some(line.span);
                for word in conditions {
                    if !CONDITIONS.contains(word) && word.parse::<u16>().is_err() {
                        self.value::<()>(line, "retry-on", word, "a condition that HAProxy knows", |_| None);
                    }
                }
            }
            ["option", "redispatch"] => self.redispatches = Redispatch::BeforeEnd(1),
            ["option", "redispatch", interval, ..] => {
                let parse = |text: &str| text.parse::<i32>().ok();
                let interval = self.value(line, "option redispatch", interval, "a whole number", parse);
                self.redispatches = match interval.known() {
                    None => Redispatch::Unknown,
                    Some(Setting { value: 0, .. }) => Redispatch::Never,
                    Some(Setting { value: each @ 1.., .. }) => Redispatch::Each(each.unsigned_abs()),
                    Some(Setting { value: before, .. }) => Redispatch::BeforeEnd(before.unsigned_abs()),
                };
            }
            ["no", "option", "redispatch", ..] => self.redispatches = Redispatch::Never,
            ["server", ..] => self.servers = self.servers.saturating_add(1),
            // Their number may be a range.
            ["server-template", ..] => self.servers = self.servers.saturating_add(2),
            _ => {}
        }
    }

    /// Reads a value, which may stand in quotes and come from the environment.
    fn value<T>(
        &mut self,
        line: &Line<'_>,
        path: &str,
        written: &str,
        wanted: &str,
        parse: fn(&str) -> Option<T>,
    ) -> Found<T> {
        let mut remark = |kind, text| {
            self.remarks.push(Remark { kind, path: path.to_owned(), span: line.span, text });
        };
        let bare = written.trim_matches(['"', '\'']);
        let value = match placeholders::filled(bare, Syntax::Shell) {
            Filled::Plain => bare.to_owned(),
            Filled::Default(value) => {
                let (kind, text) = placeholders::said(bare, true);
                remark(kind, text);
                value
            }
            Filled::Unknown => {
                let (kind, text) = placeholders::said(bare, false);
                remark(kind, text);
                return Found::Unknown(line.span);
            }
        };
        match parse(&value) {
            Some(value) => Found::Known(Setting::stated(value, line.span)),
            None => {
                remark(RemarkKind::Invalid, format!("`{}` is not {wanted}", shortened(&value)));
                Found::Unknown(line.span)
            }
        }
    }

    /// Returns whether the retries wait before they go to the same server; `None` if the file does not say it.
    fn waits(&self) -> Option<bool> {
        match self.redispatches {
            // A single server is waited for.
            _ if self.servers <= 1 => Some(true),
            Redispatch::Each(1) => Some(false),
            Redispatch::Unknown => None,
            _ => Some(true),
        }
    }
}

/// Says what a frontend sets about the retries of its backends, which `HAProxy` ignores with a warning.
fn ignored(title: String, span: Span, section: &Section) -> Option<Entry> {
    if section.own.is_empty() {
        return None;
    }
    let mut entry = Entry::new(Format::Haproxy, EntryKind::Unread, title, span);
    for (name, span) in &section.own {
        let (path, text) =
            (format!("{}.{name}", entry.path), "HAProxy ignores it in a frontend; write it in the backend");
        entry.remarks.push(Remark { kind: RemarkKind::NoEffect, path, span: *span, text: text.to_owned() });
    }
    Some(entry)
}

const LENGTH: &str = "a length of time, such as 5s";

/// The conditions of `retry-on`, beside status codes.
const CONDITIONS: [&str; 7] = [
    "none",
    "conn-failure",
    "empty-response",
    "junk-response",
    "response-timeout",
    "0rtt-rejected",
    "all-retryable-errors",
];

fn entry(title: String, span: Span, mut section: Section) -> Entry {
    let mut entry = Entry::new(Format::Haproxy, EntryKind::Call, title, span);
    entry.remarks = core::mem::take(&mut section.remarks);
    let off = section.conditions_span.filter(|_| section.is_http && section.conditions == ["none"]);
    let attempts = match off {
        Some(span) => Setting::stated(Limit::At(1), span),
        None => section.retries.retries_or(RETRIES),
    };
    entry.settings.attempts = Some(attempts);
    let delay = match section.connect {
        // 0 is no limit of the connecting.
        Found::Known(connect) if !connect.value.is_zero() => Some(connect.value.min(DELAY)),
        Found::Unknown(_) => None,
        _ => Some(DELAY),
    };
    let delay = match section.waits() {
        Some(true) => delay,
        Some(false) => Some(Duration::ZERO),
        None => None,
    };
    if let Some(delay) = delay.filter(|_| attempts.value != Limit::At(1)) {
        entry.settings = core::mem::take(&mut entry.settings).constant(Setting::default(delay));
        entry.settings.jitter = Some(Setting::default(Jitter::None));
    }
    entry.settings.budget = Some(Setting::default(RetryBudget::Unlimited));
    // A response is waited for as long as the server's timeout.
    let unless_zero = |length: Duration| if length.is_zero() { Limit::None } else { Limit::At(length) };
    entry.settings.attempt_timeout = section.server.or_else(section.connect).map(unless_zero).flat();
    entry.settings.timeout = Some(Setting::default(Limit::None));
    const NEW_CONNECTION: [&str; 3] = ["none", "conn-failure", "0rtt-rejected"];
    let unsafe_conditions = section.conditions.iter().any(|word| !NEW_CONNECTION.contains(&word.as_str()));
    entry.may_repeat_unsafe = Some(unsafe_conditions && section.is_http);
    let mut note = |kind, span, text: &str| {
        entry.remarks.push(Remark { kind, path: entry.path.clone(), span, text: text.to_owned() });
    };
    if let (Some(span), false) = (section.conditions_span, section.is_http) {
        note(RemarkKind::NoEffect, span, "retry-on has an effect in mode http only");
    }
    let text = match section.redispatches {
        _ if section.servers <= 1 => "the delay is before the server is tried again".to_owned(),
        Redispatch::Never => "the delay is before the same server is tried again".to_owned(),
        Redispatch::Each(1) => "every retry goes to another server, at once".to_owned(),
        Redispatch::Each(each) => {
            format!("every {} retry goes to another server, at once; the others wait for the same server", nth(each))
        }
        Redispatch::BeforeEnd(1) => {
            "the last retry goes to another server, at once; the others wait for the same server".to_owned()
        }
        Redispatch::BeforeEnd(number) => format!(
            "the {} retry from the end goes to another server, at once; the others wait for the same server",
            nth(number)
        ),
        Redispatch::Unknown => "which retries go to another server is not known".to_owned(),
    };
    note(RemarkKind::Note, span, &text);
    entry
}

fn nth(number: u32) -> String {
    let ending = match (number % 10, number % 100) {
        (_, 11..=13) => "th",
        (1, _) => "st",
        (2, _) => "nd",
        (3, _) => "rd",
        _ => "th",
    };
    format!("{number}{ending}")
}
