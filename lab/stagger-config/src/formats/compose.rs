//! Docker Compose: `restart`, `deploy.restart_policy` and `healthcheck`.
//!
//! Read in moby's `restartmanager.go`, `hostconfig.go`, `health.go` and `container.go`, in `getRestartPolicy` of
//! Compose, in compose-go's `template.go` and schema, and in swarmkit's defaults; Docker Engine 29. `${X:-y}`,
//! `${X-y}` have defaults; `$X`, `${X}`, `${X:?e}`, `${X:+y}` none.
//!
//! | field | default | 0, empty | ignored | refused |
//! |---|---|---|---|---|
//! | `restart` | `no` | `on-failure:0`: no limit; empty: `no` | beside `deploy.restart_policy` | other words, a number beside other words |
//! | `restart_policy.condition` | `any`, in Swarm; `docker compose up`: `no` | | | other words |
//! | `restart_policy.max_attempts` | no limit | 0: no limit | | no whole number; by `docker compose up`, beside `any` |
//! | `restart_policy.delay` | 5 s, in Swarm | 0: at once | by `docker compose up` | no length |
//! | `healthcheck.interval`, `timeout` | 30 s | 0: the default | with `disable` or `NONE` | below 1 ms |
//! | `healthcheck.retries` | 3 | 0: the default | with `disable` or `NONE` | no whole number |
//! | `extends`, `include` | | | | not read, and named |

use core::time::Duration;

use stagger_core::Jitter;

use crate::entry::{Entry, EntryKind, Found, Limit, Remark, RemarkKind, Setting, Settings};
use crate::fields::{Field, Fields, shortened, whole};
use crate::format::Format;
use crate::tree::Node;
use crate::units;

const FIRST_RESTART: Duration = Duration::from_millis(100);
const LONGEST_RESTART: Duration = Duration::from_secs(60);
/// Of Swarm.
const DEPLOYED_DELAY: Duration = Duration::from_secs(5);
const HEALTH_INTERVAL: Duration = Duration::from_secs(30);
const HEALTH_TIMEOUT: Duration = Duration::from_secs(30);
const HEALTH_RETRIES: u32 = 3;

pub(crate) fn is_compose(document: &Node) -> bool {
    let services = document.get("services").map(Node::members).unwrap_or_default();
    services.iter().any(|service| ["image", "build", "extends"].iter().any(|name| service.node.get(name).is_some()))
}

pub(crate) fn read(document: &Node) -> Vec<Entry> {
    let mut entries = Vec::new();
    if let Some(include) = Fields::of(document, "").take("include") {
        let remark = include.remark(RemarkKind::NotRead, "what the included files say is not read");
        entries.push(unread(&include, remark));
    }
    for service in document.get("services").map(Node::members).unwrap_or_default() {
        let mut fields = Fields::of(&service.node, format!("services.{}", service.key));
        let policy = fields.take("deploy").and_then(|deploy| deploy.fields().take("restart_policy"));
        let plain = fields.take("restart");
        let mut restart = match (policy, plain) {
            (Some(policy), plain) => Some(deployed(&policy, plain.as_ref())),
            (None, Some(plain)) => restarted(&plain),
            (None, None) => None,
        };
        let is_restarted = |entry: &Entry| {
            let attempts = entry.settings.attempts;
            attempts.is_some_and(|attempts| !matches!(attempts.value, Limit::At(1) | Limit::Unknown))
        };
        if let (Some(entry), Some(depends_on)) = (&mut restart, fields.take("depends_on"))
            && is_restarted(entry)
        {
            entry.remarks.extend(unhealthy(&depends_on));
        }
        if let Some(extends) = fields.take("extends") {
            let service = extends.fields().text("service").or(extends.text()).unwrap_or_default();
            let text = format!("what service `{}` says may hold here as well, and is not read", shortened(service));
            let remark = extends.remark(RemarkKind::NotRead, text);
            match &mut restart {
                Some(entry) => entry.remarks.push(remark),
                None => entries.push(unread(&extends, remark)),
            }
        }
        entries.extend(restart);
        entries.extend(fields.take("healthcheck").and_then(|field| health(&field)));
    }
    entries
}

/// Returns an entry for what is not read.
fn unread(field: &Field<'_>, remark: Remark) -> Entry {
    let mut entry = Entry::new(Format::Compose, EntryKind::Unread, field.path.clone(), field.span());
    entry.remarks.push(remark);
    entry
}

/// Says for which services a container does not wait until they are healthy.
fn unhealthy(depends_on: &Field<'_>) -> Option<Remark> {
    let listed = depends_on.node.items().iter().filter_map(Node::text);
    let mapped = depends_on
        .node
        .members()
        .iter()
        .filter(|member| member.node.text_of("condition").unwrap_or("service_started") == "service_started");
    let names: Vec<_> = listed.chain(mapped.map(|member| &*member.key)).collect();
    let text = format!("is started before {} is ready, and restarted until it is", names.join(" or "));
    if names.is_empty() { None } else { Some(depends_on.remark(RemarkKind::Hazard, text)) }
}

fn engine_delays(settings: &mut Settings) {
    settings.base = Some(Setting::default(FIRST_RESTART));
    settings.cap = Some(Setting::default(Limit::At(LONGEST_RESTART)));
    settings.multiplier = Some(Setting::default(2.0));
    settings.jitter = Some(Setting::default(Jitter::None));
}

