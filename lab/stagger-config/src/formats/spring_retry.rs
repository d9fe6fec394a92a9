//! Spring: the retries that Spring Boot and Spring Cloud configure by properties, most of them with Spring Retry.
//!
//! `@Retryable` and `RetryTemplate` stand in code, or take properties whose names an application chooses: they are not
//! read. Read in `RabbitProperties`, `KafkaProperties` and `KafkaAutoConfiguration` of Spring Boot 3.5 and 4.0, in
//! `RetryProperties`, `LoadBalancerProperties` and `ConsumerProperties` of Spring Cloud 2025.0, and in
//! `ExponentialBackOffPolicy`, `BackOffPolicyBuilder` and `RetryTemplateBuilder` of Spring Retry 2.0.
//!
//! | field | default | 0 | ignored | refused |
//! |---|---|---|---|---|
//! | `enabled` of `RabbitMQ` and Kafka topics | false | | | |
//! | `listener.direct.retry` of `RabbitMQ` | | | without `listener.type: direct` | |
//! | `listener.simple.retry` of `RabbitMQ` | | | with another `listener.type` | |
//! | `max-attempts` of `RabbitMQ` | 3; 4 in Boot 4 | never called | without `enabled: true`; in Boot 4 | |
//! | `max-retries` of `RabbitMQ` | 3 | 0: no retry | without `enabled: true`; before Boot 4 | |
//! | `initial-interval` of `RabbitMQ`, a consumer, the config client | 1 s | 1 ms | as `max-attempts` | by the client: 0 |
//! | `multiplier` of `RabbitMQ` | 1 | as 1 | below 1: as 1 | |
//! | `max-interval` of `RabbitMQ` | 10 s | 1 ms | without `enabled: true` | |
//! | `attempts` of a Kafka topic | 3 | | without `enabled: true` | 0 |
//! | `backoff.delay` of a Kafka topic, once `delay` | 1 s | 0: at once | without `enabled: true` | |
//! | `backoff.multiplier` of a Kafka topic, once `multiplier` | none: 1 | none | below 1: as 1 | |
//! | `backoff.max-delay` of a Kafka topic, once `max-delay` | 30 s | 0: 30 s | up to the delay: 30 s | |
//! | `backoff.random` of a Kafka topic, once `random-back-off` | false | | without a multiplier above 1 | |
//! | `max-attempts` of a consumer | 3 | 0: no retry | | |
//! | `back-off-multiplier` of a consumer | 2 | as 1 | below 1: as 1 | |
//! | `back-off-max-interval` of a consumer | 10 s | 1 ms | | no milliseconds |
//! | `default.consumer` of Spring Cloud Stream | | | where the binding says otherwise | |
//! | `max-attempts` of the config client | 6 | | without `fail-fast: true` | 0 |
//! | `multiplier` of the config client | 1.1 | | without `fail-fast: true` | 1 and below |
//! | `max-interval` of the config client | 2 s | | without `fail-fast: true` | up to `initial-interval` |
//! | `enabled` of the load balancer | true | | | |
//! | `max-retries-on-same-service-instance` | 0 | 0: no retry | without `enabled` | |
//! | `max-retries-on-next-service-instance` | 1 | 0: no retry | without `enabled` | |

use core::time::Duration;

use stagger_core::Jitter;

use crate::entry::{Entry, EntryKind, Found, Limit, Remark, RemarkKind, Setting, Settings};
use crate::fields::{Field, Fields, NOT_READ, whole};
use crate::format::Format;
use crate::position::Span;
use crate::tree::Node;
use crate::units;

/// A place with properties of one kind: their names, and what applies without them.
struct Place {
    path: &'static [&'static str],
    kind: EntryKind,
    switch: Switch,
    attempts: (&'static str, u32),
    base: &'static [&'static str],
    cap: (&'static [&'static str], Duration),
    multiplier: (&'static [&'static str], f64),
    /// The property that makes the delays random.
    random: &'static [&'static str],
    /// Whether lengths are whole numbers of milliseconds, and no durations.
    in_milliseconds: bool,
    /// What is worth knowing about the place.
    note: &'static str,
}

/// What turns the retries of a place on.
#[derive(Clone, Copy, PartialEq)]
enum Switch {
    /// `enabled` beside them, which is false by default.
    Enabled,
    /// `fail-fast` of the config client, which is false by default.
    FailFast,
    None,
}

const fn ms(ms: u64) -> Duration {
    Duration::from_millis(ms)
}

