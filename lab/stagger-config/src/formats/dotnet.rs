//! .NET: sections of `appsettings.json` for the standard handler of `Microsoft.Extensions.Http.Resilience`, and those
//! that are bound to `RetryStrategyOptions` of Polly without it.
//!
//! Read in `HttpStandardResilienceOptions`, its `CustomValidator`, `HttpRetryStrategyOptions`, and Polly's
//! `RetryStrategyOptions`, `TimeoutStrategyOptions`, `CircuitBreakerStrategyOptions`, `RetryHelper`, version 8.
//!
//! | field | default, of the handler and of Polly alone | 0 | ignored | refused |
//! |---|---|---|---|---|
//! | `MaxRetryAttempts` | 3; of 2147483647 no limit | refused | | below 1 |
//! | `Delay` | 2 s | at once | | above a day |
//! | `BackoffType` | Exponential; Constant | Constant | | other words |
//! | `UseJitter` | true; false | | | other words |
//! | `MaxDelay` | no limit | at once | | above a day |
//! | `AttemptTimeout` | 10 s; none | refused | by Polly alone | below 10 ms, above a day, above `TotalRequestTimeout` |
//! | `TotalRequestTimeout` | 30 s; none | refused | by Polly alone | below 10 ms, above a day |
//! | `SamplingDuration` | 30 s; none | refused | by Polly alone | below 0.5 s, above a day, below twice `AttemptTimeout` |
//! | other names | | | always; beside `Retry`, the section may be of something else, and no default is read | |
//!
//! A length that is a bare number counts days.

use core::time::Duration;

use stagger_core::Jitter;
use stagger_core::text::Compact;

use crate::entry::{Entry, EntryKind, Found, Limit, Remark, RemarkKind, RetryBudget, Setting};
use crate::fields::{Field, Fields, join, shortened, whole};
use crate::format::Format;
use crate::tree::{Node, Value};
use crate::units;

const DEFAULTS: Defaults =
    Defaults { retries: 3, delay: Duration::from_secs(2), shape: Shape::Exponential, has_jitter: true };
const ATTEMPT_TIMEOUT: Duration = Duration::from_secs(10);
/// Of the circuit breaker, which must sample at least two attempts.
const SAMPLING: Duration = Duration::from_secs(30);
const TOTAL_TIMEOUT: Duration = Duration::from_secs(30);

/// Retries that never end.
const NO_LIMIT: u32 = i32::MAX as u32;

/// How the delays grow.
#[derive(Clone, Copy)]
pub(super) enum Shape {
    Constant,
    Linear,
    Exponential,
}

/// The options of a retry strategy where a section is silent.
#[derive(Clone, Copy)]
pub(super) struct Defaults {
    pub(super) retries: u32,
    pub(super) delay: Duration,
    pub(super) shape: Shape,
    pub(super) has_jitter: bool,
}

/// Returns whether a document has a section with a retry strategy.
pub(crate) fn has_section(node: &Node) -> bool {
    node.members().iter().any(|member| is_section(&member.node) || has_section(&member.node))
}

pub(super) fn is_section(node: &Node) -> bool {
    const OPTIONS: [&str; 5] = ["MaxRetryAttempts", "BackoffType", "UseJitter", "MaxDelay", "Delay"];
    // The section of the retries alone may be another library's.
    const BESIDE: [&str; 4] = ["AttemptTimeout", "TotalRequestTimeout", "CircuitBreaker", "RateLimiter"];
    let Some(retry) = node.get("Retry") else { return false };
    let options = OPTIONS.iter().filter(|name| retry.get(name).is_some()).count();
    options >= 2
        || options == 1
            && (retry.get("MaxRetryAttempts").is_some() || BESIDE.iter().any(|name| node.get(name).is_some()))
}

pub(crate) fn read(document: &Node) -> Vec<Entry> {
    entries(
        document,
        |_, field| {
            if is_section(field.node) { Some(section(field.fields(), field.key_span)) } else { None }
        },
    )
}