fn restarted(field: &Field<'_>) -> Option<Entry> {
    let mut entry = Entry::new(Format::Compose, EntryKind::Restart, field.path.clone(), field.span());
    if !field.says(&mut entry.remarks) {
        entry.settings.attempts = Some(Setting::stated(Limit::Unknown, field.span()));
        return Some(entry);
    }
    let limit = match field.text()? {
        "no" | "false" | "" => return None,
        "always" | "unless-stopped" | "on-failure" => Limit::None,
        text => match text.strip_prefix("on-failure:").map(|number| (number, whole(number))) {
            Some((_, Some(0))) => Limit::None,
            // It counts restarts.
            Some((_, Some(restarts))) => Limit::At(restarts.saturating_add(1)),
            // The engine refuses what is below 0.
            Some((number, None)) if !number.starts_with('-') => {
                let text = format!("`{}` is no whole number: Compose reads 0, which is no limit", shortened(number));
                entry.remarks.push(field.remark(RemarkKind::Invalid, text));
                Limit::None
            }
            _ => {
                let text = shortened(text);
                let text = format!(
                    "`{text}` is not a restart policy; use no, always, unless-stopped, on-failure or on-failure:N"
                );
                entry.remarks.push(field.remark(RemarkKind::Invalid, text));
                return Some(entry);
            }
        },
    };
    entry.settings.attempts = Some(Setting::stated(limit, field.span()));
    engine_delays(&mut entry.settings);
    entry.remarks.push(field.remark(
        RemarkKind::Note,
        "the delays begin again at 100ms once the container has run for 10s, so one that lives a little longer \
         restarts for ever at that pace",
    ));
    Some(entry)
}

fn deployed(field: &Field<'_>, plain: Option<&Field<'_>>) -> Entry {
    let mut entry = Entry::new(Format::Compose, EntryKind::Restart, field.path.clone(), field.span());
    let mut fields = field.fields();
    let remarks = &mut entry.remarks;
    if let Some(plain) = plain {
        remarks.push(plain.remark(RemarkKind::NoEffect, "deploy.restart_policy takes its place"));
    }
    let condition_text = field.node.text_of("condition");
    let condition = fields.read("condition", |field| field.parse(remarks, "none, on-failure or any", condition));
    let is_on_failure = condition_text == Some("on-failure");
    let attempts = fields.count("max_attempts", remarks);
    if let (Found::Known(Setting { value: 1.., .. }), Some(Setting { value: true, .. })) = (attempts, condition.known())
        && !is_on_failure
    {
        let text = "docker compose up refuses max_attempts with a condition other than on-failure";
        remarks.push(field.remark(RemarkKind::Note, text));
    }
    let attempts = attempts.map(|restarts| match restarts {
        0 => Limit::None,
        restarts => Limit::At(restarts.saturating_add(1)),
    });
    let attempts = attempts.flat_or(Limit::None);
    entry.settings.attempts = Some(match condition.or(true) {
        Some(Setting { value: true, .. }) => attempts,
        Some(_) => Setting::stated(Limit::At(1), field.span()),
        None => Setting { value: Limit::Unknown, ..attempts },
    });
    let delay = fields.duration("delay", remarks, units::go, "5s");
    if let Some(delay) = delay.or(DEPLOYED_DELAY) {
        entry.settings = core::mem::take(&mut entry.settings).constant(delay);
    }
    let up = if condition == Found::Absent {
        "docker compose up restarts nothing without a condition"
    } else {
        "docker compose up takes the condition and max_attempts alone, and waits from 100ms on"
    };
    remarks.push(field.remark(RemarkKind::Note, format!("the delay is that of Swarm; {up}")));
    fields.unmapped(&[("window", "how long to wait before a restart counts as successful")], remarks);
    fields.finish(remarks);
    entry
}

/// Returns whether a container is started again on this condition.
fn condition(text: &str) -> Option<bool> {
    match text {
        "none" | "no" => Some(false),
        "any" | "always" | "on-failure" | "unless-stopped" => Some(true),
        _ => None,
    }
}

fn health(field: &Field<'_>) -> Option<Entry> {
    let mut entry = Entry::new(Format::Compose, EntryKind::Probe, field.path.clone(), field.span());
    let mut fields = field.fields();
    let remarks = &mut entry.remarks;
    let is_disabled = Setting::value_or(fields.flag("disable", remarks).known(), false);
    let test = fields.take("test").map(|test| test.words()).unwrap_or_default();
    let is_none = test.first() == Some(&"NONE");
    if is_disabled || is_none {
        return None;
    }
    // The engine takes 0 for the default.
    const LEAST: Duration = Duration::from_millis(1);
    let mut length = |name, default| match fields.read(name, |field| {
        let found = field.duration(remarks, units::go, "30s");
        let is_refused = matches!(found, Found::Known(length) if !length.value.is_zero() && length.value < LEAST);
        if is_refused { field.refused(remarks, "1ms or more") } else { found }
    }) {
        Found::Known(Setting { value: Duration::ZERO, .. }) | Found::Absent => Found::Known(Setting::default(default)),
        found => found,
    };
    let interval = length("interval", HEALTH_INTERVAL);
    let timeout = length("timeout", HEALTH_TIMEOUT);
    let retries = match fields.count("retries", remarks) {
        Found::Known(Setting { value: 0, .. }) => Found::Absent,
        found => found,
    };
    entry.settings.attempts = Some(retries.limit_or(Limit::At(HEALTH_RETRIES)));
    entry.settings.attempt_timeout = timeout.limit();
    if let Some(interval) = interval.known() {
        entry.settings = core::mem::take(&mut entry.settings).constant(interval);
    }
    let starting = "applies while the container starts, when failures do not count";
    fields.unmapped(&[("start_period", starting), ("start_interval", starting)], remarks);
    fields.finish(remarks);
    Some(entry)
}
