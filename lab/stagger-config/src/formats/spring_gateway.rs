//! Spring Cloud Gateway: the filter `Retry` of routes.
//!
//! Read in `RetryGatewayFilterFactory` and `RetryFilterFunctions` of versions 4.1 to 5.0, in the reference of the
//! filter and of the timeouts, and in `Backoff` and `RandomJitter` of reactor-addons.
//!
//! | field | default | 0 | ignored | refused |
//! |---|---|---|---|---|
//! | `retries` | 3 | | | 0 |
//! | `methods` | GET | | | |
//! | `backoff` | none: at once | | by a gateway for servlets before 5.0.3 | |
//! | `firstBackoff` | 5 ms | | | no length; 0 |
//! | `maxBackoff` | no limit | | | no length; below `firstBackoff` |
//! | `factor` | 2 | as 1 | | no whole number |
//! | `randomFactor` in `jitter` | 0.5; no jitter without `jitter` | 0: no jitter | without `backoff`, for servlets | above 1 |
//! | `timeout` | no limit | 0: no retry | by a gateway for servlets | no length |
//! | `response-timeout` of the route, of the `httpclient` | no limit | | by a gateway for servlets | no length |
//!
//! A gateway for servlets (`gateway.mvc`, `server.webmvc`) counts attempts with `retries` where Spring Retry is on the
//! class path, which version 5 no longer needs.

use core::time::Duration;

use stagger_core::Jitter;

use super::http::is_idempotent;
use crate::entry::{Entry, EntryKind, Found, Limit, Remark, RemarkKind, RetryBudget, Setting};
use crate::fields::{Field, Fields, whole};
use crate::format::Format;
use crate::tree::placeholders::{self, Filled, Syntax};
use crate::tree::{Member, Node, Value, without_dots};
use crate::units;

const RETRIES: u32 = 3;
const FIRST_BACKOFF: Duration = Duration::from_millis(5);
const FACTOR: f64 = 2.0;
const RANDOM_FACTOR: f64 = 0.5;

/// What a gateway is built on, which has another filter for each.
#[derive(Clone, Copy, PartialEq)]
enum Server {
    Reactive,
    /// Servlets, until version 4.2: always with Spring Retry.
    OldServlet,
    Servlet,
}

/// Where applications have their routes, in the versions of the gateway.
const PLACES: [(&[&str], Server); 4] = [
    (&["spring", "cloud", "gateway"], Server::Reactive),
    (&["spring", "cloud", "gateway", "server", "webflux"], Server::Reactive),
    (&["spring", "cloud", "gateway", "mvc"], Server::OldServlet),
    (&["spring", "cloud", "gateway", "server", "webmvc"], Server::Servlet),
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
const SHORT_OF_SERVLETS: [&str; 3] = ["retries", "series", "methods"];

pub(crate) fn is_application(root: &Node) -> bool {
    PLACES.iter().any(|(place, _)| root.at(place).is_some_and(|gateway| !filters(gateway, "").is_empty()))
}

pub(crate) fn read(root: &Node) -> Vec<Entry> {
    let mut entries = Vec::new();
    for (place, server) in PLACES {
        let Some(gateway) = root.at(place) else { continue };
        for filter in filters(gateway, &place.join(".")) {
            entries.extend(retry(filter, gateway, server));
        }
    }
    entries
}

/// A filter, and the route that it belongs to; none if it applies to every route.
struct Filter<'a> {
    path: String,
    node: &'a Node,
    route: Option<&'a Node>,
}

/// The filters of all routes, and those that apply to every route.
fn filters<'a>(gateway: &'a Node, path: &str) -> Vec<Filter<'a>> {
    let mut fields = Fields::of(gateway, path);
    let mut found = Vec::new();
    let mut add = |field: Option<Field<'a>>, route| {
        let items = field.map(|field| field.items()).unwrap_or_default();
        found.extend(items.into_iter().map(|(path, node)| Filter { path, node, route }));
    };
    add(fields.take("defaultFilters"), None);
    let mut routes = fields.take("routes").map(|field| field.items()).unwrap_or_default();
    // By name, in a gateway for servlets.
    if let Some(named) = fields.take("routesMap") {
        let members = named.node.members().iter();
        routes.extend(members.map(|member| (format!("{}.{}", named.path, member.key), &member.node)));
    }
    for (path, route) in routes {
        add(Fields::of(route, path).take("filters"), Some(route));
    }
    found
}

