//! Linkerd: `ServiceProfile`, and annotations of services and routes.
//!
//! Read in the reference pages of versions 2.10 to 2.19; in `policy-controller/k8s/index/src/outbound/index` and
//! `policy-controller/grpc/src/outbound/http.rs`, which read and set annotated retries; in `profile_translator.go`;
//! and in
//! `exp-backoff`, `service-profiles` and `outbound/src/http` of the proxy.
//!
//! | field | default | 0 | ignored | refused |
//! |---|---|---|---|---|
//! | `isRetryable` of a profile | false | | | |
//! | `timeout` of a profile's route | no limit, 10 s before 2.9 | 0: no limit | | no length |
//! | `retryBudget` | 20 %, 10 a second, over 10 s | | without a route with `isRetryable` | without all three |
//! | `ttl` of a `retryBudget` | | | | below 1 s or above 60 s: no retry |
//! | `retry.linkerd.io/http`, `/grpc` | no status | | `/http` on a `GRPCRoute`, `/grpc` on an `HTTPRoute` | other words; a space |
//! | `retry.linkerd.io/limit` | 1 | 0: the default | | no whole number |
//! | `retry.linkerd.io/timeout` | no limit | 0: no limit | | without a unit, with a fraction |
//! | all annotations | no retry | | on others than services, routes, `EgressNetwork` | |
//! | delays of annotated retries | 25 to 250 ms, drawn up to twice that, at most 250 ms | | | |
//! | delays of a profile | at once | | | |
//!
//! Each of the three annotations turns retries on. An attempt that exceeds its time is retried whatever the statuses
//! are.

use core::time::Duration;

use stagger_core::Jitter;

use super::http::are_idempotent;
use super::object::Object;
use crate::entry::{Entry, EntryKind, Found, Limit, Remark, RemarkKind, RetryBudget, Setting, Settings};
use crate::fields::{Field, Fields, shortened};
use crate::format::Format;
use crate::tree::Node;
use crate::units;

const RATIO: f64 = 0.2;
const LEAST_PER_SECOND: f64 = 10.0;
const PERIOD: Duration = Duration::from_secs(10);
const ANNOTATED_RETRIES: u32 = 1;
/// Periods of a budget that a proxy takes, in seconds.
const PERIODS: core::ops::RangeInclusive<u64> = 1..=60;
/// Twice 25 ms: the jitter of 1 adds up to as much as the delay, but nothing above the longest one.
const LONGEST_FIRST: Duration = Duration::from_millis(50);
const LONGEST: Duration = Duration::from_millis(250);
/// Attempts whose delays the longest one does not cut.
const UNCUT: u32 = 4;

/// Retries at once, without a delay.
fn at_once(settings: &mut Settings) {
    settings.base = Some(Setting::default(Duration::ZERO));
    settings.jitter = Some(Setting::default(Jitter::None));
}

