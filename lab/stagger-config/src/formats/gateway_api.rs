//! Gateway API and Envoy Gateway.
//!
//! Read in gateway-api `apis/v1`, `apisx/v1alpha1` of version 1.4 and in Envoy Gateway's `api/v1alpha1` of version 1.7.
//!
//! | field | default | 0 | ignored |
//! |---|---|---|---|
//! | `retry.attempts`, `retry.backoff` | the implementation's | 0: no retry | in a `GRPCRoute` |
//! | `timeouts.request`, `timeouts.backendRequest` | the implementation's | 0: no limit | in a `GRPCRoute` |
//! | `retryConstraint` | 20 % of 10 s, and 10 a second | | |
//! | `numRetries` of Envoy Gateway | 2 | 0: no retry | |
//! | `baseInterval`, `maxInterval` | 25 ms, ten times the base | | |
//! | `requestTimeout` | 15 s | 0: no limit | |
//! | `maxParallelRetries` | 1,024 | | |

use core::time::Duration;

use stagger_core::Jitter;

use super::envoy::capped;
use super::http::{are_idempotent, repeats_unsafe};
use super::object::Object;
use crate::entry::{Entry, EntryKind, Found, Limit, Remark, RemarkKind, RetryBudget, Setting, Settings};
use crate::fields::{Field, Fields};
use crate::format::Format;
use crate::tree::Node;
use crate::units;

/// Of Envoy Gateway, which is not Envoy's number.
const CONCURRENT_RETRIES: u32 = 1024;
const ENVOY_GATEWAY_RETRIES: u32 = 2;
const BASE: Duration = Duration::from_millis(25);
const ENVOY_TIMEOUT: Duration = Duration::from_secs(15);

pub(crate) fn read(object: &Object<'_>, entries: &mut Vec<Entry>) {
    match object.kind {
        "HTTPRoute" | "GRPCRoute" => rules(object, entries),
        "XBackendTrafficPolicy" => entries.extend(constraint(object)),
        _ => {}
    }
}

/// Reads a length, of which zero is no limit.
fn limit(field: &Field<'_>, remarks: &mut Vec<Remark>) -> Found<Limit<Duration>> {
    let length = field.duration(remarks, units::go, "10s");
    length.map(|length| if length.is_zero() { Limit::None } else { Limit::At(length) })
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
            entry.settings.timeout = timeouts.read("request", |field| limit(field, &mut entry.remarks)).flat();
            entry.settings.attempt_timeout =
                timeouts.read("backendRequest", |field| limit(field, &mut entry.remarks)).flat();
            timeouts.finish(&mut entry.remarks);
            let of = |limit: Option<Setting<Limit<Duration>>>| limit.and_then(|limit| limit.value.at());
            if let (Some(all), Some(each)) = (of(entry.settings.timeout), of(entry.settings.attempt_timeout))
                && each > all
            {
                let text = "backendRequest is longer than request: the API server refuses the route";
                entry.remarks.push(field.remark(RemarkKind::Invalid, text));
            }
        }
        if object.kind == "GRPCRoute" {
            // It has neither of these fields.
            let fields = [rule.member("timeouts"), rule.member("retry")];
            entry.settings = Settings::default();
            entry.kind = EntryKind::Unread;
            entry.remarks = fields
                .into_iter()
                .flatten()
                .map(|member| {
                    let path = format!("{}.rules[{at}].{}", object.path(), member.key);
                    let field = Field { path, key_span: member.key_span, node: &member.node };
                    field.remark(RemarkKind::NoEffect, "a GRPCRoute has no field of this name")
                })
                .collect();
        } else if let Some(field) = retry {
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
    entry.settings.attempts = attempts.map(|retries| retries.saturating_add(1)).limit();
    if let Some(field) = fields.take("backoff") {
        entry.settings.base = field.duration(remarks, units::go, "100ms").known();
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
    let (mut percent, mut period) = (Found::Absent, Found::Absent);
    if let Some(field) = fields.take("budget") {
        let mut budget = field.fields();
        percent = budget.number("percent", remarks);
        period = budget.duration("interval", remarks, units::go, "10s");
        budget.finish(remarks);
    }
    let (mut count, mut per) = (Found::Absent, Found::Absent);
    if let Some(field) = fields.take("minRetryRate") {
        let mut rate = field.fields();
        count = rate.number("count", remarks);
        per = rate.duration("interval", remarks, units::go, "1s");
        rate.finish(remarks);
    }
    fields.finish(remarks);
    let share = (percent.or(20.0), period.or(Duration::from_secs(10)));
    let rate = (count.or(10.0), per.or(Duration::from_secs(1)));
    if let ((Some(percent), Some(period)), (Some(count), Some(per))) = (share, rate) {
        let per = per.value.max(Duration::from_nanos(1));
        let least_per_second = count.value / per.as_secs_f64();
        let budget = RetryBudget::Ratio { ratio: percent.value / 100.0, least_per_second, period: period.value };
        entry.settings.budget = Some(Setting::stated(budget, field.span()));
    }
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
    settings.attempts = Some(retries.retries_or(ENVOY_GATEWAY_RETRIES));
    let (mut base, mut cap) = (Found::Absent, Found::Absent);
    if let Some(field) = fields.take("perRetry") {
        let mut each = field.fields();
        settings.attempt_timeout = each.read("timeout", |field| limit(field, remarks)).flat();
        if let Some(field) = each.take("backOff") {
            let mut backoff = field.fields();
            base = backoff.duration("baseInterval", remarks, units::go, "100ms");
            cap = backoff.duration("maxInterval", remarks, units::go, "1s");
            backoff.finish(remarks);
        }
        each.finish(remarks);
    }
    settings.base = base.or(BASE);
    settings.cap = capped(settings.base, cap);
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
    let mut timeout = Found::Absent;
    if let Some(http) = spec.at(&["timeout", "http"]) {
        timeout = Fields::of(http, "spec.timeout.http").read("requestTimeout", |field| limit(field, remarks));
    }
    settings.timeout = Some(timeout.flat_or(Limit::At(ENVOY_TIMEOUT)));
    let concurrent = spec_fields.read("circuitBreaker", |field| field.fields().count("maxParallelRetries", remarks));
    settings.budget = concurrent.map(RetryBudget::Concurrent).or(RetryBudget::Concurrent(CONCURRENT_RETRIES));
    entries.push(entry);
}
