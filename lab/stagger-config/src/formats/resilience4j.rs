//! resilience4j in an application of Spring: `resilience4j.retry`.
//!
//! Read in `RetryConfig`, `CommonRetryConfigurationProperties` and `IntervalFunction` of version 2.3.

use core::time::Duration;
use std::collections::HashMap;

use stagger_core::{Jitter, Ratio};

use crate::entry::{Entry, EntryKind, Limit, Origin, Remark, RemarkKind, RetryBudget, Setting};
use crate::fields::{Field, Fields, join};
use crate::format::Format;
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
#[derive(Clone, Copy, Default)]
struct Own {
    attempts: Option<Setting<u32>>,
    wait: Option<Setting<Duration>>,
    exponential: Option<Setting<bool>>,
    multiplier: Option<Setting<f64>>,
    longest: Option<Setting<Duration>>,
    randomized: Option<Setting<bool>>,
    factor: Option<Setting<f64>>,
}

impl Own {
    fn read(fields: &mut Fields<'_>, remarks: &mut Vec<Remark>) -> Self {
        let mut duration =
            |name: &str, remarks: &mut Vec<Remark>| fields.duration(name, remarks, units::spring, "500ms");
        let (wait, longest) = (duration("waitDuration", remarks), duration("exponentialMaxWaitDuration", remarks));
        Self {
            attempts: fields.read_any(&["maxAttempts", "maxRetryAttempts"], |field| field.count(remarks)),
            wait,
            exponential: fields.flag("enableExponentialBackoff", remarks),
            multiplier: fields.number("exponentialBackoffMultiplier", remarks),
            longest,
            randomized: fields.flag("enableRandomizedWait", remarks),
            factor: fields.number("randomizedWaitFactor", remarks),
        }
    }

    /// Whether the place sets something about delays without the wait that they need.
    fn lacks_wait(&self) -> bool {
        self.wait.is_none()
            && (self.exponential.is_some()
                || self.multiplier.is_some()
                || self.longest.is_some()
                || self.randomized.is_some())
    }

    fn or(self, base: Self) -> Self {
        Self {
            attempts: self.attempts.or(base.attempts),
            wait: self.wait.or(base.wait),
            exponential: self.exponential.or(base.exponential),
            multiplier: self.multiplier.or(base.multiplier),
            longest: self.longest.or(base.longest),
            randomized: self.randomized.or(base.randomized),
            factor: self.factor.or(base.factor),
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
    let mut found = Own::default();
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
        // Its own remarks belong to the configuration and would be told for each instance.
        let mut ignored = Vec::new();
        let mut fields = Fields::of(&config.node, format!("resilience4j.retry.configs.{name}"));
        found = found.or(Own::read(&mut fields, &mut ignored));
        match fields.text("baseConfig") {
            Some(next) if next != name => name = next.to_owned(),
            _ => break,
        }
    }
    found
}

fn apply(own: Own, entry: &mut Entry) {
    let (settings, remarks) = (&mut entry.settings, &mut entry.remarks);
    let mut ineffective = |field: &str, origin: Option<Origin>, text: &str| {
        if let Some(Origin::Stated(span)) = origin {
            let path = join(&entry.path, field);
            remarks.push(Remark { kind: RemarkKind::NoEffect, path, span, text: text.to_owned() });
        }
    };
    settings.attempts = Some(own.attempts.unwrap_or(Setting::default(ATTEMPTS)).map(Limit::At));
    settings.budget = Some(Setting::default(RetryBudget::Unlimited));
    let is_exponential = Setting::value_or(own.exponential, false);
    let is_randomized = Setting::value_or(own.randomized, false);
    let without_wait = own.lacks_wait();
    if without_wait {
        // One remark is enough, at the first of them.
        let (field, origin) = if let Some(flag) = own.exponential {
            ("enableExponentialBackoff", Some(flag.origin))
        } else if let Some(multiplier) = own.multiplier {
            ("exponentialBackoffMultiplier", Some(multiplier.origin))
        } else {
            ("enableRandomizedWait", own.randomized.map(|flag| flag.origin))
        };
        ineffective(field, origin, "has no effect without waitDuration: the wait stays 500ms");
    }
    if !is_exponential {
        let text = "has no effect without enableExponentialBackoff: true: the wait does not grow";
        ineffective("exponentialBackoffMultiplier", own.multiplier.map(|number| number.origin), text);
        ineffective("exponentialMaxWaitDuration", own.longest.map(|length| length.origin), text);
    }
    if !is_randomized {
        let text = "has no effect without enableRandomizedWait: true";
        ineffective("randomizedWaitFactor", own.factor.map(|number| number.origin), text);
    }
    let wait = own.wait.unwrap_or(Setting::default(WAIT));
    settings.base = Some(wait);
    settings.jitter = Some(if is_randomized && !without_wait {
        let factor = own.factor.unwrap_or(Setting::default(RANDOMIZED));
        Setting {
            value: Jitter::Factor(share(factor.value)),
            origin: match own.randomized {
                Some(flag) => flag.origin,
                None => factor.origin,
            },
        }
    } else {
        Setting::default(Jitter::None)
    });
    if is_exponential && !without_wait {
        settings.multiplier = Some(own.multiplier.unwrap_or(Setting::default(MULTIPLIER)));
        settings.cap = Some(Setting::or_unlimited(own.longest));
    } else {
        settings.multiplier = Some(Setting::default(1.0));
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
        field.duration(remarks, units::spring, "2s").map(|length| length.map(Limit::At))
    }
}