pub(crate) fn read_profile(object: &Object<'_>, entries: &mut Vec<Entry>) {
    let Some(spec) = object.node.get("spec") else { return };
    let mut spec_fields = Fields::of(spec, object.path());
    let mut remarks = Vec::new();
    let default = RetryBudget::Ratio { ratio: RATIO, least_per_second: LEAST_PER_SECOND, period: PERIOD };
    let mut budget = Some(Setting::default(default));
    // A proxy without a budget retries nothing.
    let mut is_off = false;
    if let Some(field) = spec_fields.take("retryBudget") {
        let mut fields = field.fields();
        let parts = ["retryRatio", "minRetriesPerSecond", "ttl"].map(|name| fields.take(name));
        let [ratio, least, ttl] = &parts;
        let mut number = |part: &Option<Field<'_>>| part.as_ref()?.number(&mut remarks).known();
        let (ratio, least) = (number(ratio), number(least));
        let period = ttl.as_ref().and_then(|ttl| ttl.duration(&mut remarks, units::go, "10s").known());
        if parts.iter().any(Option::is_none) {
            let text = "needs retryRatio, minRetriesPerSecond and ttl, without which Linkerd refuses the profile";
            remarks.push(field.remark(RemarkKind::Invalid, text));
        }
        if let (Some(ttl), Some(period)) = (ttl, period)
            && !PERIODS.contains(&period.value.as_secs())
        {
            remarks.push(ttl.remark(RemarkKind::Invalid, "must be from 1s to 60s: a proxy retries nothing without it"));
            is_off = true;
        }
        fields.finish(&mut remarks);
        budget = match (ratio, least, period) {
            (Some(ratio), Some(least), Some(period)) => {
                let (ratio, least_per_second, period) = (ratio.value, least.value, period.value);
                Some(Setting::stated(RetryBudget::Ratio { ratio, least_per_second, period }, field.span()))
            }
            _ => None,
        };
    }
    let mut is_used = false;
    for (at, route) in spec.get("routes").map(Node::items).unwrap_or_default().iter().enumerate() {
        let mut fields = Fields::of(route, format!("{}.routes[{at}]", object.path()));
        let retryable = fields.take("isRetryable");
        let Some(field) = retryable.filter(|field| field.text() == Some("true")) else { continue };
        let mut entry = Entry::new(Format::Linkerd, EntryKind::Call, fields.path.clone(), field.span());
        let timeout = fields.duration("timeout", &mut entry.remarks, units::go, "500ms");
        entry.settings.timeout = Some(timeout.map(unless_zero).flat_or(Limit::None));
        entry.settings.attempts = Some(Setting::default(if is_off { Limit::At(1) } else { Limit::None }));
        entry.settings.budget = budget;
        at_once(&mut entry.settings);
        let method = route.text_at(&["condition", "method"]);
        entry.may_repeat_unsafe = method.map(|method| matches!(method, "POST" | "PATCH"));
        if !is_off {
            let text = "no number limits the retries: the budget and the timeout do";
            entry.remarks.push(field.remark(RemarkKind::Note, text));
        }
        entry.remarks.append(&mut remarks);
        is_used = true;
        entries.push(entry);
    }
    let stated = budget.and_then(|budget| budget.span());
    if let (false, Some(span)) = (is_used, stated) {
        let mut entry = Entry::new(Format::Linkerd, EntryKind::Limit, format!("{}.retryBudget", object.path()), span);
        entry.settings.budget = budget;
        entry.remarks.push(Remark {
            kind: RemarkKind::NoEffect,
            path: entry.path.clone(),
            span,
            text: "no route has isRetryable: true, so nothing is retried".to_owned(),
        });
        entries.push(entry);
    }
}

/// Returns whether a route of the Gateway API admits idempotent methods only.
fn is_for_idempotent_methods(route: &Node) -> bool {
    let rules = route.at(&["spec", "rules"]).map(Node::items).unwrap_or_default();
    let conditions = |rule: &'_ Node| {
        let conditions = rule.get("matches").map(Node::items).unwrap_or_default();
        are_idempotent(conditions, |condition| condition.get("method"))
    };
    !rules.is_empty() && rules.iter().all(conditions)
}

/// No length is no limit.
fn unless_zero(length: Duration) -> Limit<Duration> {
    if length.is_zero() { Limit::None } else { Limit::At(length) }
}

/// Parses a length of an annotation: one whole number and its unit.
fn length(text: &str) -> Option<Duration> {
    let text = text.trim();
    let digits = text.find(|character: char| !character.is_ascii_digit()).unwrap_or(text.len());
    let number: u64 = text[..digits].parse().ok()?;
    let unit = match &text[digits..] {
        "" if number == 0 => 0,
        "ms" => 1,
        "s" => 1_000,
        "m" => 60_000,
        "h" => 3_600_000,
        "d" => 86_400_000,
        _ => return None,
    };
    number.checked_mul(unit).map(Duration::from_millis)
}

/// Returns whether a word is a condition of `retry.linkerd.io/http`.
fn is_status(word: &str) -> bool {
    let code = |text: &str| text.parse::<u32>().ok().filter(|code| (100..600).contains(code));
    let is_range = |(first, last): (&str, &str)| code(first).is_some_and(|first| code(last) >= Some(first));
    let is_named = ["5xx", "gateway-error"].iter().any(|name| name.eq_ignore_ascii_case(word));
    is_named || code(word).is_some() || word.split_once('-').is_some_and(is_range)
}

/// Returns whether a word is a condition of `retry.linkerd.io/grpc`.
fn is_code(word: &str) -> bool {
    const CODES: [&str; 5] = ["cancelled", "deadline-exceeded", "internal", "resource-exhausted", "unavailable"];
    CODES.iter().any(|code| code.eq_ignore_ascii_case(word))
}

