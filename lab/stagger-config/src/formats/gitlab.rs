//! GitLab CI: `retry` of jobs.
//!
//! Read in the YAML reference of GitLab 18, in `entry/retry.rb` and `build/auto_retry.rb`, and in the issue
//! gitlab#535395.
//!
//! | field | default | 0 | ignored | refused |
//! |---|---|---|---|---|
//! | `retry`, `retry.max` | 0 | 0: no retry | | above 2, `retry` as a text |
//! | `retry.when`, `retry.exit_codes` | every failure | | without `max` | |
//! | `timeout` | an hour, of the project | | | no length |

use core::time::Duration;

use crate::entry::{Entry, EntryKind, Found, Limit, Remark, RemarkKind, RetryBudget, Setting};
use crate::fields::{Field, Fields, whole};
use crate::format::Format;
use crate::tree::{Member, Node, Value};
use crate::units;

/// The most retries that GitLab accepts.
const MAX_RETRIES: u32 = 2;
/// A project's limit of a job, unless it is changed there.
const JOB_TIMEOUT: Duration = Duration::from_secs(3_600);

/// Names at the top of a file that are no jobs.
const GLOBAL: [&str; 10] = [
    "default",
    "stages",
    "variables",
    "workflow",
    "include",
    "image",
    "services",
    "cache",
    "before_script",
    "after_script",
];

pub(crate) fn is_pipeline(document: &Node) -> bool {
    let is_job = |member: &Member| {
        !GLOBAL.contains(&&*member.key)
            && ["script", "trigger", "extends"].iter().any(|name| member.node.get(name).is_some())
    };
    // A second keyword of GitLab, in a job or at the top: other systems have mappings with scripts as well.
    const BESIDE: [&str; 17] = [
        "stage",
        "image",
        "retry",
        "rules",
        "only",
        "except",
        "needs",
        "artifacts",
        "tags",
        "before_script",
        "after_script",
        "allow_failure",
        "when",
        "variables",
        "cache",
        "services",
        "environment",
    ];
    let has_second = |member: &Member| is_job(member) && BESIDE.iter().any(|name| member.node.get(name).is_some());
    // The jobs may all be those of what is included.
    let of_templates = document.get("include").is_some()
        && document.get("stages").is_some_and(|stages| matches!(stages.value, Value::List(_)));
    // Compose and workflows of GitHub have other names at their top.
    document.get("jobs").is_none()
        && !matches!(document.get("services").map(|node| &node.value), Some(Value::Map(_)))
        && (document.members().iter().any(is_job) || of_templates)
        && (document.members().iter().any(has_second) || GLOBAL.iter().any(|name| document.get(name).is_some()))
}

pub(crate) fn read(document: &Node) -> Vec<Entry> {
    let mut entries = Vec::new();
    fn timeout_of(node: &Node) -> Option<Field<'_>> {
        Fields::of(node, "").take("timeout")
    }
    let default = match document.get("default") {
        Some(node) => timeout_of(node),
        None => None,
    };
    for member in document.members() {
        if GLOBAL.contains(&&*member.key) && member.key != "default" {
            continue;
        }
        let Some(field) = Fields::of(&member.node, member.key.clone()).take("retry") else { continue };
        let mut entry = retry(&field);
        let timeout = match timeout_of(&member.node).or(default.clone()) {
            Some(field) => field.duration(&mut entry.remarks, spoken, "1h 30m"),
            None => Found::Absent,
        };
        entry.settings.attempt_timeout = Some(timeout.limit_or(Limit::At(JOB_TIMEOUT)));
        inherited(document, member, &mut entry);
        entries.push(entry);
    }
    entries
}

/// Parses `1h 30m`, `90 minutes` and `3600`, as GitLab writes them: like systemd, and with `and` and commas.
fn spoken(text: &str) -> Option<Duration> {
    units::systemd(&text.replace(',', " ").replace(" and ", " "))
}

fn retry(field: &Field<'_>) -> Entry {
    let mut entry = Entry::new(Format::GitLab, EntryKind::Step, field.path.clone(), field.span());
    let remarks = &mut entry.remarks;
    let retries = match &field.node.value {
        Value::Map(_) => {
            let mut fields = field.fields();
            let retries = fields.read("max", |field| count(field, remarks));
            if retries == Found::Absent {
                let text = "has no effect without max: nothing is retried";
                remarks.push(field.remark(RemarkKind::NoEffect, text));
            }
            let conditions = "decides which failures are retried";
            fields.unmapped(&[("when", conditions), ("exit_codes", conditions)], remarks);
            fields.finish(remarks);
            retries.or_else(Found::Known(Setting::stated(0, field.span())))
        }
        Value::Scalar { is_quoted: true, .. } if field.node.placeholder.is_none() => {
            field.refused(remarks, "a number or a mapping: GitLab refuses the pipeline")
        }
        _ => count(field, remarks),
    };
    entry.settings.attempts = Some(retries.retries_or(0));
    entry.settings.base = Some(Setting::default(Duration::ZERO));
    entry.settings.budget = Some(Setting::default(RetryBudget::Unlimited));
    // The whole job runs again, whatever it had done.
    entry.may_repeat_unsafe = Some(true);
    entry
}

/// Reads a number of retries. A reference to another place of the configuration is not followed.
fn count(field: &Field<'_>, remarks: &mut Vec<Remark>) -> Found<u32> {
    if matches!(field.node.value, Value::List(_)) {
        remarks.push(field.remark(RemarkKind::Unmapped, "refers to another place, which is not followed"));
        return Found::Unknown(field.span());
    }
    field.parse(remarks, "0, 1 or 2: GitLab refuses the pipeline", |text| {
        whole(text).filter(|&retries| retries <= MAX_RETRIES)
    })
}

/// Says which jobs inherit a setting.
fn inherited(document: &Node, member: &Member, entry: &mut Entry) {
    let names = |node: &Node| match &node.value {
        Value::List(items) => items.iter().any(|item| item.text() == Some(&member.key)),
        _ => node.text() == Some(&member.key),
    };
    let heirs = document.members().iter().filter(|other| {
        if member.key == "default" {
            other.node.get("script").is_some() && other.node.get("retry").is_none() && !other.key.starts_with('.')
        } else {
            other.node.get("extends").is_some_and(names)
        }
    });
    let number = heirs.count();
    if number > 0 {
        let text = format!("{number} other jobs inherit it");
        entry.remarks.push(Remark { kind: RemarkKind::Note, path: entry.path.clone(), span: entry.span, text });
    }
}
