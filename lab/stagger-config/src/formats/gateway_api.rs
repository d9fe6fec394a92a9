//! Gateway API and Envoy Gateway.
//!
//! Read in gateway-api `apis/v1`, `apisx/v1alpha1` and in Envoy Gateway's `api/v1alpha1`.

use core::time::Duration;

use stagger_core::Jitter;

use super::http::{are_idempotent, repeats_unsafe};
use super::object::Object;
use crate::entry::{Entry, EntryKind, Limit, Remark, RemarkKind, RetryBudget, Setting};
use crate::fields::{Field, Fields};
use crate::format::Format;
use crate::tree::Node;
use crate::units;

/// Of Envoy Gateway, which is not Envoy's number.
const CONCURRENT_RETRIES: u32 = 1024;
const ENVOY_GATEWAY_RETRIES: u32 = 2;
const BASE: Duration = Duration::from_millis(25);
const CAP_FACTOR: u32 = 10;
const ENVOY_TIMEOUT: Duration = Duration::from_secs(15);

pub(crate) fn read(object: &Object<'_>, entries: &mut Vec<Entry>) {
    match object.kind {
        "HTTPRoute" | "GRPCRoute" => rules(object, entries),
        "XBackendTrafficPolicy" => entries.extend(constraint(object)),
        _ => {}
    }
}

/// Reads a length, of which zero is no limit.
fn limit(field: &Field<'_>, remarks: &mut Vec<Remark>) -> Option<Setting<Limit<Duration>>> {
    let length = field.duration(remarks, units::go, "10s")?;
    Some(length.map(|length| if length.is_zero() { Limit::None } else { Limit::At(length) }))
}

fn rules(object: &Object<'_>, entries: &mut Vec<Entry>) {
    for (at, rule) in object.node.at(&["spec", "rules"]).map(Node::items).unwrap_or_default().iter().enumerate() {
        let mut fields = Fields::of(rule, format!("{}.rules[{at}]", object.path()));
        let (timeouts, retry) = (fields.take("timeouts"), fields.take("retry"));
        let Some(place) = retry.as_ref().or(timeouts.as_ref()) else { continue };
        let kind = if retry.is_some() { EntryKind::Call } else { EntryKind::Timeout };
        let mut entry = Entry::new(Format::GatewayApi, kind, fields.path.clone(), place.span());
        if let Some(field) = timeouts {
            let mut timeouts = field.fields();
            entry.settings.timeout = timeouts.read("request", |field| limit(field, &mut entry.remarks));
            entry.settings.attempt_timeout = timeouts.read("backendRequest", |field| limit(field, &mut entry.remarks));
            timeouts.finish(&mut entry.remarks);
        }
        if let Some(field) = retry {
            retries(&field, &mut entry);
            let conditions = rule.get("matches").map(Node::items).unwrap_or_default();
            if are_idempotent(conditions, |condition| condition.get("method")) {
                entry.may_repeat_unsafe = Some(false);
            }
        }
        entries.push(entry);
    }
}

fn retries(field: &Field<'_>, entry: &mut Entry) {
    let remarks = &mut entry.remarks;
    let mut fields = field.fields();
    let attempts = fields.count("attempts", remarks);
    entry.settings.attempts = attempts.map(|attempts| attempts.map(|retries| Limit::At(retries.saturating_add(1))));
    if let Some(field) = fields.take("backoff") {
        entry.settings.base = field.duration(remarks, units::go, "100ms");
        remarks.push(
            field.remark(RemarkKind::Note, "is the least delay: growth, cap and jitter are the implementation's"),
        );
    }
    let codes = fields.take("codes").map(|field| field.words()).unwrap_or_default();
    entry.may_repeat_unsafe = Some(codes.iter().any(|code| code.parse::<u16>().is_ok_and(|code| code >= 500)));
    fields.finish(remarks);
}