/// The first delay of all of them.
const BASE: Duration = ms(1_000);
/// The least delay of Spring Retry, which takes 0 for it as well.
const LEAST: Duration = ms(1);

const LISTENER: Place = Place {
    path: &["spring", "rabbitmq", "listener", "simple", "retry"],
    kind: EntryKind::Step,
    switch: Switch::Enabled,
    attempts: ("maxAttempts", 3),
    base: &["initialInterval"],
    cap: (&["maxInterval"], ms(10_000)),
    multiplier: (&["multiplier"], 1.0),
    random: &[],
    in_milliseconds: false,
    note: "the listener's thread waits out the delays, and the messages behind it wait as well",
};
/// What Spring Boot 4 has in place of `max-attempts`.
const MAX_RETRIES: &str = "maxRetries";

const DIRECT: Place = Place { path: &["spring", "rabbitmq", "listener", "direct", "retry"], ..LISTENER };
const TOPIC: Place = Place {
    path: &["spring", "kafka", "retry", "topic"],
    kind: EntryKind::Step,
    switch: Switch::Enabled,
    attempts: ("attempts", 3),
    base: &["delay"],
    cap: (&["maxDelay"], ms(30_000)),
    multiplier: (&["multiplier"], 1.0),
    random: &["random", "randomBackOff"],
    in_milliseconds: false,
    note: "a failed message waits in a topic of its own",
};
const CLIENT: Place = Place {
    path: &["spring", "cloud", "config", "retry"],
    kind: EntryKind::Fetch,
    switch: Switch::FailFast,
    attempts: ("maxAttempts", 6),
    base: &["initialInterval"],
    cap: (&["maxInterval"], ms(2_000)),
    multiplier: (&["multiplier"], 1.1),
    random: &["useRandomPolicy"],
    in_milliseconds: true,
    note: "needs spring-retry on the class path",
};

const PLACES: [Place; 5] = [
    LISTENER,
    DIRECT,
    Place {
        path: &["spring", "rabbitmq", "template", "retry"],
        kind: EntryKind::Call,
        note: "retries the sending of a message",
        ..LISTENER
    },
    TOPIC,
    CLIENT,
];

/// The consumers of a binding of Spring Cloud Stream.
const CONSUMER: Place = Place {
    path: &["spring", "cloud", "stream"],
    kind: EntryKind::Step,
    switch: Switch::None,
    attempts: ("maxAttempts", 3),
    base: &["backOffInitialInterval"],
    cap: (&["backOffMaxInterval"], ms(10_000)),
    multiplier: (&["backOffMultiplier"], 2.0),
    random: &[],
    in_milliseconds: true,
    note: "retries within the consumer; the binder may deliver the message again after it",
};

/// Places where properties look as if they had an effect, and what has one.
const WRONG: [(&[&str], &str); 3] = [
    (
        &["spring", "rabbitmq", "listener", "retry"],
        "Spring Boot has no properties of this name since 2.0: spring.rabbitmq.listener.simple.retry or .direct.retry \
         have an effect",
    ),
    (
        &["spring", "rabbitmq", "retry"],
        "Spring Boot has no properties of this name: spring.rabbitmq.listener.simple.retry or \
         spring.rabbitmq.template.retry have an effect",
    ),
    (
        &["spring", "kafka", "listener", "retry"],
        "Spring Boot has no properties of this name: spring.kafka.retry.topic has an effect",
    ),
];

pub(crate) fn is_application(root: &Node) -> bool {
    WRONG.iter().any(|(path, _)| root.at(path).is_some())
        || PLACES.iter().any(|place| root.at(place.path).is_some())
        || !consumers(root).is_empty()
        || !balancers(root).is_empty()
}

pub(crate) fn read(root: &Node) -> Vec<Entry> {
    let mut entries = Vec::new();
    for place in &PLACES {
        let Some(node) = root.at(place.path) else { continue };
        let path = place.path.join(".");
        match unused_type(place, root) {
            Some(text) => entries.push(without_effect(node, path, &text)),
            None => entries.extend(read_place(place, root, vec![Fields::of(node, path)])),
        }
    }
    for (path, text) in WRONG {
        let Some(node) = root.at(path) else { continue };
        entries.push(without_effect(node, path.join("."), text));
    }
    for sources in consumers(root) {
        entries.extend(read_place(&CONSUMER, root, sources));
    }
    for (path, node) in balancers(root) {
        entries.push(read_balancer(Fields::of(node, path)));
    }
    entries
}

