//! `HAProxy`: `retries`, `retry-on`, `option redispatch` and timeouts.
//!
//! Read in `doc/configuration.txt`, `back_handle_st_cer` of `backend.c`, `stream_choose_redispatch` of `stream.h`,
//! `do_l7_retry` of `http_ana.c` and `proxy_parse_retry_on` of `proxy.c`, version 3.3, and tried with 2.6.
//!
//! | field | default | 0, below 0 | ignored | refused |
//! |---|---|---|---|---|
//! | `retries` | 3 | no retry | in a frontend | two numbers; a word is read as 0 |
//! | `retry-on` | `conn-failure` | `none`: no retry | others than `conn-failure`, in mode tcp | other words, `none` beside others; in a frontend |
//! | `mode` | tcp | | | |
//! | `option redispatch` | off; -1 without a number | 0: off | with one server; in a frontend | a word is read as 0 |
//! | `balance` | `roundrobin` | | | |
//! | `timeout connect` | no limit; the delay is it, 1 s at most | 0: no limit, and a delay of 1 s | | no length |
//! | `timeout server` | no limit | 0: no limit | | no length |
//!
//! The delay is before the same server is tried again after a failed connection. After `timeout connect`, after an
//! answer, and at another server, the next attempt is at once. With `option redispatch` every retry goes to another
//! server, unless a hash, a cookie or a stick table binds the request to one: then an interval above 0 lets each
//! so-many-th retry go there, and one of -N each (retries + 1 - N)-th, which is the last one for -1.

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
    /// Whether one of them is not known.
    has_unknown: bool,
    redispatches: Redispatch,
    /// Whether a hash of the request chooses the server; `None` if the file does not say it.
    is_hashed: Option<bool>,
    /// Servers that take requests as long as one of them lives.
    active: u32,
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
    /// Each (retries + 1 - this)-th; with 1 the last.
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
            has_unknown: false,
            redispatches: Redispatch::Never,
            is_hashed: Some(false),
            active: 0,
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
            ["retries", number] => self.retries = self.number(line, "retries", number).map(retries_of),
            ["retries", ..] => {
                self.invalid(line, "retries", "takes one number: HAProxy refuses the file");
                self.retries = Found::Unknown(line.span);
            }
            ["timeout", "connect", length, ..] => {
                self.connect = self.value(line, "timeout connect", length, LENGTH, units::haproxy);
            }
            ["timeout", "server", length, ..] => {
                self.server = self.value(line, "timeout server", length, LENGTH, units::haproxy);
            }
            ["mode", mode, ..] => self.is_http = *mode == "http",
            ["retry-on", conditions @ ..] => {
                self.conditions.clear();
                self.conditions_span = Some(line.span);
                self.has_unknown = false;
                for word in conditions {
                    let known = |text: &str| {
                        let is_known = CONDITIONS.contains(&text) || CODES.contains(&text);
                        if is_known { Some(text.to_owned()) } else { None }
                    };
                    match self.value(line, "retry-on", word, "a condition that HAProxy knows", known) {
                        Found::Known(word) => self.conditions.push(word.value),
                        _ => self.has_unknown = true,
                    }
                }
                if conditions.contains(&"none") && conditions.len() > 1 {
                    self.invalid(line, "retry-on", "`none` stands alone: HAProxy refuses the file");
                }
            }
            ["balance", algorithm, ..] => {
                const HASHES: [&str; 6] = ["source", "uri", "url_param", "hdr", "rdp-cookie", "hash"];
                let name = algorithm.split('(').next().unwrap_or_default();
                self.is_hashed = if name.contains('$') { None } else { Some(HASHES.contains(&name)) };
            }
            ["option", "redispatch"] => self.redispatches = Redispatch::BeforeEnd(1),
            ["option", "redispatch", interval, ..] => {
                self.redispatches = match self.number(line, "option redispatch", interval).known() {
                    None => Redispatch::Unknown,
                    Some(Setting { value: 0, .. }) => Redispatch::Never,
                    Some(Setting { value: each @ 1.., .. }) => Redispatch::Each(each.unsigned_abs()),
                    Some(Setting { value: before, .. }) => Redispatch::BeforeEnd(before.unsigned_abs()),
                };
            }
            ["no", "option", "redispatch", ..] => self.redispatches = Redispatch::Never,
            ["server", rest @ ..] => self.add_servers(1, rest),
            // One address in place of servers.
            ["dispatch", ..] => self.add_servers(1, &[]),
            ["server-template", _, number, rest @ ..] => {
                // `3`, or `1-3`. One that is filled in elsewhere is taken for more than one.
                let (first, last) = number.split_once('-').unwrap_or(("1", number));
                let count = match (whole(first), whole(last)) {
                    (Some(first), Some(last)) => last.saturating_sub(first).saturating_add(1),
                    _ => 2,
                };
                self.add_servers(count, rest);
            }
            _ => {}
        }
    }

    fn add_servers(&mut self, number: u32, words: &[&str]) {
        self.servers = self.servers.saturating_add(number);
        if !words.contains(&"backup") && !words.contains(&"disabled") {
            self.active = self.active.saturating_add(number);
        }
    }

    fn invalid(&mut self, line: &Line<'_>, path: &str, text: &str) {
        self.remarks.push(Remark {
            kind: RemarkKind::Invalid,
            path: path.to_owned(),
            span: line.span,
            text: text.to_owned(),
        });
    }

    /// Reads a number as `HAProxy` does, which takes what is none for 0.
    fn number(&mut self, line: &Line<'_>, path: &str, written: &str) -> Found<i32> {
        let found = self.value(line, path, written, "a number", |text| Some((atol(text), text.parse::<i32>().is_ok())));
        if let Found::Known(Setting { value: (number, false), .. }) = found {
            let bare = shortened(written.trim_matches(['"', '\'']));
            self.invalid(line, path, &format!("`{bare}` is not a whole number: HAProxy reads {number}"));
        }
        found.map(|(number, _)| number)
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

    /// Returns which retries of a request that is bound to a server go to another one; 0 is none.
    fn interval(&self) -> Option<u32> {
        match self.redispatches {
            Redispatch::Never => Some(0),
            Redispatch::Each(each) => Some(each),
            Redispatch::Unknown => None,
            Redispatch::BeforeEnd(before) => {
                let retries = match self.retries.or(RETRIES)?.value {
                    // Nothing is retried.
                    0 => return Some(0),
                    retries => retries,
                };
                Some(retries.saturating_add(1).abs_diff(before))
            }
        }
    }

    /// Returns whether a retry after a failed connection waits; `None` if the file does not say it.
    fn waits(&self) -> Option<bool> {
        match (self.redispatches, self.is_hashed) {
            // A single server is waited for.
            _ if self.active <= 1 => Some(true),
            (Redispatch::Never, _) => Some(true),
            (Redispatch::Unknown, _) | (_, None) => None,
            (_, Some(false)) => Some(false),
            (_, Some(true)) => Some(self.interval()? != 1),
        }
    }

    /// Returns whether there is a condition of `retry-on` that is not one of these.
    fn has_other(&self, words: &[&str]) -> bool {
        self.conditions.iter().any(|word| !words.contains(&word.as_str()))
    }

    /// Returns whether answers of a server lead to retries.
    fn retries_answers(&self) -> bool {
        self.is_http && self.has_other(&["none", "conn-failure"])
    }

    /// Returns whether failed connections lead to retries.
    fn retries_connections(&self) -> bool {
        const NAMES: [&str; 2] = ["conn-failure", "all-retryable-errors"];
        self.conditions_span.is_none() || self.conditions.iter().any(|word| NAMES.contains(&word.as_str()))
    }
}