/// Reads a filter, if it is one for retries.
fn retry(filter: Filter<'_>, gateway: &Node, server: Server) -> Option<Entry> {
    let Filter { path, node, route } = filter;
    let mut entry = Entry::new(Format::SpringGateway, EntryKind::Call, path.clone(), node.span);
    let short = node.text().or(if node.value == Value::Unknown { node.placeholder.as_deref() } else { None });
    let arguments = match short {
        Some(text) => short_arguments(text.strip_prefix("Retry")?, node, server)?,
        None => {
            node.text_of("name").filter(|name| *name == "Retry")?;
            node.get("args").map_or(Node::new(node.span, Value::Map(Vec::new())), without_dots)
        }
    };
    if let (Some(_), Some(placeholder)) = (node.text(), &node.placeholder) {
        let (kind, text) = placeholders::said(placeholder, true);
        entry.remarks.push(Remark { kind, path: path.clone(), span: node.span, text });
    }
    arguments_of(Fields::of(&arguments, path), server, &mut entry);
    if server == Server::Reactive {
        entry.settings.attempt_timeout = Some(response_timeout(route, gateway, &mut entry.remarks));
    }
    Some(entry)
}

/// Returns how long a response may take: that of the route, in milliseconds, or that of all.
fn response_timeout(route: Option<&Node>, gateway: &Node, remarks: &mut Vec<Remark>) -> Setting<Limit<Duration>> {
    const NAME: &str = "responseTimeout";
    let metadata = route.and_then(|route| route.get("metadata")).map(without_dots);
    if let Some(field) = metadata.as_ref().and_then(|node| Fields::of(node, "metadata").take(NAME)) {
        let parse = |text: &str| match text.parse::<i64>().ok()? {
            // A negative one turns that of all off.
            length @ 0.. => Some(Limit::At(Duration::from_millis(length.unsigned_abs()))),
            _ => Some(Limit::None),
        };
        return field.parse(remarks, "a whole number of milliseconds", parse).flat_or(Limit::None);
    }
    let client = gateway.get("httpclient").or(gateway.get("http-client"));
    let field = client.and_then(|client| Fields::of(client, "httpclient").take(NAME));
    field.map_or(Found::Absent, |field| length(&field, remarks)).limit_or(Limit::None)
}

/// Reads `=3,BAD_GATEWAY` as the arguments of these places; empty ones are absent.
fn short_arguments(text: &str, filter: &Node, server: Server) -> Option<Node> {
    let text = text.trim();
    let values = match text.strip_prefix('=') {
        Some(values) => split(values),
        None if text.is_empty() => Vec::new(),
        None => return None,
    };
    let names = if server == Server::Reactive { &SHORT[..] } else { &SHORT_OF_SERVLETS };
    let members = names.iter().zip(values).filter(|(_, value)| !value.is_empty()).map(|(name, value)| {
        let scalar = |text: String| Value::Scalar { text, is_quoted: false };
        let (filled, placeholder) = match placeholders::filled(value, Syntax::Spring) {
            Filled::Plain => (scalar(value.to_owned()), None),
            Filled::Default(filled) => (scalar(filled), Some(value.into())),
            Filled::Unknown => (Value::Unknown, Some(value.into())),
        };
        let node = Node { span: filter.span, value: filled, placeholder };
        Member { key: (*name).to_owned(), key_span: filter.span, node }
    });
    Some(without_dots(&Node::new(filter.span, Value::Map(members.collect()))))
}

/// Splits at the commas that are not within a placeholder.
fn split(text: &str) -> Vec<&str> {
    let mut depth = 0_u32;
    let at_comma = |character: char| {
        match character {
            '{' => depth += 1,
            '}' => depth = depth.saturating_sub(1),
            _ => {}
        }
        character == ',' && depth == 0
    };
    text.split(at_comma).map(str::trim).collect()
}