/// Names all fields of a place that nobody reads.
fn without_effect(node: &Node, path: String, text: &str) -> Entry {
    let mut entry = Entry::new(Format::SpringRetry, EntryKind::Unread, path.clone(), node.span);
    let fields = Fields::of(node, path).rest();
    entry.remarks.extend(fields.iter().map(|field| field.remark(RemarkKind::NoEffect, text)));
    entry
}

/// Says why the listeners that Spring Boot makes read nothing of a place: they are of another type.
fn unused_type(place: &Place, root: &Node) -> Option<String> {
    const TYPE: [&str; 4] = ["spring", "rabbitmq", "listener", "type"];
    let own = match place.path {
        [_, _, "listener", own, _] => *own,
        _ => return None,
    };
    let used = match root.at(&TYPE) {
        Some(node) => node.text()?.to_ascii_lowercase(),
        None => "simple".to_owned(),
    };
    if used == own {
        return None;
    }
    Some(format!(
        "the listeners that Spring Boot makes are of type {used}, without spring.rabbitmq.listener.type: {own}"
    ))
}

/// The consumers that set something about retries, each with what it inherits.
fn consumers(root: &Node) -> Vec<Vec<Fields<'_>>> {
    let Some(stream) = root.at(CONSUMER.path) else { return Vec::new() };
    let path = CONSUMER.path.join(".");
    let default = stream.at(&["default", "consumer"]);
    let default = || default.map(|node| Fields::of(node, format!("{path}.default.consumer")));
    let mut found = Vec::new();
    for binding in stream.get("bindings").map(Node::members).unwrap_or_default() {
        if let Some(consumer) = binding.node.get("consumer") {
            let own = Fields::of(consumer, format!("{path}.bindings.{}.consumer", binding.key));
            found.push(core::iter::once(own).chain(default()).collect());
        }
    }
    if found.is_empty() {
        found.extend(default().map(|default| vec![default]));
    }
    let names = [&[CONSUMER.attempts.0], CONSUMER.base, CONSUMER.cap.0, CONSUMER.multiplier.0].concat();
    found.retain(|sources: &Vec<Fields<'_>>| sources.iter().any(|fields| fields.has_any(&names)));
    found
}

/// Takes the first of several fields that is present in one of several mappings.
fn take<'a>(sources: &mut [Fields<'a>], names: &[&str]) -> Option<Field<'a>> {
    let found: Vec<_> = sources.iter_mut().filter_map(|fields| fields.take_any(names)).collect();
    found.into_iter().next()
}

/// Reads a place, in the first of several mappings that has a field.
fn read_place(place: &Place, root: &Node, mut sources: Vec<Fields<'_>>) -> Option<Entry> {
    let own = sources.first()?;
    let mut entry = Entry::new(Format::SpringRetry, place.kind, own.path.clone(), own.span);
    let (settings, remarks) = (&mut entry.settings, &mut entry.remarks);
    let (enabled, switch) = match place.switch {
        Switch::Enabled => (take(&mut sources, &["enabled"]), "enabled: true"),
        Switch::FailFast => {
            let client = root.at(&["spring", "cloud", "config"])?;
            (Fields::of(client, "spring.cloud.config").take("failFast"), "spring.cloud.config.fail-fast: true")
        }
        Switch::None => (None, ""),
    };
    let enabled = enabled.map_or(Found::Absent, |field| field.flag(remarks)).or(place.switch == Switch::None);
    if let Some(off) = enabled.filter(|enabled| !enabled.value) {
        let rest = sources.first_mut()?.rest();
        let text = format!("has no effect without {switch}");
        remarks.extend(rest.first().map(|field| field.remark(RemarkKind::NoEffect, text)));
        settings.attempts = Some(off.map(|_| Limit::At(1)));
        return Some(entry);
    }
    if let Some(backoff) = sources.first_mut()?.take("backoff").filter(|_| place.path == TOPIC.path) {
        sources.insert(0, backoff.fields());
    }
    let attempts = attempts(place, &mut sources, remarks);
    // Whether anything is retried may not be known.
    settings.attempts = Some(if enabled.is_none() { Setting { value: Limit::Unknown, ..attempts } } else { attempts });
    delays(place, &mut sources, &mut entry);
    let remarks = &mut entry.remarks;
    for fields in &mut sources {
        remarks.extend(fields.rest().iter().map(|field| field.remark(RemarkKind::Unmapped, NOT_READ)));
    }
    remarks.push(Remark {
        kind: RemarkKind::Note,
        path: entry.path.clone(),
        span: entry.span,
        text: place.note.to_owned(),
    });
    Some(entry)
}