/// Returns the retries of a number, of which `HAProxy` makes none if it is below 0.
fn retries_of(number: i32) -> u32 {
    u32::try_from(number).unwrap_or(0)
}

/// Reads the number at the start of a text, as C does: 0 if there is none.
fn atol(text: &str) -> i32 {
    let text = text.trim_start();
    let start = text.len() - text.trim_start_matches(['-', '+']).len();
    let end = start + text[start..].bytes().take_while(u8::is_ascii_digit).count();
    if start > 1 { 0 } else { text[..end].parse().unwrap_or(0) }
}

/// Says what a frontend sets about the retries of its backends, which `HAProxy` ignores with a warning.
fn ignored(title: String, span: Span, section: &Section) -> Option<Entry> {
    if section.own.is_empty() {
        return None;
    }
    let mut entry = Entry::new(Format::Haproxy, EntryKind::Unread, title, span);
    for (name, span) in &section.own {
        let (kind, text) = match *name {
            "retry-on" => (RemarkKind::Invalid, "HAProxy refuses it in a frontend; write it in the backend"),
            _ => (RemarkKind::NoEffect, "HAProxy ignores it in a frontend; write it in the backend"),
        };
        let path = format!("{}.{name}", entry.path);
        entry.remarks.push(Remark { kind, path, span: *span, text: text.to_owned() });
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

/// The status codes of `retry-on`.
const CODES: [&str; 12] = ["401", "403", "404", "408", "421", "425", "429", "500", "501", "502", "503", "504"];

fn entry(title: String, span: Span, mut section: Section) -> Entry {
    let mut entry = Entry::new(Format::Haproxy, EntryKind::Call, title, span);
    entry.remarks = core::mem::take(&mut section.remarks);
    let (after_answers, after_connections) = (section.retries_answers(), section.retries_connections());
    let attempts = match section.conditions_span {
        Some(span) if section.has_unknown => Setting::stated(Limit::Unknown, span),
        Some(span) if !after_answers && !after_connections => Setting::stated(Limit::At(1), span),
        _ => section.retries.retries_or(RETRIES),
    };
    entry.settings.attempts = Some(attempts);
    let delay = match section.connect {
        // 0 is no limit of the connecting.
        Found::Known(connect) if !connect.value.is_zero() => Some(connect.value.min(DELAY)),
        Found::Unknown(_) => None,
        _ => Some(DELAY),
    };
    let delay = match section.waits() {
        _ if after_answers => Some(Duration::ZERO),
        Some(true) => delay,
        Some(false) => Some(Duration::ZERO),
        None => None,
    };
    let is_retried = attempts.value != Limit::At(1);
    if let Some(delay) = delay.filter(|_| is_retried) {
        entry.settings = core::mem::take(&mut entry.settings).constant(Setting::default(delay));
        entry.settings.jitter = Some(Setting::default(Jitter::None));
    }
    entry.settings.budget = Some(Setting::default(RetryBudget::Unlimited));
    // A response is waited for as long as the server's timeout.
    let unless_zero = |length: Duration| if length.is_zero() { Limit::None } else { Limit::At(length) };
    entry.settings.attempt_timeout = section.server.map(unless_zero).flat();
    entry.settings.timeout = Some(Setting::default(Limit::None));
    // What was sent before the handshake and then rejected has not been processed.
    let repeats_unsafe = section.is_http && section.has_other(&["none", "conn-failure", "0rtt-rejected"]);
    let is_known = repeats_unsafe || !section.has_unknown || !section.is_http;
    entry.may_repeat_unsafe = if is_known { Some(repeats_unsafe) } else { None };
    let mut note = |kind, span, text: &str| {
        entry.remarks.push(Remark { kind, path: entry.path.clone(), span, text: text.to_owned() });
    };
    if let (Some(span), false) = (section.conditions_span, section.is_http)
        && section.has_other(&["none", "conn-failure"])
    {
        note(RemarkKind::NoEffect, span, "conditions of retry-on about answers have an effect in mode http only");
    }
    if section.interval() == Some(0) && matches!(section.redispatches, Redispatch::BeforeEnd(2..)) && is_retried {
        let text = "the interval of option redispatch is -(retries + 1): HAProxy divides by zero at a retry";
        note(RemarkKind::Invalid, span, text);
    } else if is_retried {
        note(RemarkKind::Note, span, &section.told());
    }
    entry
}

impl Section {
    /// Says where retries go, and when.
    fn told(&self) -> String {
        let all = "every retry goes to another server, at once";
        let of_bound = match (self.interval(), self.retries.or(RETRIES)) {
            (Some(1), _) => all.to_owned(),
            (Some(each), Some(retries)) if each == retries.value => "the last retry goes to another server".to_owned(),
            (Some(each), _) => format!("every {} retry goes to another server", nth(each)),
            (None, _) => "which retries go to another server is not known".to_owned(),
        };
        let same = "before the same server is tried again after a failed connection";
        match (self.redispatches, self.is_hashed) {
            _ if !self.retries_connections() => {
                "failed connections are not retried, and answers are at once".to_owned()
            }
            _ if self.retries_answers() && self.waits() == Some(true) => {
                format!("a retry after an answer is at once; there is a delay {same}")
            }
            _ if self.active <= 1 => format!("the delay is {same}"),
            (Redispatch::Never, _) => format!("the delay is {same}"),
            (Redispatch::Unknown, _) | (_, None) => "which retries go to another server is not known".to_owned(),
            (_, Some(_)) if self.interval() == Some(1) => of_bound,
            (_, Some(true)) => format!("{of_bound}, at once; the others wait for the same server"),
            (_, Some(false)) => format!(
                "{all}; where a cookie or a stick table binds a request to its server, {of_bound}, and the others wait"
            ),
        }
    }
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
