//! Spring Cloud Gateway: the filter `Retry` of routes.
//!
//! Read in `RetryGatewayFilterFactory` and in the reference of the filter, version 4.3.
//!
//! | field | default | 0 | refused |
//! |---|---|---|---|
//! | `retries` | 3 | | 0 |
//! | `methods` | GET | | |
//! | `backoff` | none: at once | | |
//! | `firstBackoff` | 5 ms | 0: at once | no length |
//! | `maxBackoff` | no limit | | no length |
//! | `factor` | 2 | | no number |
//! | `randomFactor` in `jitter` | 0.5; no jitter without `jitter` | 0: no jitter | no number |
//! | `timeout` | no limit | | no length |

use core::time::Duration;

use stagger_core::{Jitter, Ratio};

use super::http::is_idempotent;
use crate::entry::{Entry, EntryKind, Found, Limit, Remark, RemarkKind, RetryBudget, Setting};
use crate::fields::{Field, Fields};
use crate::format::Format;
use crate::tree::{Member, Node, Value, without_dots};
use crate::units;

const RETRIES: u32 = 3;
const FIRST_BACKOFF: Duration = Duration::from_millis(5);
const FACTOR: f64 = 2.0;
const RANDOM_FACTOR: f64 = 0.5;

/// Where applications have their routes, in the versions of the gateway.
const PLACES: [&[&str]; 3] = [
    &["spring", "cloud", "gateway"],
    &["spring", "cloud", "gateway", "server", "webflux"],
    &["spring", "cloud", "gateway", "mvc"],
];

/// The order of the arguments in `Retry=3,BAD_GATEWAY,GET,10ms,50ms,2,false`.
const SHORT: [&str; 9] = [
    "retries",
    "statuses",
    "methods",
    "backoff.firstBackoff",
    "backoff.maxBackoff",
    "backoff.factor",
    "backoff.basedOnPreviousValue",
    "jitter.randomFactor",
    "timeout",
];

pub(crate) fn is_application(root: &Node) -> bool {
    PLACES.iter().any(|place| root.at(place).is_some_and(|gateway| !filters(gateway, "").is_empty()))
}

pub(crate) fn read(root: &Node) -> Vec<Entry> {
    let mut entries = Vec::new();
    for place in PLACES {
        let Some(gateway) = root.at(place) else { continue };
        for (path, filter) in filters(gateway, &place.join(".")) {
            entries.extend(retry(filter, path));
        }
    }
    entries
}

/// The filters of all routes, and those that apply to every route.
fn filters<'a>(gateway: &'a Node, path: &str) -> Vec<(String, &'a Node)> {
    let mut fields = Fields::of(gateway, path);
    let mut found = fields.take("defaultFilters").map(|field| field.items()).unwrap_or_default();
    for (path, route) in fields.take("routes").map(|field| field.items()).unwrap_or_default() {
        found.extend(Fields::of(route, path).take("filters").map(|field| field.items()).unwrap_or_default());
    }
    found
}

/// Reads a filter, if it is one for retries.
fn retry(filter: &Node, path: String) -> Option<Entry> {
    let mut entry = Entry::new(Format::SpringGateway, EntryKind::Call, path.clone(), filter.span);
    let arguments = match filter.text() {
        Some(text) => short_arguments(text.strip_prefix("Retry")?, filter)?,
        None => {
            filter.text_of("name").filter(|name| *name == "Retry")?;
            filter.get("args").map_or(Node::new(filter.span, Value::Map(Vec::new())), without_dots)
        }
    };
    arguments_of(Fields::of(&arguments, path), &mut entry);
    Some(entry)
}

/// Reads `=3,BAD_GATEWAY` as the arguments of these places; empty ones are absent.
fn short_arguments(text: &str, filter: &Node) -> Option<Node> {
    let text = text.trim();
    let values = match text.strip_prefix('=') {
        Some(values) => values.split(',').map(str::trim).collect(),
        None if text.is_empty() => Vec::new(),
        None => return None,
    };
    let members = SHORT.iter().zip(values).filter(|(_, value)| !value.is_empty()).map(|(name, value)| {
        let value = Value::Scalar { text: value.to_owned(), is_quoted: false };
        Member { key: (*name).to_owned(), key_span: filter.span, node: Node::new(filter.span, value) }
    });
    Some(without_dots(&Node::new(filter.span, Value::Map(members.collect()))))
}

fn arguments_of(mut fields: Fields<'_>, entry: &mut Entry) {
    let (settings, remarks) = (&mut entry.settings, &mut entry.remarks);
    let retries = fields.read("retries", |field| {
        field.parse(remarks, "a whole number of 1 or more", |text| {
            crate::fields::whole(text).filter(|&retries| retries > 0)
        })
    });
    settings.attempts = Some(retries.retries_or(RETRIES));
    settings.budget = Some(Setting::default(RetryBudget::Unlimited));
    let timeout = fields.read("timeout", |field| length(field, remarks));
    settings.timeout = Some(timeout.limit_or(Limit::None));
    match fields.take("backoff") {
        Some(field) => {
            let mut backoff = field.fields();
            let first = backoff.read("firstBackoff", |field| length(field, remarks));
            settings.base = first.or(FIRST_BACKOFF);
            let longest = backoff.read("maxBackoff", |field| length(field, remarks));
            settings.cap = Some(longest.limit_or(Limit::None));
            settings.multiplier = backoff.number("factor", remarks).or(FACTOR);
            backoff.unmapped(&[("basedOnPreviousValue", "how the same delays are computed")], remarks);
            backoff.finish(remarks);
        }
        None => {
            settings.base = Some(Setting::default(Duration::ZERO));
            let text = "no backoff: it retries at once";
            remarks.push(Remark {
                kind: RemarkKind::Note,
                path: fields.path.clone(),
                span: fields.span,
                text: text.to_owned(),
            });
        }
    }
    let share = |factor: f64| Jitter::Factor(Ratio::millionths((factor.clamp(0.0, 1.0) * 1e6).round() as u32));
    settings.jitter = match fields.take("jitter") {
        Some(field) => {
            let factor = field.fields().number("randomFactor", remarks).or(RANDOM_FACTOR);
            factor.map(|factor| factor.map(share))
        }
        None => Some(Setting::default(Jitter::None)),
    };
    let methods = fields.take("methods");
    let words = methods.as_ref().map(Field::words).unwrap_or_default();
    entry.may_repeat_unsafe = Some(words.iter().any(|method| !is_idempotent(method)));
    let conditions = "decides which answers are retried";
    let unmapped =
        [("statuses", conditions), ("series", conditions), ("exceptions", "decides which failures are retried")];
    fields.unmapped(&unmapped, remarks);
    fields.finish(remarks);
}

fn length(field: &Field<'_>, remarks: &mut Vec<Remark>) -> Found<Duration> {
    field.duration(remarks, units::spring, "100ms")
}
