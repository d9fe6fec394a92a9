//! Docker Compose: `restart`, `deploy.restart_policy` and `healthcheck`.
//!
//! Read in moby's `restartmanager.go` and in the Compose specification.

use core::time::Duration;

use stagger_core::Jitter;

use crate::entry::{Entry, EntryKind, Limit, Remark, RemarkKind, Setting, Settings};
use crate::fields::{Field, Fields, whole};
use crate::format::Format;
use crate::tree::Node;
use crate::units;

const FIRST_RESTART: Duration = Duration::from_millis(100);
const LONGEST_RESTART: Duration = Duration::from_secs(60);
const HEALTH_INTERVAL: Duration = Duration::from_secs(30);
const HEALTH_TIMEOUT: Duration = Duration::from_secs(30);
const HEALTH_RETRIES: u32 = 3;

pub(crate) fn is_compose(document: &Node) -> bool {
    let services = document.get("services").map(Node::members).unwrap_or_default();
    services.iter().any(|service| ["image", "build", "extends"].iter().any(|name| service.node.get(name).is_some()))
}

pub(crate) fn read(document: &Node) -> Vec<Entry> {
    let mut entries = Vec::new();
    for service in document.get("services").map(Node::members).unwrap_or_default() {
        let mut fields = Fields::of(&service.node, format!("services.{}", service.key));
        let policy = fields.read("deploy", |deploy| deploy.fields().take("restart_policy"));
        let plain = fields.take("restart");
        let mut restart = match (policy, plain) {
            (Some(policy), plain) => Some(deployed(&policy, plain.as_ref())),
            (None, Some(plain)) => restarted(&plain),
            (None, None) => None,
        };
        if let (Some(entry), Some(depends_on)) = (&mut restart, fields.take("depends_on")) {
            entry.remarks.extend(unhealthy(&depends_on));
        }
        entries.extend(restart);
        entries.extend(fields.read("healthcheck", |field| health(field)));
    }
    entries
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
    let limit = match field.text()? {
        "no" | "false" => return None,
        "always" | "unless-stopped" | "on-failure" => Limit::None,
        text => match text.strip_prefix("on-failure:").and_then(whole) {
            // It counts restarts.
            Some(restarts) => Limit::At(restarts.saturating_add(1)),
            None => {
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
    let never = fields.text("condition") == Some("none");
    let attempts = fields.count("max_attempts", remarks);
    let attempts = attempts.map(|attempts| attempts.map(|restarts| Limit::At(restarts.saturating_add(1))));
    let unlimited = Setting::default(Limit::None);
    entry.settings.attempts =
        Some(if never { Setting::stated(Limit::At(1), field.span()) } else { attempts.unwrap_or(unlimited) });
    let delay = fields.duration("delay", remarks, units::go, "5s");
    entry.settings = core::mem::take(&mut entry.settings).constant(delay.unwrap_or(Setting::default(Duration::ZERO)));
    fields.unmapped(&[("window", "how long to wait before a restart counts as successful")], remarks);
    fields.finish(remarks);
    entry
}

fn health(field: &Field<'_>) -> Option<Entry> {
    let mut entry = Entry::new(Format::Compose, EntryKind::Probe, field.path.clone(), field.span());
    let mut fields = field.fields();
    let remarks = &mut entry.remarks;
    let is_disabled = Setting::value_or(fields.flag("disable", remarks), false);
    let test = fields.take("test").map(|test| test.words()).unwrap_or_default();
    let is_none = test.first() == Some(&"NONE");
    if is_disabled || is_none {
        return None;
    }
    let mut length = |name, default| {
        let found = fields.duration(name, remarks, units::go, "30s");
        found.unwrap_or(Setting::default(default))
    };
    let interval = length("interval", HEALTH_INTERVAL);
    let timeout = length("timeout", HEALTH_TIMEOUT);
    let retries = fields.count("retries", remarks).unwrap_or(Setting::default(HEALTH_RETRIES));
    entry.settings.attempts = Some(retries.map(Limit::At));
    entry.settings.attempt_timeout = Some(timeout.map(Limit::At));
    entry.settings = core::mem::take(&mut entry.settings).constant(interval);
    let starting = "applies while the container starts, when failures do not count";
    fields.unmapped(&[("start_period", starting), ("start_interval", starting)], remarks);
    fields.finish(remarks);
    Some(entry)
}
