//! .NET: sections of `appsettings.json` for the standard handler of `Microsoft.Extensions.Http.Resilience`, and those
//! that are bound to `RetryStrategyOptions` of Polly without it.
//!
//! Read in `HttpStandardResilienceOptions`, `HttpRetryStrategyOptions`, and Polly's `RetryConstants` and `RetryHelper`,
//! version 8.
//!
//! | field | default, of the handler and of Polly alone | ignored | refused |
//! |---|---|---|---|
//! | `MaxRetryAttempts` | 3 | | 0 |
//! | `Delay` | 2 s | | no length |
//! | `BackoffType` | Exponential; Constant | | other words |
//! | `UseJitter` | true; false | | |
//! | `MaxDelay` | no limit | | no length |
//! | `AttemptTimeout` | 10 s; none | by Polly alone | above `TotalRequestTimeout` |
//! | `TotalRequestTimeout` | 30 s; none | by Polly alone | |
//! | `SamplingDuration` | 30 s; none | by Polly alone | below twice `AttemptTimeout` |
//! | other names | | always | |

use core::time::Duration;

use stagger_core::Jitter;

use crate::entry::{Entry, EntryKind, Found, Limit, Remark, RemarkKind, RetryBudget, Setting};
use crate::fields::{Field, Fields, join};
use crate::format::Format;
use crate::tree::{Node, Value};
use crate::units;

const DEFAULTS: Defaults =
    Defaults { retries: 3, delay: Duration::from_secs(2), shape: Shape::Exponential, has_jitter: true };
const ATTEMPT_TIMEOUT: Duration = Duration::from_secs(10);
/// Of the circuit breaker, which must sample at least two attempts.
const SAMPLING: Duration = Duration::from_secs(30);
const TOTAL_TIMEOUT: Duration = Duration::from_secs(30);

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

fn section(mut fields: Fields<'_>, place: crate::position::Span) -> Entry {
    let mut entry = Entry::new(Format::DotNet, EntryKind::Call, fields.path.clone(), place);
    let (settings, remarks) = (&mut entry.settings, &mut entry.remarks);
    let mut timeout = |name: &str, default: Duration, remarks: &mut Vec<Remark>| {
        let found = fields.read(name, |field| field.fields().read("Timeout", |field| span(field, remarks)));
        found.limit_or(Limit::At(default))
    };
    settings.attempt_timeout = Some(timeout("AttemptTimeout", ATTEMPT_TIMEOUT, remarks));
    settings.timeout = Some(timeout("TotalRequestTimeout", TOTAL_TIMEOUT, remarks));
    let sampling =
        fields.read("CircuitBreaker", |field| field.fields().read("SamplingDuration", |field| span(field, remarks)));
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
    entry
}

/// Reads the options of a retry strategy, which are those of Polly with other defaults.
pub(super) fn strategy(mut retry: Fields<'_>, defaults: Defaults, entry: &mut Entry) {
    let (settings, remarks) = (&mut entry.settings, &mut entry.remarks);
    // Its options are validated: one retry is the least.
    let retries = retry.read("MaxRetryAttempts", |field| field.positive(remarks));
    settings.attempts = Some(retries.retries_or(defaults.retries));
    settings.base = retry.read("Delay", |field| span(field, remarks)).or(defaults.delay);
    let shape = retry.read("BackoffType", |field| {
        field.parse(remarks, "Constant, Linear or Exponential", |text| match text.to_ascii_lowercase().as_str() {
            "constant" => Some(Shape::Constant),
            "linear" => Some(Shape::Linear),
            "exponential" => Some(Shape::Exponential),
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
    let longest = retry.read("MaxDelay", |field| span(field, remarks));
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
