//! resilience4j in an application of Spring: `resilience4j.retry`.
//!
//! Read in `RetryConfig`, `CommonRetryConfigurationProperties` and `IntervalFunction` of version 2.3. `${X:y}` has a
//! default, `${X}` is another property of the same file, or not known.
//!
//! | field | default | ignored | refused |
//! |---|---|---|---|
//! | `maxAttempts` | 3 | | 0 |
//! | `waitDuration` | 500 ms | | no length |
//! | `enableExponentialBackoff` | false | without `waitDuration` | |
//! | `exponentialBackoffMultiplier` | 1.5 | without `enableExponentialBackoff` | below 1 |
//! | `exponentialMaxWaitDuration` | no limit | without `enableExponentialBackoff` | no length |
//! | `enableRandomizedWait` | false | without `waitDuration` | |
//! | `randomizedWaitFactor` | 0.5 | without `enableRandomizedWait` | below 0, from 1 on |
//! | `baseConfig` | `default` | | a name that is not there |

use core::time::Duration;
use std::collections::HashMap;

use stagger_core::{Jitter, Ratio};

use crate::entry::{Entry, EntryKind, Found, Limit, Remark, RemarkKind, RetryBudget, Setting};
use crate::fields::{Field, Fields, join};
use crate::format::Format;
use crate::position::Span;
use crate::tree::{Member, Node};
use crate::units;

const ATTEMPTS: u32 = 3;
const WAIT: Duration = Duration::from_millis(500);
const MULTIPLIER: f64 = 1.5;
const RANDOMIZED: f64 = 0.5;
/// How many configurations may inherit from one another.
const MAX_BASES: usize = 20;

pub(crate) fn is_application(root: &Node) -> bool {
    root.at(&["resilience4j", "retry"]).is_some()
}

/// The settings of one place, which an instance inherits.
#[derive(Clone, Copy)]
struct Own {
    attempts: Found<u32>,
    wait: Found<Duration>,
    exponential: Found<bool>,
    multiplier: Found<f64>,
    longest: Found<Duration>,
    randomized: Found<bool>,
    factor: Found<f64>,
}

impl Own {
    const NOTHING: Self = Self {
        attempts: Found::Absent,
        wait: Found::Absent,
        exponential: Found::Absent,
        multiplier: Found::Absent,
        longest: Found::Absent,
        randomized: Found::Absent,
        factor: Found::Absent,
    };

    fn read(fields: &mut Fields<'_>, remarks: &mut Vec<Remark>) -> Self {
        let mut duration =
            |name: &str, remarks: &mut Vec<Remark>| fields.duration(name, remarks, units::spring, "500ms");
        let (wait, longest) = (duration("waitDuration", remarks), duration("exponentialMaxWaitDuration", remarks));
        Self {
            attempts: fields.read_any(&["maxAttempts", "maxRetryAttempts"], |field| field.positive(remarks)),
            wait,
            exponential: fields.flag("enableExponentialBackoff", remarks),
            multiplier: fields.read("exponentialBackoffMultiplier", |field| {
                field.parse(remarks, "a number of 1 or more", |text| text.parse().ok().filter(|&factor| factor >= 1.0))
            }),
            longest,
            randomized: fields.flag("enableRandomizedWait", remarks),
            factor: fields.read("randomizedWaitFactor", |field| {
                let parse = |text: &str| text.parse().ok().filter(|factor| (0.0..1.0).contains(factor));
                field.parse(remarks, "a number from 0 up to 1, which it does not reach", parse)
            }),
        }
    }

    /// Whether the place sets something about delays without the wait that they need.
    fn lacks_wait(&self) -> bool {
        self.wait == Found::Absent
            && (self.exponential != Found::Absent
                || self.multiplier != Found::Absent
                || self.longest != Found::Absent
                || self.randomized != Found::Absent)
    }

    fn or(self, base: Self) -> Self {
        Self {
            attempts: self.attempts.or_else(base.attempts),
            wait: self.wait.or_else(base.wait),
            exponential: self.exponential.or_else(base.exponential),
            multiplier: self.multiplier.or_else(base.multiplier),
            longest: self.longest.or_else(base.longest),
            randomized: self.randomized.or_else(base.randomized),
            factor: self.factor.or_else(base.factor),
        }
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
            let settings = own.or(inherited(&configs, base.as_ref(), &mut entry.remarks));
            apply(settings, &mut entry);
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
            entry.settings.attempt_timeout = limiters.time_limit(&instance.key, &mut entry.remarks);
            entries.push(entry);
        }
    }
    entries
}

