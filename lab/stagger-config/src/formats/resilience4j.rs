//! resilience4j in an application of Spring: `resilience4j.retry`.
//!
//! Read in `CommonRetryConfigurationProperties`, `ConfigUtils`, `RetryConfig` and `IntervalFunction` of version 2.3.
//! `${X:y}` has a default, `${X}` is another property of the same file, or not known.
//!
//! | field | default | 0 | ignored | refused |
//! |---|---|---|---|---|
//! | `maxAttempts` | 3 | | | below 1 |
//! | `waitDuration` | 500 ms | 0: at once | | no length; 0 if it grows or is drawn |
//! | `enableExponentialBackoff` | false | | without `waitDuration` | |
//! | `exponentialBackoffMultiplier` | 1.5 | | while the wait does not grow | 0 and below |
//! | `exponentialMaxWaitDuration` | no limit | | while it does not grow; without the multiplier | no length; 0 |
//! | `enableRandomizedWait` | false | | without `waitDuration` | |
//! | `randomizedWaitFactor` | 0.5 | 0: not drawn | while the wait is not drawn | below 0, from 1 on |
//! | `intervalBiFunction` | none | | | |
//! | `baseConfig` | `default` | | | a name that is not there |
//! | all of them | | | outside of `instances` and `configs` | |
//!
//! The delays are those of the first place in the chain of bases that sets `waitDuration`: an instance that sets none
//! has all of its base's, whatever else it says of them. Where the wait grows and is drawn, the maximum needs both
//! `exponentialBackoffMultiplier` and `randomizedWaitFactor`, and the factor needs the multiplier. The factor is not
//! inherited: it belongs beside `waitDuration`.

use core::time::Duration;
use std::collections::HashMap;

use stagger_core::text::Compact;
use stagger_core::{Jitter, Ratio};

use crate::entry::{Entry, EntryKind, Found, Limit, Remark, RemarkKind, RetryBudget, Setting, Settings};
use crate::fields::{Field, Fields, join, shortened};
use crate::format::Format;
use crate::position::Span;
use crate::tree::{Member, Node, Value};
use crate::units;

const ATTEMPTS: u32 = 3;
const WAIT: Duration = Duration::from_millis(500);
const MULTIPLIER: f64 = 1.5;
const RANDOMIZED: f64 = 0.5;
/// How many configurations may inherit from one another.
const MAX_BASES: usize = 20;
/// The configuration that all inherit which name no other.
const DEFAULT: &str = "default";

pub(crate) fn is_application(root: &Node) -> bool {
    root.at(&["resilience4j", "retry"]).is_some()
}

/// What one place sets itself.
struct Own {
    path: String,
    attempts: Found<u32>,
    wait: Found<Duration>,
    exponential: Found<bool>,
    multiplier: Found<f64>,
    longest: Found<Duration>,
    randomized: Found<bool>,
    factor: Found<f64>,
    /// The class that computes the delays in place of all of these.
    function: Option<Span>,
}

impl Own {
    fn read(fields: &mut Fields<'_>, remarks: &mut Vec<Remark>) -> Self {
        let mut duration =
            |name: &str, remarks: &mut Vec<Remark>| fields.duration(name, remarks, units::spring, "500ms");
        let (wait, longest) = (duration("waitDuration", remarks), duration("exponentialMaxWaitDuration", remarks));
        Self {
            path: fields.path.clone(),
            attempts: fields.read_any(&["maxAttempts", "maxRetryAttempts"], |field| field.positive(remarks)),
            wait,
            exponential: fields.flag("enableExponentialBackoff", remarks),
            multiplier: fields.read("exponentialBackoffMultiplier", |field| {
                field.parse(remarks, "a number above 0", |text| text.parse().ok().filter(|&factor| factor > 0.0))
            }),
            longest,
            randomized: fields.flag("enableRandomizedWait", remarks),
            factor: fields.read("randomizedWaitFactor", |field| {
                let parse = |text: &str| text.parse().ok().filter(|factor| (0.0..1.0).contains(factor));
                field.parse(remarks, "a number from 0 up to 1, which it does not reach", parse)
            }),
            function: fields.take("intervalBiFunction").map(|field| field.span()),
        }
    }