fn arguments_of(mut fields: Fields<'_>, server: Server, entry: &mut Entry) {
    let (settings, remarks) = (&mut entry.settings, &mut entry.remarks);
    let retries = fields.read("retries", |field| {
        field.parse(remarks, "a whole number of 1 or more", |text| whole(text).filter(|&retries| retries > 0))
    });
    settings.budget = Some(Setting::default(RetryBudget::Unlimited));
    let note = |text: &str| Remark {
        kind: RemarkKind::Note,
        path: fields.path.clone(),
        span: fields.span,
        text: text.to_owned(),
    };
    if server != Server::Reactive {
        settings.attempts = Some(retries.limit_or(Limit::At(RETRIES)));
        if server == Server::OldServlet {
            remarks.push(note("Spring Retry counts the first attempt as well"));
            settings.base = Some(Setting::default(Duration::ZERO));
            settings.jitter = Some(Setting::default(Jitter::None));
        } else {
            let text = "retries are attempts with Spring Retry on the class path, at once; without it, from 5.0 on, they \
                        are retries, 1s apart";
            remarks.push(note(text));
            settings.attempts = settings.attempts.map(|attempts| attempts.map(|_| Limit::Unknown));
        }
        for name in ["backoff", "jitter", "timeout", "statuses"] {
            let (kind, text) = match (name, server) {
                ("backoff", Server::Servlet) => (RemarkKind::Unmapped, "is read from version 5.0.3 on"),
                _ => (RemarkKind::NoEffect, "the filter for servlets has no such argument"),
            };
            remarks.extend(fields.take(name).map(|field| field.remark(kind, text)));
        }
    } else {
        settings.attempts = Some(retries.retries_or(RETRIES));
        let timeout = fields.read("timeout", |field| {
            remarks.push(field.remark(RemarkKind::Note, "begins no retry after it, and ends no attempt"));
            length(field, remarks)
        });
        settings.timeout = Some(timeout.limit_or(Limit::None));
        if timeout.known().is_some_and(|timeout| timeout.value.is_zero()) {
            settings.attempts = Some(timeout.limit_or(Limit::None).map(|_| Limit::At(1)));
        }
        delays(&mut fields, entry);
    }
    let remarks = &mut entry.remarks;
    let methods = fields.take("methods");
    let words = methods.as_ref().map(Field::words).unwrap_or_default();
    entry.may_repeat_unsafe = match &methods {
        _ if words.iter().any(|method| !is_idempotent(method)) => Some(true),
        Some(methods) if methods.has_unknown() => None,
        _ => Some(false),
    };
    let conditions = "decides which answers are retried";
    let unmapped = [
        ("statuses", conditions),
        ("series", conditions),
        ("exceptions", "decides which failures are retried"),
        ("cacheBody", "keeps the body of a request for its retries"),
    ];
    fields.unmapped(&unmapped, remarks);
    fields.finish(remarks);
}

fn delays(fields: &mut Fields<'_>, entry: &mut Entry) {
    let (settings, remarks) = (&mut entry.settings, &mut entry.remarks);
    let backoff = fields.take("backoff");
    if let Some(field) = &backoff {
        let mut backoff = field.fields();
        let first = backoff.read("firstBackoff", |field| match length(field, remarks) {
            Found::Known(length) if length.value.is_zero() => field.refused(remarks, "a length above 0"),
            found => found,
        });
        settings.base = first.or(FIRST_BACKOFF);
        let longest = backoff.read("maxBackoff", |field| match (length(field, remarks), settings.base) {
            (Found::Known(longest), Some(first)) if longest.value < first.value => {
                field.refused(remarks, "firstBackoff or more, and the gateway refuses it")
            }
            (found, _) => found,
        });
        settings.cap = Some(longest.limit_or(Limit::None));
        let factor = backoff.count("factor", remarks).map(|factor| f64::from(factor.max(1)));
        settings.multiplier = factor.or(FACTOR);
        backoff.unmapped(&[("basedOnPreviousValue", "how the same delays are computed")], remarks);
        backoff.finish(remarks);
    } else {
        settings.base = Some(Setting::default(Duration::ZERO));
        remarks.push(Remark {
            kind: RemarkKind::Note,
            path: fields.path.clone(),
            span: fields.span,
            text: "no backoff: it retries at once".to_owned(),
        });
    }
    settings.jitter = Some(Setting::default(Jitter::None));
    let Some(field) = fields.take("jitter") else { return };
    let factor = field.fields().read("randomFactor", |field| {
        let parse = |text: &str| text.parse().ok().filter(|factor| (0.0..=1.0).contains(factor));
        field.parse(remarks, "a number from 0 to 1", parse)
    });
    if backoff.is_none() {
        remarks.push(field.remark(RemarkKind::NoEffect, "has no effect without a backoff: there is no delay"));
    } else if factor.or(RANDOM_FACTOR).is_none_or(|factor: Setting<f64>| factor.value > 0.0) {
        let text = "draws around each delay, but never below firstBackoff or above maxBackoff, which no jitter here \
                    expresses";
        remarks.push(field.remark(RemarkKind::Unmapped, text));
        settings.jitter = None;
    }
}

fn length(field: &Field<'_>, remarks: &mut Vec<Remark>) -> Found<Duration> {
    field.duration(remarks, units::spring, "100ms")
}