/// Returns the settings of the named configuration and of those that it is based on.
fn inherited(configs: &HashMap<&str, &Member>, base: Option<&Field<'_>>, remarks: &mut Vec<Remark>) -> Own {
    let mut name = base.and_then(Field::text).unwrap_or("default").to_owned();
    let mut found = Own::NOTHING;
    for _ in 0..MAX_BASES {
        let Some(config) = configs.get(&*name) else {
            if let Some(field) = base.filter(|field| field.text() == Some(&name)) {
                remarks.push(field.remark(
                    RemarkKind::Invalid,
                    format!("there is no configuration `{name}`: the application does not start"),
                ));
            }
            break;
        };
        let mut fields = Fields::of(&config.node, format!("resilience4j.retry.configs.{name}"));
        found = found.or(Own::read(&mut fields, remarks));
        match fields.text("baseConfig") {
            Some(next) if next != name => name = next.to_owned(),
            _ => break,
        }
    }
    found
}

fn apply(own: Own, entry: &mut Entry) {
    let (settings, remarks) = (&mut entry.settings, &mut entry.remarks);
    let mut ineffective = |field: &str, span: Option<Span>, text: &str| {
        if let Some(span) = span {
            let path = join(&entry.path, field);
            remarks.push(Remark { kind: RemarkKind::NoEffect, path, span, text: text.to_owned() });
        }
    };
    settings.attempts = Some(own.attempts.limit_or(Limit::At(ATTEMPTS)));
    settings.budget = Some(Setting::default(RetryBudget::Unlimited));
    let without_wait = own.lacks_wait();
    if without_wait {
        // One remark is enough, at the first of them.
        let stated = [
            ("enableExponentialBackoff", own.exponential.span()),
            ("exponentialBackoffMultiplier", own.multiplier.span()),
            ("enableRandomizedWait", own.randomized.span()),
        ];
        if let Some((field, span)) = stated.into_iter().find(|(_, span)| span.is_some()) {
            ineffective(field, span, "has no effect without waitDuration: the wait stays 500ms");
        }
    }
    let is_exponential = own.exponential.or(false);
    let is_randomized = own.randomized.or(false);
    if let Some(Setting { value: false, .. }) = is_exponential {
        let text = "has no effect without enableExponentialBackoff: true: the wait does not grow";
        ineffective("exponentialBackoffMultiplier", own.multiplier.span(), text);
        ineffective("exponentialMaxWaitDuration", own.longest.span(), text);
    }
    if let Some(Setting { value: false, .. }) = is_randomized {
        let text = "has no effect without enableRandomizedWait: true";
        ineffective("randomizedWaitFactor", own.factor.span(), text);
    }
    settings.base = own.wait.or(WAIT);
    if without_wait {
        settings.jitter = Some(Setting::default(Jitter::None));
        settings.multiplier = Some(Setting::default(1.0));
        return;
    }
    settings.jitter = match is_randomized {
        Some(Setting { value: true, origin }) => {
            let factor = own.factor.or(RANDOMIZED);
            factor.map(|factor| Setting { value: Jitter::Factor(share(factor.value)), origin })
        }
        Some(_) => Some(Setting::default(Jitter::None)),
        None => None,
    };
    match is_exponential {
        Some(Setting { value: true, .. }) => {
            settings.multiplier = own.multiplier.or(MULTIPLIER);
            settings.cap = Some(own.longest.limit_or(Limit::None));
        }
        Some(_) => settings.multiplier = Some(Setting::default(1.0)),
        None => {}
    }
}

fn share(factor: f64) -> Ratio {
    // 0 to 1: resilience4j refuses others.
    Ratio::millionths((factor.clamp(0.0, 1.0) * 1e6).round() as u32)
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

    /// Returns the limit of the limiter with a name, which limits an attempt if it decorates the same call.
    fn time_limit(&self, name: &str, remarks: &mut Vec<Remark>) -> Option<Setting<Limit<Duration>>> {
        let instance = &self.instances.get(name)?.node;
        let base = instance.text_of("baseConfig").unwrap_or("default");
        let base = self.configs.get(base).map(|config| &config.node);
        let of = |node| Fields::of(node, format!("resilience4j.timelimiter.{name}")).take("timeoutDuration");
        let field = match of(instance) {
            Some(field) => field,
            None => of(base?)?,
        };
        remarks.push(field.remark(RemarkKind::Note, "limits an attempt only if it decorates the same call"));
        field.duration(remarks, units::spring, "2s").limit()
    }
}
