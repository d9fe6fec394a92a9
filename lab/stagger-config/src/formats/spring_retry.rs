//! Spring: the retries that Spring Boot and Spring Cloud configure by properties, most of them with Spring Retry.
//!
//! `@Retryable` and `RetryTemplate` stand in code, or take properties whose names an application chooses: they are not
//! read. Read in `RabbitProperties` and `KafkaProperties` of Spring Boot 3.5, and in `RetryProperties`,
//! `LoadBalancerRetryProperties` and `ConsumerProperties` of Spring Cloud 2025.0.
//!
//! | field | default | ignored |
//! |---|---|---|
//! | `enabled` of `RabbitMQ` and Kafka topics | false | |
//! | `max-attempts` of `RabbitMQ`, of a consumer; `attempts` of Kafka | 3 | without `enabled: true` |
//! | `initial-interval` of `RabbitMQ`; `delay` of Kafka | 1 s | without `enabled: true` |
//! | `multiplier` | 1, of a consumer 2, of the config client 1.1 | below 1 |
//! | `max-interval` of `RabbitMQ`; `max-delay` of Kafka | 10 s; 30 s | while the delays do not grow |
//! | `max-attempts` of the config client | 6, from 1 s to 2 s | without `fail-fast` |
//! | `enabled` of the load balancer | true | |
//! | `max-retries-on-same-service-instance`, `max-retries-on-next-service-instance` | 0; 1 | |

use core::time::Duration;

use stagger_core::Jitter;

use crate::entry::{Entry, EntryKind, Found, Limit, Remark, RemarkKind, Setting};
use crate::fields::{Field, Fields};
use crate::format::Format;
use crate::tree::Node;
use crate::units;

/// A place with properties of one kind: their names, and what applies without them.
struct Place {
    path: &'static [&'static str],
    kind: EntryKind,
    /// Whether nothing is retried without `enabled: true`.
    needs_enabled: bool,
    attempts: (&'static [&'static str], u32),
    base: (&'static [&'static str], Duration),
    cap: (&'static [&'static str], Duration),
    multiplier: (&'static str, f64),
    /// The property that makes the delays random.
    random: Option<&'static str>,
    /// What is worth knowing about the place.
    note: &'static str,
}

const fn ms(ms: u64) -> Duration {
    Duration::from_millis(ms)
}

const LISTENER: Place = Place {
    path: &["spring", "rabbitmq", "listener", "simple", "retry"],
    kind: EntryKind::Step,
    needs_enabled: true,
    attempts: (&["maxAttempts"], 3),
    base: (&["initialInterval"], ms(1_000)),
    cap: (&["maxInterval"], ms(10_000)),
    multiplier: ("multiplier", 1.0),
    random: None,
    note: "the listener's thread waits out the delays, and the messages behind it wait as well",
};

const PLACES: [Place; 5] = [
    LISTENER,
    Place { path: &["spring", "rabbitmq", "listener", "direct", "retry"], ..LISTENER },
    Place {
        path: &["spring", "rabbitmq", "template", "retry"],
        kind: EntryKind::Call,
        note: "retries the sending of a message",
        ..LISTENER
    },
    Place {
        path: &["spring", "kafka", "retry", "topic"],
        kind: EntryKind::Step,
        needs_enabled: true,
        attempts: (&["attempts"], 3),
        base: (&["delay"], ms(1_000)),
        cap: (&["maxDelay"], ms(30_000)),
        multiplier: ("multiplier", 1.0),
        random: Some("randomBackOff"),
        note: "a failed message waits in a topic of its own",
    },
    Place {
        path: &["spring", "cloud", "config", "retry"],
        kind: EntryKind::Fetch,
        needs_enabled: false,
        attempts: (&["maxAttempts"], 6),
        base: (&["initialInterval"], ms(1_000)),
        cap: (&["maxInterval"], ms(2_000)),
        multiplier: ("multiplier", 1.1),
        random: Some("useRandomPolicy"),
        note: "has an effect only with spring.cloud.config.fail-fast: true and spring-retry on the class path",
    },
];

/// The consumers of a binding of Spring Cloud Stream.
const CONSUMER: Place = Place {
    path: &["spring", "cloud", "stream", "bindings"],
    kind: EntryKind::Step,
    needs_enabled: false,
    attempts: (&["maxAttempts"], 3),
    base: (&["backOffInitialInterval"], ms(1_000)),
    cap: (&["backOffMaxInterval"], ms(10_000)),
    multiplier: ("backOffMultiplier", 2.0),
    random: None,
    note: "retries within the consumer; the binder may deliver the message again after it",
};

/// Places where properties look as if they had an effect.
const WRONG: [(&[&str], &str); 3] = [
    (&["spring", "rabbitmq", "listener", "retry"], "spring.rabbitmq.listener.simple.retry or .direct.retry"),
    (&["spring", "rabbitmq", "retry"], "spring.rabbitmq.listener.simple.retry or spring.rabbitmq.template.retry"),
    (&["spring", "kafka", "listener", "retry"], "spring.kafka.retry.topic"),
];

pub(crate) fn is_application(root: &Node) -> bool {
    WRONG.iter().any(|(path, _)| root.at(path).is_some())
        || PLACES.iter().any(|place| root.at(place.path).is_some())
        || !consumers(root).is_empty()
        || balancer(root).is_some()
}

