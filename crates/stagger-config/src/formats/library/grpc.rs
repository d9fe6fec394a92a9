//! gRPC service configs.
//!
//! Read in gRPC's proposal A6 and in grpc-go's `stream.go`. Lenient where the config is for another reader than a channel:
//! generators of clients read files without `maxAttempts`.

use core::time::Duration;

use stagger_core::{Jitter, Ratio};

use crate::entry::{Entry, EntryKind, Limit, RemarkKind, RetryBudget, Setting};
use crate::fields::{Field, Fields};
use crate::format::Format;
use crate::tree::Node;
use crate::units;

/// The most attempts that a channel makes.
const MAX_ATTEMPTS: u32 = 5;
const JITTER: Jitter = Jitter::Factor(Ratio::percent(20));

pub(crate) fn is_service_config(document: &Node) -> bool {
    document.get("methodConfig").is_some()
}

pub(crate) fn read(document: &Node) -> Vec<Entry> {
    let mut root = Fields::of(document, "");
    let mut config_remarks = Vec::new();
    let budget = root.take("retryThrottling").map_or(Setting::default(RetryBudget::Unlimited), |field| {
        let mut fields = field.fields();
        let tokens = fields.take("maxTokens").and_then(|field| field.number(&mut config_remarks));
        let ratio = fields.take("tokenRatio").and_then(|field| field.number(&mut config_remarks));
        match (tokens, ratio) {
            (Some(tokens), Some(ratio)) => {
                Setting::stated(RetryBudget::Throttle { tokens: tokens.value, ratio: ratio.value }, field.span())
            }
            _ => {
                config_remarks
                    .push(field.remark(RemarkKind::Invalid, "needs maxTokens, from 1 to 1000, and tokenRatio above 0"));
                Setting::default(RetryBudget::Unlimited)
            }
        }
    });
    let methods = root.take("methodConfig");
    let mut entries: Vec<Entry> = Vec::new();
    for (path, node) in methods.iter().flat_map(Field::items) {
        entries.push(method(Fields::of(node, path), budget));
    }
    if let Some(first) = entries.first_mut() {
        first.remarks.append(&mut config_remarks);
    }
    entries
}

fn method(mut fields: Fields<'_>, budget: Setting<RetryBudget>) -> Entry {
    let mut entry = Entry::new(Format::Grpc, EntryKind::Timeout, fields.path.clone(), fields.span);
    let remarks = &mut entry.remarks;
    let timeout = fields.take("timeout");
    if let Some(field) = &timeout {
        entry.span = field.span();
    }
    let timeout = timeout.and_then(|field| duration(&field, remarks));
    entry.settings.timeout = Some(timeout.map_or(Setting::default(Limit::None), |timeout| timeout.map(Limit::At)));
    entry.settings.attempts = Some(Setting::default(Limit::At(1)));
    let hedging = fields.take("hedgingPolicy");
    if let Some(field) = fields.take("retryPolicy") {
        entry.span = field.span();
        entry.kind = EntryKind::Call;
        entry.settings.budget = Some(budget);
        retries(&field, &mut entry);
    } else if let Some(field) = hedging {
        entry.span = field.span();
        entry.kind = EntryKind::Call;
        entry.settings.budget = Some(budget);
        let attempts = field.fields().take("maxAttempts").and_then(|field| field.count(&mut entry.remarks));
        entry.settings.attempts =
            attempts.map(|attempts| attempts.map(|attempts| Limit::At(attempts.min(MAX_ATTEMPTS))));
        entry
            .remarks
            .push(field.remark(RemarkKind::Unmapped, "hedges: attempts overlap, and the first good answer counts"));
    }
    entry
}

fn duration(field: &Field<'_>, remarks: &mut Vec<crate::entry::Remark>) -> Option<Setting<Duration>> {
    field.duration(remarks, units::protobuf, "\"0.1s\"")
}

fn retries(field: &Field<'_>, entry: &mut Entry) {
    let (settings, remarks) = (&mut entry.settings, &mut entry.remarks);
    let mut fields = field.fields();
    settings.attempts = Some(match fields.take("maxAttempts") {
        None => {
            let text = "maxAttempts is absent: a channel refuses the policy, and generators of clients retry until the timeout";
            remarks.push(field.remark(RemarkKind::Invalid, text));
            Setting::default(Limit::None)
        }
        Some(field) => match field.count(remarks) {
            Some(attempts) if attempts.value > MAX_ATTEMPTS => {
                let text = format!("a channel makes {MAX_ATTEMPTS} attempts and not {}", attempts.value);
                remarks.push(field.remark(RemarkKind::Note, text));
                attempts.map(|_| Limit::At(MAX_ATTEMPTS))
            }
            Some(attempts) => attempts.map(Limit::At),
            None => Setting::default(Limit::None),
        },
    });
    settings.base = fields.take("initialBackoff").and_then(|field| duration(&field, remarks));
    settings.cap = fields.take("maxBackoff").and_then(|field| duration(&field, remarks)).map(|cap| cap.map(Limit::At));
    settings.multiplier = fields.take("backoffMultiplier").and_then(|field| field.number(remarks));
    settings.jitter = Some(Setting::default(JITTER));
    settings.attempt_timeout = fields
        .take("perAttemptRecvTimeout")
        .and_then(|field| duration(&field, remarks))
        .map(|timeout| timeout.map(Limit::At));
    let codes = fields.take("retryableStatusCodes").map(|field| field.words()).unwrap_or_default();
    const AFTER_PROCESSING: [&str; 8] =
        ["DEADLINE_EXCEEDED", "INTERNAL", "UNKNOWN", "CANCELLED", "DATA_LOSS", "4", "13", "2"];
    entry.may_repeat_unsafe =
        Some(codes.iter().any(|code| AFTER_PROCESSING.contains(&code.to_ascii_uppercase().as_str())));
    fields.finish(remarks);
}