fn attempts(place: &Place, sources: &mut [Fields<'_>], remarks: &mut Vec<Remark>) -> Setting<Limit<u32>> {
    let (name, default) = place.attempts;
    let field = take(sources, &[name]);
    // A consumer makes one attempt at least; the others would make none, or are refused.
    let stated = match field {
        Some(field) if place.path == CONSUMER.path => field.count(remarks).map(|attempts| attempts.max(1)),
        Some(field) => field.positive(remarks),
        None => Found::Absent,
    };
    let is_rabbit = place.path.get(1) == Some(&"rabbitmq");
    if !is_rabbit {
        return stated.limit_or(Limit::At(default));
    }
    match (stated, take(sources, &[MAX_RETRIES])) {
        (_, Some(retries)) => {
            remarks
                .push(retries.remark(RemarkKind::Note, "is read from Spring Boot 4 on, which makes one attempt more"));
            retries.count(remarks).retries_or(default)
        }
        // Three attempts, or three retries from Spring Boot 4 on.
        (Found::Absent, None) => Setting::default(Limit::Unknown),
        (stated, None) => stated.limit_or(Limit::Unknown),
    }
}

fn delays(place: &Place, sources: &mut [Fields<'_>], entry: &mut Entry) {
    let (settings, remarks) = (&mut entry.settings, &mut entry.remarks);
    let is_topic = place.path == TOPIC.path;
    let mut length = |names: &[&str], remarks: &mut Vec<Remark>| match take(sources, names) {
        Some(field) if place.in_milliseconds => {
            let parse = |text: &str| whole(text).map(|number| ms(number.into()));
            field.parse(remarks, "a whole number of milliseconds", parse)
        }
        Some(field) => field.duration(remarks, units::spring, "1s"),
        None => Found::Absent,
    };
    let (base, cap) = (length(place.base, remarks), length(place.cap.0, remarks));
    let multiplier = match take(sources, place.multiplier.0) {
        Some(field) => field.number(remarks),
        None => Found::Absent,
    };
    // Below 1, the delays do not grow.
    settings.multiplier = multiplier.map(|factor| factor.max(1.0)).or(place.multiplier.1);
    settings.base = base.or(BASE);
    let mut cap = cap.limit_or(Limit::At(place.cap.1));
    let grows = settings.multiplier.is_none_or(|multiplier| multiplier.value > 1.0);
    let (first, longest) = (settings.base.map(|base| base.value), cap.value.at());
    let is_above = longest > first && first.is_some();
    if is_topic {
        let has_factor = multiplier.known().is_some_and(|factor| factor.value > 0.0);
        if let (false, true, Some(span)) = (has_factor, is_above || longest.is_none(), cap.span()) {
            let text = "until Spring Boot 3.5 each delay is drawn between the two, from 4.0 on it is the shorter one";
            remarks.push(Remark { kind: RemarkKind::Unmapped, path: entry.path.clone(), span, text: text.to_owned() });
            settings.base = None;
        } else if longest.is_some() && !is_above {
            cap = Setting::default(Limit::At(place.cap.1));
        }
    } else if place.path == CLIENT.path {
        cap = refused(&entry.path, settings, multiplier, cap, remarks);
    } else {
        // Spring Retry has no delay of 0, and cuts the first one as well.
        settings.base = settings.base.map(|base| base.map(|length| length.max(LEAST)));
        cap = cap.map(|limit| if let Limit::At(length) = limit { Limit::At(length.max(LEAST)) } else { limit });
        if cap.value == Limit::Unknown && !grows {
            settings.base = None;
        } else if let (Some(first), Some(longest)) = (first, longest)
            && first > longest
        {
            settings.base = Some(cap.map(|_| longest.max(LEAST)));
            settings.multiplier = Some(Setting::default(1.0));
        }
    }
    if settings.multiplier.is_none_or(|multiplier| multiplier.value > 1.0) {
        settings.cap = Some(cap);
    }
    settings.jitter = random(place, sources, grows, remarks);
}

/// Says what the config client refuses, and returns the cap that remains.
fn refused(
    path: &str,
    settings: &mut Settings,
    multiplier: Found<f64>,
    cap: Setting<Limit<Duration>>,
    remarks: &mut Vec<Remark>,
) -> Setting<Limit<Duration>> {
    let mut refuse = |span: Option<Span>, text: &str| {
        let text = format!("{text}: the application does not start");
        remarks.extend(span.map(|span| Remark { kind: RemarkKind::Invalid, path: path.to_owned(), span, text }));
    };
    if multiplier.known().is_some_and(|factor| factor.value <= 1.0) {
        refuse(multiplier.span(), "the multiplier must be above 1");
        settings.multiplier = None;
    }
    let Some(base) = settings.base else { return cap };
    if base.value.is_zero() {
        refuse(base.span(), "the initial interval must be 1 or more");
        settings.base = None;
    } else if cap.value.at().is_some_and(|longest| longest <= base.value) {
        let span = cap.span().or(base.span());
        refuse(span, "the longest interval must be above the initial one");
        return cap.map(|_| Limit::Unknown);
    }
    cap
}

fn random(
    place: &Place,
    sources: &mut [Fields<'_>],
    grows: bool,
    remarks: &mut Vec<Remark>,
) -> Option<Setting<Jitter>> {
    let drawn = "the delays are drawn in a way that no jitter here expresses";
    if place.path == TOPIC.path
        && let Some(field) = take(sources, &["jitter"])
    {
        remarks.push(field.remark(RemarkKind::Unmapped, drawn));
        return None;
    }
    let none = Some(Setting::default(Jitter::None));
    let Some(field) = take(sources, place.random) else { return none };
    match field.flag(remarks) {
        Found::Known(Setting { value: false, .. }) | Found::Absent => none,
        Found::Known(_) if !grows => {
            remarks.push(field.remark(RemarkKind::NoEffect, "has no effect while the delays do not grow"));
            none
        }
        Found::Known(_) => {
            remarks.push(field.remark(RemarkKind::Unmapped, drawn));
            None
        }
        Found::Unknown(_) => None,
    }
}

const BALANCER: [&str; 3] = ["spring", "cloud", "loadbalancer"];
const SAME_INSTANCE: u32 = 0;
const NEXT_INSTANCE: u32 = 1;

/// The retries of all load balancers, and those of single clients, which replace them.
fn balancers(root: &Node) -> Vec<(String, &Node)> {
    let Some(balancer) = root.at(&BALANCER) else { return Vec::new() };
    let path = BALANCER.join(".");
    let clients = balancer.get("clients").map(Node::members).unwrap_or_default().iter();
    let clients = clients.map(|client| (format!("{path}.clients.{}.retry", client.key), client.node.get("retry")));
    let all = core::iter::once((format!("{path}.retry"), balancer.get("retry"))).chain(clients);
    all.filter_map(|(path, node)| Some((path, node?))).collect()
}

/// Reads the load balancer's retries: so many on the same instance, for so many other instances.
fn read_balancer(mut fields: Fields<'_>) -> Entry {
    let mut entry = Entry::new(Format::SpringRetry, EntryKind::Call, fields.path.clone(), fields.span);
    let (settings, remarks) = (&mut entry.settings, &mut entry.remarks);
    let enabled = fields.flag("enabled", remarks);
    let same = fields.count("maxRetriesOnSameServiceInstance", remarks).retries_or(SAME_INSTANCE);
    let next = fields.count("maxRetriesOnNextServiceInstance", remarks).retries_or(NEXT_INSTANCE);
    let attempts = match (same.value, next.value, enabled) {
        (Limit::At(same), Limit::At(next), Found::Absent | Found::Known(_)) => Limit::At(same.saturating_mul(next)),
        _ => Limit::Unknown,
    };
    let origin = if same.is_stated() { same.origin } else { next.origin };
    settings.attempts = Some(match enabled.known() {
        Some(Setting { value: false, origin }) => Setting { value: Limit::At(1), origin },
        _ => Setting { value: attempts, origin },
    });
    settings.base = Some(Setting::default(Duration::ZERO));
    if let Some(backoff) = fields.take("backoff") {
        let text = "delays of the reactive load balancer alone, which needs enabled: true in there";
        remarks.push(backoff.remark(RemarkKind::Unmapped, text));
        if backoff.fields().flag("enabled", remarks).or(false).is_none_or(|enabled| enabled.value) {
            settings.base = None;
        }
    }
    let all = fields.flag("retryOnAllOperations", remarks);
    entry.may_repeat_unsafe = all.or(false).map(|all| all.value);
    fields.unmapped(&[("retryableStatusCodes", "which status codes are retried")], remarks);
    fields.finish(remarks);
    entry
}