fn constraint(object: &Object<'_>) -> Option<Entry> {
    let spec = object.node.get("spec")?;
    let field = Fields::of(spec, object.path()).take("retryConstraint")?;
    let mut entry = Entry::new(Format::GatewayApi, EntryKind::Limit, field.path.clone(), field.span());
    let remarks = &mut entry.remarks;
    let mut fields = field.fields();
    let (mut percent, mut period) = (20.0, Duration::from_secs(10));
    if let Some(field) = fields.take("budget") {
        let mut budget = field.fields();
        percent = Setting::value_or(budget.number("percent", remarks), percent);
        let interval = budget.duration("interval", remarks, units::go, "10s");
        period = Setting::value_or(interval, period);
        budget.finish(remarks);
    }
    let (mut count, mut per) = (10.0, Duration::from_secs(1));
    if let Some(field) = fields.take("minRetryRate") {
        let mut rate = field.fields();
        count = Setting::value_or(rate.number("count", remarks), count);
        let interval = rate.duration("interval", remarks, units::go, "1s");
        per = Setting::value_or(interval, per).max(Duration::from_nanos(1));
        rate.finish(remarks);
    }
    fields.finish(remarks);
    let least_per_second = count / per.as_secs_f64();
    let budget = RetryBudget::Ratio { ratio: percent / 100.0, least_per_second, period };
    entry.settings.budget = Some(Setting::stated(budget, field.span()));
    Some(entry)
}

/// Reads `BackendTrafficPolicy` of Envoy Gateway.
pub(crate) fn read_envoy_gateway(object: &Object<'_>, entries: &mut Vec<Entry>) {
    if object.kind != "BackendTrafficPolicy" {
        return;
    }
    let Some(spec) = object.node.get("spec") else { return };
    let mut spec_fields = Fields::of(spec, format!("{}.spec", object.path()));
    let Some(field) = spec_fields.take("retry") else { return };
    let mut entry = Entry::new(Format::EnvoyGateway, EntryKind::Call, field.path.clone(), field.span());
    let (settings, remarks) = (&mut entry.settings, &mut entry.remarks);
    let mut fields = field.fields();
    let retries = fields.count("numRetries", remarks);
    let retries = retries.unwrap_or(Setting::default(ENVOY_GATEWAY_RETRIES));
    settings.attempts = Some(retries.map(|retries| Limit::At(retries.saturating_add(1))));
    let (mut base, mut cap) = (None, None);
    if let Some(field) = fields.take("perRetry") {
        let mut each = field.fields();
        settings.attempt_timeout = each.read("timeout", |field| limit(field, remarks));
        if let Some(field) = each.take("backOff") {
            let mut backoff = field.fields();
            base = backoff.duration("baseInterval", remarks, units::go, "100ms");
            cap = backoff.duration("maxInterval", remarks, units::go, "1s");
            backoff.finish(remarks);
        }
        each.finish(remarks);
    }
    let base = base.unwrap_or(Setting::default(BASE));
    settings.base = Some(base);
    settings.cap = Some(cap.unwrap_or(Setting::default(base.value.saturating_mul(CAP_FACTOR))).map(Limit::At));
    settings.multiplier = Some(Setting::default(2.0));
    settings.jitter = Some(Setting::default(Jitter::Full));
    if let Some(field) = fields.take("retryOn") {
        let mut on = field.fields();
        let triggers = on.take("triggers").map(|field| field.words()).unwrap_or_default();
        let codes = on.take("httpStatusCodes").map(|field| field.words()).unwrap_or_default();
        entry.may_repeat_unsafe = Some(repeats_unsafe(&[triggers, codes].concat()));
        on.finish(remarks);
    }
    fields.unmapped(&[("numAttemptsPerPriority", "how many attempts go to one priority of hosts")], remarks);
    fields.finish(remarks);
    let mut timeout = Setting::default(Limit::At(ENVOY_TIMEOUT));
    if let Some(http) = spec.at(&["timeout", "http"])
        && let Some(field) = Fields::of(http, "spec.timeout.http").take("requestTimeout")
        && let Some(stated) = limit(&field, remarks)
    {
        timeout = stated;
    }
    settings.timeout = Some(timeout);
    let concurrent = spec_fields.read("circuitBreaker", |field| field.fields().count("maxParallelRetries", remarks));
    let concurrent = concurrent.unwrap_or(Setting::default(CONCURRENT_RETRIES));
    settings.budget = Some(concurrent.map(RetryBudget::Concurrent));
    entries.push(entry);
}
