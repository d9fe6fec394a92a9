//! Gateway API and Envoy Gateway.
//!
//! Read in gateway-api `apis/v1`, `apisx/v1alpha1` of version 1.4 and in Envoy Gateway's `api/v1alpha1` and
//! `internal/xds/translator` of version 1.7.
//!
//! | field | default | 0 | ignored | refused |
//! |---|---|---|---|---|
//! | `retry.attempts` | the implementation's | refused | in a `GRPCRoute` | below 1 |
//! | `retry.backoff` | the implementation's | at once | in a `GRPCRoute` | no length |
//! | `timeouts.request`, `timeouts.backendRequest` | the implementation's | no limit | in a `GRPCRoute` | `backendRequest` above `request` |
//! | `retryConstraint.budget` | 20 % of 10 s | no share | | above 100 %, below 1 s, above 1 h |
//! | `retryConstraint.minRetryRate` | 10 a second | refused | | below 1, above 1 h |
//! | `numRetries` of Envoy Gateway | 2 | no retry | | no whole number |
//! | `retryOn` | connections, and 503 | | `httpStatusCodes` without the trigger `retriable-status-codes` | |
//! | `baseInterval`, `maxInterval` | 25 ms, ten times the base | refused | | `maxInterval` below `baseInterval` |
//! | `perRetry.timeout` | that of the route | that of the route | | no length |
//! | `requestTimeout` | 15 s | no limit | | no length |
//! | `maxParallelRetries` | 1,024 | no retry passes | beside `retryBudget` | no whole number |
//! | `retryBudget` | none; `minRetryConcurrency` 3 | | | |
//!
//! A length has whole numbers and the units h, m, s and ms.

use core::time::Duration;

use stagger_core::Jitter;

use super::envoy::capped;
use super::http::{are_idempotent, repeats_unsafe};
use super::object::Object;
use crate::entry::{Entry, EntryKind, Found, Limit, Remark, RemarkKind, RetryBudget, Setting, Settings};
use crate::fields::{Field, Fields, whole};
use crate::format::Format;
use crate::tree::Node;
use crate::units;

/// Of Envoy Gateway, which is not Envoy's number.
const CONCURRENT_RETRIES: u32 = 1024;
const ENVOY_GATEWAY_RETRIES: u32 = 2;
const LEAST_RETRIES: u32 = 3;
const BASE: Duration = Duration::from_millis(25);
const ENVOY_TIMEOUT: Duration = Duration::from_secs(15);

pub(crate) fn read(object: &Object<'_>, entries: &mut Vec<Entry>) {
    match object.kind {
        "HTTPRoute" | "GRPCRoute" => rules(object, entries),
        "XBackendTrafficPolicy" => entries.extend(constraint(object)),
        _ => {}
    }
}

/// Parses a length of the Gateway API: up to four whole numbers with units.
fn length(text: &str) -> Option<Duration> {
    let is_known = |part: &str| {
        let unit = part.trim_start_matches(|digit: char| digit.is_ascii_digit());
        (1..=5).contains(&(part.len() - unit.len())) && ["h", "m", "s", "ms"].contains(&unit)
    };
    let mut parts = Vec::new();
    let mut start = 0;
    for (at, pair) in text.as_bytes().windows(2).enumerate() {
        if pair[0].is_ascii_alphabetic() && pair[1].is_ascii_digit() {
            parts.push(text.get(start..=at)?);
            start = at + 1;
        }
    }
    parts.push(text.get(start..)?);
    if parts.len() <= 4 && parts.into_iter().all(is_known) { units::go(text) } else { None }
}