pub(crate) fn read(root: &Node) -> Vec<Entry> {
    let mut entries = Vec::new();
    for place in &PLACES {
        if let Some(node) = root.at(place.path) {
            entries.extend(read_place(place, Fields::of(node, place.path.join("."))));
        }
    }
    for (path, right) in WRONG {
        let Some(node) = root.at(path) else { continue };
        let mut entry = Entry::new(Format::SpringRetry, EntryKind::Unread, path.join("."), node.span);
        let text = format!("Spring Boot has no properties of this name: {right} have an effect");
        for field in Fields::of(node, path.join(".")).rest() {
            entry.remarks.push(field.remark(RemarkKind::NoEffect, &*text));
        }
        entries.push(entry);
    }
    for (path, node) in consumers(root) {
        entries.extend(read_place(&CONSUMER, Fields::of(node, path)));
    }
    if let Some(node) = balancer(root) {
        entries.extend(read_balancer(Fields::of(node, BALANCER.join("."))));
    }
    entries
}

/// The consumers that set something about retries.
fn consumers(root: &Node) -> Vec<(String, &Node)> {
    let bindings = root.at(CONSUMER.path).map(Node::members).unwrap_or_default();
    let consumers = bindings.iter().filter_map(|binding| {
        let consumer = binding.node.get("consumer")?;
        let mut fields = Fields::of(consumer, "");
        let names = [CONSUMER.attempts.0, CONSUMER.base.0, CONSUMER.cap.0, &[CONSUMER.multiplier.0]].concat();
        fields.take_any(&names)?;
        Some((format!("{}.{}.consumer", CONSUMER.path.join("."), binding.key), consumer))
    });
    consumers.collect()
}

fn read_place(place: &Place, mut fields: Fields<'_>) -> Option<Entry> {
    let mut entry = Entry::new(Format::SpringRetry, place.kind, fields.path.clone(), fields.span);
    let (settings, remarks) = (&mut entry.settings, &mut entry.remarks);
    let enabled = fields.flag("enabled", remarks);
    let enabled = enabled.or(!place.needs_enabled);
    if let Some(off) = enabled.filter(|enabled| place.needs_enabled && !enabled.value) {
        let text = "has no effect without enabled: true";
        let rest = fields.rest();
        remarks.extend(rest.first().map(|field| field.remark(RemarkKind::NoEffect, text)));
        settings.attempts = Some(off.map(|_| Limit::At(1)));
        return Some(entry);
    }
    let attempts = fields.read_any(place.attempts.0, |field| field.count(remarks));
    let attempts = attempts.limit_or(Limit::At(place.attempts.1));
    // Whether anything is retried may not be known.
    settings.attempts = Some(if enabled.is_none() { Setting { value: Limit::Unknown, ..attempts } } else { attempts });
    let mut duration = |(names, default): (&[&str], Duration), remarks: &mut Vec<Remark>| {
        (fields.read_any(names, |field| length(field, remarks)), default)
    };
    let (base, default) = duration(place.base, remarks);
    settings.base = base.or(default);
    let (cap, default) = duration(place.cap, remarks);
    // Below 1, as the 0 that is Kafka's default, the delays do not grow.
    let multiplier = fields.number(place.multiplier.0, remarks).map(|factor| factor.max(1.0));
    settings.multiplier = multiplier.or(place.multiplier.1);
    if let Some(multiplier) = settings.multiplier
        && multiplier.value > 1.0
    {
        settings.cap = Some(cap.limit_or(Limit::At(default)));
    }
    let random = match place.random.and_then(|name| fields.take(name)) {
        Some(field) => {
            let flag = field.flag(remarks);
            if let Some(Setting { value: true, .. }) = flag.known() {
                let text =
                    "the delays are drawn between the interval and its next value, which no jitter here expresses";
                remarks.push(field.remark(RemarkKind::Unmapped, text));
            }
            flag
        }
        None => Found::Absent,
    };
    settings.jitter = random.map(|_| Jitter::None).or(Jitter::None);
    remarks.push(Remark { kind: RemarkKind::Note, path: fields.path, span: entry.span, text: place.note.to_owned() });
    Some(entry)
}

fn length(field: &Field<'_>, remarks: &mut Vec<Remark>) -> Found<Duration> {
    field.duration(remarks, units::spring, "1s")
}

const BALANCER: [&str; 4] = ["spring", "cloud", "loadbalancer", "retry"];
const SAME_INSTANCE: u32 = 0;
const NEXT_INSTANCE: u32 = 1;

fn balancer(root: &Node) -> Option<&Node> {
    root.at(&BALANCER)
}

/// Reads the load balancer's retries: so many on the same instance, for so many other instances.
fn read_balancer(mut fields: Fields<'_>) -> Option<Entry> {
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
    let all = fields.flag("retryOnAllOperations", remarks);
    entry.may_repeat_unsafe = all.or(false).map(|all| all.value);
    let unmapped = [
        ("retryableStatusCodes", "which status codes are retried"),
        ("backoff", "delays of the reactive load balancer, which needs enabled: true in there"),
    ];
    fields.unmapped(&unmapped, remarks);
    fields.finish(remarks);
    Some(entry)
}