/// Returns the entries that `read` finds in the fields of a document, by their names; the mappings of others are
/// searched.
pub(super) fn entries(document: &Node, read: impl Fn(&str, &Field<'_>) -> Option<Entry>) -> Vec<Entry> {
    let mut entries = Vec::new();
    walk(document, "", &read, &mut entries);
    entries
}

/// Visits the fields. The parser limits the depth.
fn walk(node: &Node, path: &str, read: &impl Fn(&str, &Field<'_>) -> Option<Entry>, entries: &mut Vec<Entry>) {
    for member in node.members() {
        let field = Field { path: join(path, &member.key), key_span: member.key_span, node: &member.node };
        match read(&member.key, &field) {
            Some(entry) => entries.push(entry),
            None if matches!(member.node.value, Value::Map(_)) => walk(&member.node, &field.path, read, entries),
            None => {}
        }
    }
}

pub(super) fn span(field: &Field<'_>, remarks: &mut Vec<Remark>) -> Found<Duration> {
    let found = field.duration(remarks, units::time_span, "00:00:02");
    let text = field.text().unwrap_or("0");
    if text != "0" && text.bytes().all(|byte| byte.is_ascii_digit()) {
        remarks.push(field.remark(RemarkKind::Note, "a number without colons is a number of days"));
    }
    found
}

const DAY: Duration = Duration::from_secs(24 * 3_600);
const LEAST_TIMEOUT: Duration = Duration::from_millis(10);
const LEAST_SAMPLING: Duration = Duration::from_millis(500);

/// Reads a length of which the validation of the options accepts a range only.
pub(super) fn span_within(
    field: &Field<'_>,
    remarks: &mut Vec<Remark>,
    range: core::ops::RangeInclusive<Duration>,
) -> Found<Duration> {
    match span(field, remarks) {
        Found::Known(length) if !range.contains(&length.value) => {
            let wanted = format!("a length of time from {} to {}", Compact(*range.start()), Compact(*range.end()));
            field.refused(remarks, &wanted)
        }
        found => found,
    }
}

fn section(mut fields: Fields<'_>, place: crate::position::Span) -> Entry {
    let mut entry = Entry::new(Format::DotNet, EntryKind::Call, fields.path.clone(), place);
    let (settings, remarks) = (&mut entry.settings, &mut entry.remarks);
    let mut timeout = |name: &str, default: Duration, remarks: &mut Vec<Remark>| {
        let read = |field: &Field<'_>| span_within(field, remarks, LEAST_TIMEOUT..=DAY);
        let found = fields.read(name, |field| field.fields().read("Timeout", read));
        found.limit_or(Limit::At(default))
    };
    settings.attempt_timeout = Some(timeout("AttemptTimeout", ATTEMPT_TIMEOUT, remarks));
    settings.timeout = Some(timeout("TotalRequestTimeout", TOTAL_TIMEOUT, remarks));
    let sampling = fields.read("CircuitBreaker", |field| {
        field.fields().read("SamplingDuration", |field| span_within(field, remarks, LEAST_SAMPLING..=DAY))
    });
    let at = |limit: Option<Setting<Limit<Duration>>>| limit.and_then(|limit| limit.value.at());
    if let (Some(each), Some(all)) = (at(settings.attempt_timeout), at(settings.timeout)) {
        let mut refused = |text: &str| {
            let (path, text) = (fields.path.clone(), format!("{text}: the options are refused"));
            remarks.push(Remark { kind: RemarkKind::Invalid, path, span: place, text });
        };
        if each > all {
            refused("an attempt may take longer than TotalRequestTimeout");
        }
        if sampling.or(SAMPLING).is_some_and(|sampling| sampling.value < each.saturating_mul(2)) {
            refused("SamplingDuration of CircuitBreaker, 30 s by default, is below twice the AttemptTimeout");
        }
    }
    settings.budget = Some(Setting::default(RetryBudget::Unlimited));
    // POST is retried as well, unless the code calls DisableForUnsafeHttpMethods.
    entry.may_repeat_unsafe = Some(true);
    if let Some(field) = fields.take("Retry") {
        strategy(field.fields(), DEFAULTS, &mut entry);
    }
    // The other names of the handler are those of many libraries.
    let of_handler = ["AttemptTimeout", "TotalRequestTimeout"].map(|name| fields.take(name).is_some());
    let _ = fields.take("RateLimiter");
    let others = fields.rest();
    if let Some(other) = others.first()
        && !of_handler.contains(&true)
    {
        let name = other.path.rsplit('.').next().unwrap_or_default();
        let text = format!(
            "the standard handler has no option `{}`: if a library has this section for its own, it has its own defaults",
            shortened(name)
        );
        disown(&mut entry, other.remark(RemarkKind::NotRead, text));
    }
    entry
}

/// Leaves what a section states, and none of the defaults: they may be those of something else.
fn disown(entry: &mut Entry, remark: Remark) {
    let settings = &mut entry.settings;
    settings.attempts = settings.attempts.filter(Setting::is_stated);
    settings.base = settings.base.filter(Setting::is_stated);
    settings.cap = settings.cap.filter(Setting::is_stated);
    settings.multiplier = settings.multiplier.filter(Setting::is_stated);
    settings.step = settings.step.filter(Setting::is_stated);
    settings.jitter = settings.jitter.filter(Setting::is_stated);
    settings.attempt_timeout = None;
    settings.timeout = None;
    settings.budget = None;
    entry.may_repeat_unsafe = None;
    // What a binder does with other names is not known either.
    entry.remarks.retain(|remark| remark.kind != RemarkKind::NoEffect);
    entry.remarks.push(remark);
}

/// Reads the options of a retry strategy, which are those of Polly with other defaults.
pub(super) fn strategy(mut retry: Fields<'_>, defaults: Defaults, entry: &mut Entry) {
    let (settings, remarks) = (&mut entry.settings, &mut entry.remarks);
    // Its options are validated: one retry is the least.
    let retries = retry.read("MaxRetryAttempts", |field| {
        let range = 1..=NO_LIMIT;
        field.parse(remarks, "a whole number from 1 to 2147483647", |text| whole(text).filter(|n| range.contains(n)))
    });
    let attempts = retries.map(|retries| if retries == NO_LIMIT { Limit::None } else { Limit::At(retries + 1) });
    settings.attempts = Some(attempts.flat_or(Limit::At(defaults.retries + 1)));
    settings.base = retry.read("Delay", |field| span_within(field, remarks, Duration::ZERO..=DAY)).or(defaults.delay);
    let shape = retry.read("BackoffType", |field| {
        field.parse(remarks, "Constant, Linear or Exponential", |text| match text.to_ascii_lowercase().as_str() {
            "constant" | "0" => Some(Shape::Constant),
            "linear" | "1" => Some(Shape::Linear),
            "exponential" | "2" => Some(Shape::Exponential),
            _ => None,
        })
    });
    if let Some(shape) = shape.or(defaults.shape) {
        match shape.value {
            Shape::Constant => settings.multiplier = Some(shape.map(|_| 1.0)),
            Shape::Linear => settings.step = settings.base.map(|base| shape.map(|_| base.value)),
            Shape::Exponential => settings.multiplier = Some(shape.map(|_| 2.0)),
        }
    }
    let jitter = retry.flag("UseJitter", remarks).or(defaults.has_jitter);
    settings.jitter = jitter.map(|jitter| jitter.map(|uses| if uses { Jitter::Decorrelated } else { Jitter::None }));
    let longest = retry.read("MaxDelay", |field| span_within(field, remarks, Duration::ZERO..=DAY));
    if let Some(longest) = longest.known().filter(|longest| longest.value.is_zero()) {
        // No delay is longer.
        settings.base = settings.base.map(|_| longest);
    }
    settings.cap = Some(longest.limit_or(Limit::None));
    retry.unmapped(&[("ShouldRetryAfterHeader", "whether a server's Retry-After is honored")], remarks);
    for field in retry.rest() {
        remarks.push(field.remark(RemarkKind::NoEffect, "no option of this name: the binder drops it without a word"));
    }
}

const POLLY_DEFAULTS: Defaults =
    Defaults { retries: 3, delay: Duration::from_secs(2), shape: Shape::Constant, has_jitter: false };

/// Returns whether a document has a section with the options of a retry strategy, beside those of the standard handler.
pub(crate) fn has_strategy(node: &Node) -> bool {
    // The standard handler has its own reader.
    let mut others = node.members().iter().filter(|member| !is_section(&member.node));
    others.any(|member| is_strategy(&member.node) || has_strategy(&member.node))
}

/// The number of retries, and one more option, so that the section of another library is not taken for one of Polly.
fn is_strategy(node: &Node) -> bool {
    let has = |names: &[&str]| names.iter().any(|name| node.get(name).is_some());
    has(&["MaxRetryAttempts"]) && has(&["BackoffType", "UseJitter", "MaxDelay", "Delay"])
}

pub(crate) fn read_polly(document: &Node) -> Vec<Entry> {
    let mut entries = Vec::new();
    walk_strategies(document, "", &mut entries);
    entries
}

fn walk_strategies(node: &Node, path: &str, entries: &mut Vec<Entry>) {
    for member in node.members().iter().filter(|member| !is_section(&member.node)) {
        let path = join(path, &member.key);
        if is_strategy(&member.node) {
            let mut entry = Entry::new(Format::Polly, EntryKind::Call, path.clone(), member.key_span);
            entry.settings.budget = Some(Setting::default(RetryBudget::Unlimited));
            strategy(Fields::of(&member.node, path), POLLY_DEFAULTS, &mut entry);
            entries.push(entry);
        } else if matches!(member.node.value, Value::Map(_)) {
            walk_strategies(&member.node, &path, entries);
        }
    }
}