/// Reads a length, of which zero is no limit.
fn limit(field: &Field<'_>, remarks: &mut Vec<Remark>) -> Found<Limit<Duration>> {
    let length = field.duration(remarks, length, "10s");
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
    let attempts = fields.read("attempts", |field| field.positive(remarks));
    entry.settings.attempts = attempts.map(|retries| retries.saturating_add(1)).limit();
    if let Some(field) = fields.take("backoff") {
        entry.settings.base = field.duration(remarks, length, "100ms").known();
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
    const SECOND: Duration = Duration::from_secs(1);
    const HOUR: Duration = Duration::from_secs(3_600);
    if let Some(field) = fields.take("budget") {
        let mut budget = field.fields();
        percent = budget.read("percent", |field| {
            field.parse(remarks, "a whole number from 0 to 100", |text| whole(text).filter(|&percent| percent <= 100))
        });
        period = budget.read("interval", |field| {
            let parse = |text: &str| length(text).filter(|length| (SECOND..=HOUR).contains(length));
            field.parse(remarks, "a length of time from 1s to 1h", parse)
        });
        budget.finish(remarks);
    }
    let (mut count, mut per) = (Found::Absent, Found::Absent);
    if let Some(field) = fields.take("minRetryRate") {
        let mut rate = field.fields();
        count = rate.read("count", |field| field.positive(remarks));
        per = rate.read("interval", |field| {
            let parse = |text: &str| length(text).filter(|length| !length.is_zero() && *length <= HOUR);
            field.parse(remarks, "a length of time above 0s, up to 1h", parse)
        });
        rate.finish(remarks);
        if count == Found::Absent || per == Found::Absent {
            // Half a rate has no default.
            (count, per) = (Found::Unknown(field.span()), Found::Unknown(field.span()));
        }
    }
    fields.finish(remarks);
    let share = (percent.or(20), period.or(Duration::from_secs(10)));
    let rate = (count.or(10), per.or(SECOND));
    if let ((Some(percent), Some(period)), (Some(count), Some(per))) = (share, rate) {
        let least_per_second = f64::from(count.value) / per.value.as_secs_f64();
        let ratio = f64::from(percent.value) / 100.0;
        let budget = RetryBudget::Ratio { ratio, least_per_second, period: period.value };
        entry.settings.budget = Some(Setting::stated(budget, field.span()));
    }
    Some(entry)
}

/// Reads a budget of Envoy Gateway, whose share is a fraction.
fn share_of_active(field: &Field<'_>, remarks: &mut Vec<Remark>) -> Option<Setting<RetryBudget>> {
    let mut fields = field.fields();
    let least = fields.count("minRetryConcurrency", remarks).or(LEAST_RETRIES)?.value;
    let mut percent = fields.take("percent")?.fields();
    let numerator = percent.count("numerator", remarks).known()?.value;
    let denominator = percent.read("denominator", |field| field.positive(remarks)).or(100)?.value;
    let ratio = f64::from(numerator) / f64::from(denominator);
    Some(Setting::stated(RetryBudget::ShareOfActive { ratio, least }, field.span()))
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
        // 0 is that of the route.
        let timeout = each.read("timeout", |field| limit(field, remarks)).flat();
        settings.attempt_timeout = timeout.filter(|timeout| timeout.value != Limit::None);
        if let Some(field) = each.take("backOff") {
            let mut backoff = field.fields();
            let above_zero = |text: &str| length(text).filter(|length| !length.is_zero());
            let wanted = "a length of time above zero, such as 100ms";
            base = backoff.read("baseInterval", |field| field.parse(remarks, wanted, above_zero));
            cap = backoff.read("maxInterval", |field| field.parse(remarks, wanted, above_zero));
            if let (Some(base), Some(cap)) = (base.or(BASE), cap.known())
                && cap.value < base.value
            {
                let text = "maxInterval is below baseInterval: Envoy refuses the policy";
                remarks.push(field.remark(RemarkKind::Invalid, text));
            }
            backoff.finish(remarks);
        }
        each.finish(remarks);
    }
    settings.base = base.or(BASE);
    settings.cap = capped(settings.base, cap);
    settings.multiplier = Some(Setting::default(2.0));
    settings.jitter = Some(Setting::default(Jitter::Full));
    // Without conditions, 503 is retried, whatever the method.
    entry.may_repeat_unsafe = Some(true);
    if let Some(field) = fields.take("retryOn") {
        let mut on = field.fields();
        let triggers = on.take("triggers");
        let is_unknown = triggers.as_ref().is_some_and(Field::has_unknown);
        let triggers = triggers.map(|field| field.words()).unwrap_or_default();
        let mut codes = Vec::new();
        if let Some(field) = on.take("httpStatusCodes") {
            if triggers.contains(&"retriable-status-codes") {
                codes = field.words();
            } else if !is_unknown {
                let text = "has no effect without `retriable-status-codes` in triggers";
                remarks.push(field.remark(RemarkKind::NoEffect, text));
            }
        }
        let is_unsafe = repeats_unsafe(&[triggers, codes].concat());
        entry.may_repeat_unsafe = if is_unknown && !is_unsafe { None } else { Some(is_unsafe) };
        on.finish(remarks);
    }
    fields.unmapped(&[("numAttemptsPerPriority", "how many attempts go to one priority of hosts")], remarks);
    fields.finish(remarks);
    let mut timeout = Found::Absent;
    if let Some(http) = spec.at(&["timeout", "http"]) {
        timeout = Fields::of(http, "spec.timeout.http").read("requestTimeout", |field| limit(field, remarks));
    }
    settings.timeout = Some(timeout.flat_or(Limit::At(ENVOY_TIMEOUT)));
    let breaker = spec_fields.take("circuitBreaker");
    let share = breaker.as_ref().and_then(|breaker| breaker.fields().take("retryBudget"));
    settings.budget = match share {
        Some(share) => share_of_active(&share, remarks),
        None => {
            let concurrent = breaker.map_or(Found::Absent, |field| field.fields().count("maxParallelRetries", remarks));
            concurrent.map(RetryBudget::Concurrent).or(RetryBudget::Concurrent(CONCURRENT_RETRIES))
        }
    };
    if let Some(Setting { value: RetryBudget::Concurrent(0), origin }) = settings.budget {
        settings.attempts = Some(Setting { value: Limit::At(1), origin });
        remarks.push(field.remark(RemarkKind::NoEffect, "maxParallelRetries: 0 lets no retry pass"));
    }
    entries.push(entry);
}