/// Reads the annotations of an object, of whatever kind.
pub(crate) fn read_annotations(object: &Object<'_>, entries: &mut Vec<Entry>) {
    const LIMIT: &str = "retry.linkerd.io/limit";
    const TIMEOUT: &str = "retry.linkerd.io/timeout";
    // On other objects they have no effect.
    match (object.group, object.kind) {
        ("", "Service") | (_, "HTTPRoute" | "GRPCRoute" | "EgressNetwork") => {}
        _ => return,
    }
    let Some(annotations) = object.node.at(&["metadata", "annotations"]) else { return };
    let mut fields = Fields::of(annotations, format!("{} annotations", object.path()));
    let (http, grpc) = (fields.take("retry.linkerd.io/http"), fields.take("retry.linkerd.io/grpc"));
    let (http, grpc, idle) = match object.kind {
        "GRPCRoute" => (None, grpc, http),
        "HTTPRoute" => (http, None, grpc),
        _ => (http, grpc, None),
    };
    let (limit, each) = (fields.take(LIMIT), fields.take(TIMEOUT));
    let request = fields.take("timeout.linkerd.io/request");
    let retrying = [&http, &grpc, &limit, &each].into_iter().flatten().next();
    let Some(place) = retrying.or(request.as_ref()).or(idle.as_ref()) else { return };
    let mut kind = if retrying.is_some() { EntryKind::Call } else { EntryKind::Timeout };
    if retrying.is_none() && request.is_none() {
        kind = EntryKind::Unread;
    }
    let mut entry = Entry::new(Format::Linkerd, kind, fields.path.clone(), place.span());
    let remarks = &mut entry.remarks;
    remarks.extend(idle.map(|field| {
        field.remark(RemarkKind::NoEffect, format!("Linkerd reads no such annotation of a {}", object.kind))
    }));
    let mut read = |field: &Option<Field<'_>>| match field {
        Some(field) => field.duration(remarks, length, "10s").map(unless_zero),
        None => Found::Absent,
    };
    let (request, each) = (read(&request), read(&each));
    if kind != EntryKind::Unread {
        entry.settings.timeout = Some(request.flat_or(Limit::None));
    }
    if kind == EntryKind::Call {
        let retries = limit.as_ref().map_or(Found::Absent, |field| field.count(remarks));
        // 0 is no number.
        let retries = if retries.known().is_some_and(|retries| retries.value == 0) { Found::Absent } else { retries };
        let mut attempts = retries.retries_or(ANNOTATED_RETRIES);
        for (field, is_known) in [(&http, is_status as fn(&str) -> bool), (&grpc, is_code)] {
            let Some(field) = field else { continue };
            let text = field.text().unwrap_or_default();
            // A space before a word is part of it.
            let wrong = text.split(',').find(|word| !is_known(word));
            if let Some(word) = wrong.filter(|_| field.says(remarks)) {
                let text = format!("`{}` is no condition: Linkerd drops all annotations for retries", shortened(word));
                remarks.push(field.remark(RemarkKind::Invalid, text));
                attempts = Setting::stated(Limit::Unknown, field.span());
            }
        }
        let is_uncut = attempts.value.at().is_some_and(|attempts| attempts <= UNCUT);
        entry.settings = Settings {
            attempts: Some(attempts),
            attempt_timeout: Some(each.flat_or(Limit::None)),
            timeout: entry.settings.timeout,
            budget: Some(Setting::default(RetryBudget::Unlimited)),
            // The policy controller sets it: a delay between its base and twice as much.
            base: Some(Setting::default(LONGEST_FIRST)),
            cap: Some(Setting::default(Limit::At(LONGEST))),
            multiplier: Some(Setting::default(2.0)),
            jitter: if is_uncut { Some(Setting::default(Jitter::Equal)) } else { None },
            ..Settings::default()
        };
        remarks.push(Remark {
            kind: RemarkKind::Note,
            path: fields.path.clone(),
            span: entry.span,
            text: "backs off from 25ms to 250ms, and adds up to as much again at random, up to 250ms in all, which no \
                   annotation changes"
                .to_owned(),
        });
        let words: Vec<_> = [&http, &grpc].into_iter().flatten().flat_map(Field::words).collect();
        let is_unsafe = |word: &&str| {
            matches!(*word, "5xx" | "gateway-error" | "internal" | "deadline-exceeded" | "cancelled")
                || word.starts_with('5')
        };
        let has_unknown = [&http, &grpc].into_iter().flatten().any(Field::has_unknown);
        let is_timed = matches!(entry.settings.attempt_timeout, Some(Setting { value: Limit::At(_), .. }));
        entry.may_repeat_unsafe = match is_timed || words.iter().any(is_unsafe) {
            true if is_for_idempotent_methods(object.node) => Some(false),
            true => Some(true),
            false if has_unknown => None,
            false => Some(false),
        };
        let not_a_policy = "limits other parts of a request";
        fields.unmapped(
            &[("timeout.linkerd.io/response", not_a_policy), ("timeout.linkerd.io/idle", not_a_policy)],
            remarks,
        );
    }
    entries.push(entry);
}