    /// What the place says of the delays beside the wait, by name.
    fn growth(&self) -> [(&'static str, Option<Span>); 5] {
        [
            ("enableExponentialBackoff", self.exponential.span()),
            ("exponentialBackoffMultiplier", self.multiplier.span()),
            ("exponentialMaxWaitDuration", self.longest.span()),
            ("enableRandomizedWait", self.randomized.span()),
            ("randomizedWaitFactor", self.factor.span()),
        ]
    }

    /// Returns a remark about a field of this place, if it has that field.
    fn remark(&self, kind: RemarkKind, (field, span): (&str, Option<Span>), text: impl Into<String>) -> Option<Remark> {
        Some(Remark { kind, path: join(&self.path, field), span: span?, text: text.into() })
    }
}

pub(crate) fn read(root: &Node) -> Vec<Entry> {
    let Some(retry) = root.at(&["resilience4j", "retry"]) else { return Vec::new() };
    let configs = retry.get("configs").map(Node::index).unwrap_or_default();
    let limiters = Limiters::of(root);
    let mut entries = Vec::new();
    for group in ["instances", "backends"] {
        let Some(instances) = retry.get(group) else { continue };
        for instance in instances.members() {
            let path = format!("resilience4j.retry.{group}.{}", instance.key);
            let mut entry = Entry::new(Format::Resilience4j, EntryKind::Call, path.clone(), instance.key_span);
            let mut fields = Fields::of(&instance.node, path);
            let own = Own::read(&mut fields, &mut entry.remarks);
            let base = fields.take("baseConfig");
            let mut chain = vec![own];
            bases(&configs, &instance.key, base.as_ref(), &mut chain, &mut entry.remarks);
            apply(&chain, &mut entry);
            let conditions = "decides which failures are retried";
            let unmapped = [
                ("retryExceptions", conditions),
                ("ignoreExceptions", conditions),
                ("retryExceptionPredicate", conditions),
                ("resultPredicate", conditions),
                ("failAfterMaxAttempts", "what the caller sees in the end"),
                ("eventConsumerBufferSize", "the number of events that are kept"),
            ];
            fields.unmapped(&unmapped, &mut entry.remarks);
            fields.finish(&mut entry.remarks);
            let _ = limiters.note(&instance.key, &mut entry.remarks);
            entries.push(entry);
        }
    }
    entries.extend(misplaced(retry));
    entries
}

/// Names what stands directly below `resilience4j.retry`, where resilience4j reads nothing of it.
fn misplaced(retry: &Node) -> Option<Entry> {
    // What there is besides, and is not about retries.
    const KNOWN: [&str; 6] = ["instances", "backends", "configs", "retryAspectOrder", "metrics", "tags"];
    let mut fields = Fields::of(retry, "resilience4j.retry");
    for name in KNOWN {
        let _ = fields.take(name);
    }
    let mut remarks = Vec::new();
    for field in fields.rest() {
        let is_instance = matches!(field.node.value, Value::Map(_));
        let place = if is_instance { "instances" } else { "instances.NAME or configs.default" };
        let text = format!("resilience4j reads nothing here: it belongs below resilience4j.retry.{place}");
        remarks.push(field.remark(RemarkKind::NoEffect, text));
    }
    let first = remarks.first()?;
    let mut entry = Entry::new(Format::Resilience4j, EntryKind::Unread, "resilience4j.retry", first.span);
    entry.remarks = remarks;
    Some(entry)
}

/// Adds the configurations that an instance is based on, the nearest first.
fn bases(
    configs: &HashMap<&str, &Member>,
    instance: &str,
    base: Option<&Field<'_>>,
    chain: &mut Vec<Own>,
    remarks: &mut Vec<Remark>,
) {
    let (mut base, mut of) = (base.cloned(), instance);
    for _ in 0..MAX_BASES {
        // Only `default` itself has no base.
        let name = match base.as_ref().and_then(Field::text) {
            Some(name) => name,
            None if of == DEFAULT => return,
            None => DEFAULT,
        };
        let Some(config) = configs.get(name) else {
            if let Some(field) = base {
                let text = format!("there is no configuration `{}`: the application does not start", shortened(name));
                remarks.push(field.remark(RemarkKind::Invalid, text));
            }
            return;
        };
        let mut fields = Fields::of(&config.node, format!("resilience4j.retry.configs.{}", config.key));
        chain.push(Own::read(&mut fields, remarks));
        (base, of) = (fields.take("baseConfig"), &config.key);
    }
}

/// Returns the first value that is stated in a chain of bases.
fn inherited<T>(chain: &[Own], of: impl Fn(&Own) -> Found<T>) -> Found<T> {
    chain.iter().map(of).fold(Found::Absent, Found::or_else)
}

fn apply(chain: &[Own], entry: &mut Entry) {
    let (settings, remarks) = (&mut entry.settings, &mut entry.remarks);
    settings.attempts = Some(inherited(chain, |own| own.attempts).limit_or(Limit::At(ATTEMPTS)));
    settings.budget = Some(Setting::default(RetryBudget::Unlimited));
    let at = chain.iter().position(|own| own.wait != Found::Absent || own.function.is_some());
    let (idle, delays) = chain.split_at(at.unwrap_or(chain.len()));
    let without_wait = match delays.first() {
        Some(own) => format!("has no effect without waitDuration beside it: the delays are those of {}", own.path),
        None => "has no effect without waitDuration: the wait stays 500ms".to_owned(),
    };
    // One remark is enough, at the first of them.
    let first = idle.iter().find_map(|own| {
        let stated = own.growth().into_iter().find(|(_, span)| span.is_some())?;
        own.remark(RemarkKind::NoEffect, stated, &*without_wait)
    });
    remarks.extend(first);
    match delays.first() {
        Some(Own { function: Some(span), path, .. }) => remarks.push(Remark {
            kind: RemarkKind::Unmapped,
            path: join(path, "intervalBiFunction"),
            span: *span,
            text: "a class computes the delays, which are not known".to_owned(),
        }),
        Some(own) => delayed(own, delays, settings, remarks),
        None => *settings = core::mem::take(settings).constant(Setting::default(WAIT)),
    }
}

/// Reads the delays of the place that sets the wait; `chain` begins with it.
fn delayed(own: &Own, chain: &[Own], settings: &mut Settings, remarks: &mut Vec<Remark>) {
    let exponential = inherited(chain, |own| own.exponential).or(false);
    let randomized = inherited(chain, |own| own.randomized).or(false);
    let multiplier = inherited(chain, |own| own.multiplier);
    let longest = inherited(chain, |own| own.longest);
    let is = |flag: Option<Setting<bool>>, wanted| flag.is_some_and(|flag| flag.value == wanted);
    let (grows, is_drawn) = (is(exponential, true), is(randomized, true));
    let is_zero = |length: Found<Duration>| length.known().is_some_and(|length| length.value.is_zero());
    // Which fields resilience4j passes on, and which it drops.
    let mut dropped = Vec::new();
    if is(exponential, false) {
        let text = "has no effect without enableExponentialBackoff: true: the wait does not grow";
        dropped.extend([("exponentialBackoffMultiplier", text), ("exponentialMaxWaitDuration", text)]);
    }
    if is(randomized, false) {
        dropped.push(("randomizedWaitFactor", "has no effect without enableRandomizedWait: true"));
    }
    let mut factor = own.factor;
    if grows && multiplier == Found::Absent {
        let text = "has no effect without exponentialBackoffMultiplier: the wait grows without a limit";
        dropped.push(("exponentialMaxWaitDuration", text));
        if is_drawn {
            dropped.push(("randomizedWaitFactor", "has no effect without exponentialBackoffMultiplier: it stays 0.5"));
            factor = Found::Absent;
        }
    } else if grows && is_drawn && own.factor == Found::Absent {
        let text = "has no effect with enableRandomizedWait unless randomizedWaitFactor is set where waitDuration is";
        dropped.push(("exponentialMaxWaitDuration", text));
    }
    if is_drawn && own.factor == Found::Absent {
        let text = "is not inherited: it belongs beside waitDuration";
        dropped.push(("randomizedWaitFactor", text));
    }
    let capped = grows && !dropped.iter().any(|(name, _)| *name == "exponentialMaxWaitDuration");
    for (name, text) in dropped {
        let stated = chain.iter().find_map(|own| {
            let found = own.growth().into_iter().find(|(field, span)| *field == name && span.is_some())?;
            own.remark(RemarkKind::NoEffect, found, text)
        });
        remarks.extend(stated);
    }
    settings.base = own.wait.or(WAIT);
    if (grows || is_drawn) && is_zero(own.wait) {
        let text = "must be 1ms or more where it grows or is drawn at random: the application does not start";
        remarks.extend(own.remark(RemarkKind::Invalid, ("waitDuration", own.wait.span()), text));
        settings.base = None;
    }
    settings.jitter = match randomized {
        Some(Setting { value: true, origin }) => {
            factor.or(RANDOMIZED).map(|factor| Setting { value: jitter(factor.value), origin })
        }
        Some(_) => Some(Setting::default(Jitter::None)),
        None => None,
    };
    settings.multiplier = match exponential {
        Some(Setting { value: true, .. }) => multiplier.or(MULTIPLIER),
        Some(_) => Some(Setting::default(1.0)),
        None => None,
    };
    if grows {
        settings.cap = Some(match (capped, randomized) {
            (true, Some(_)) => longest.limit_or(Limit::None),
            // Whether it has an effect depends on what is not known.
            (true, None) => match longest.span() {
                Some(span) => Setting::stated(Limit::Unknown, span),
                None => Setting::default(Limit::None),
            },
            // The file may state it, and has none all the same.
            (false, _) => longest.limit_or(Limit::None).map(|_| Limit::None),
        });
        if capped
            && is_zero(longest)
            && let Some(span) = longest.span()
        {
            let text = "must be 1ms or more: the application does not start";
            remarks.extend(own.remark(RemarkKind::Invalid, ("exponentialMaxWaitDuration", Some(span)), text));
            settings.cap = Some(Setting::stated(Limit::Unknown, span));
        }
    }
}

fn jitter(factor: f64) -> Jitter {
    if factor > 0.0 {
        // Below 1: resilience4j refuses others.
        Jitter::Factor(Ratio::millionths((factor.min(1.0) * 1e6).round() as u32))
    } else {
        Jitter::None
    }
}

/// The time limiters of an application.
struct Limiters<'a> {
    instances: HashMap<&'a str, &'a Member>,
    configs: HashMap<&'a str, &'a Member>,
}

impl<'a> Limiters<'a> {
    fn of(root: &'a Node) -> Self {
        let of = |group| root.at(&["resilience4j", "timelimiter", group]).map(Node::index).unwrap_or_default();
        let mut instances = of("backends");
        instances.extend(of("instances"));
        Self { instances, configs: of("configs") }
    }

    /// Tells of the limiter with the name of an instance: it limits an attempt if it decorates the same call, which
    /// only the source code says.
    fn note(&self, name: &str, remarks: &mut Vec<Remark>) -> Option<()> {
        let instance = &self.instances.get(name)?.node;
        let base = instance.text_of("baseConfig").unwrap_or(DEFAULT);
        let places = [Some(instance), self.configs.get(base).map(|config| &config.node)];
        let of = |node| Fields::of(node, format!("resilience4j.timelimiter.{name}")).take("timeoutDuration");
        let field = places.into_iter().flatten().find_map(of)?;
        let limit = field.duration(remarks, units::spring, "2s").known()?;
        let text = format!("limits an attempt to {}, if it decorates the same call", Compact(limit.value));
        remarks.push(field.remark(RemarkKind::Note, text));
        Some(())
    }
}
