//! GitHub Actions: steps with the action `nick-fields/retry`. GitHub itself retries nothing.
//!
//! Read in the action's `action.yml`, `src/inputs.ts` and `src/index.ts`, version 4, and in the syntax of workflows. An
//! expression is known only in a run.
//!
//! | field | default | 0 | ignored | refused |
//! |---|---|---|---|---|
//! | `max_attempts` | 3 | the default | | empty, a word |
//! | `retry_wait_seconds` | 10 s | the default | | a word |
//! | `timeout_minutes`, `timeout_seconds` | | not set | | both, none, a word |
//! | other inputs | | | always | |
//! | `timeout-minutes` of the step | that of the job | | | no number |
//! | `timeout-minutes` of the job | 360 | | | no number |
//!
//! The action reads the whole number at the beginning of a text: of `0.5`, the 0.

use core::time::Duration;

use crate::entry::{Entry, EntryKind, Found, Limit, Remark, RemarkKind, RetryBudget, Setting};
use crate::fields::{Field, Fields, join, shortened};
use crate::format::Format;
use crate::tree::{Member, Node};

/// The action, and its former name.
const ACTIONS: [&str; 2] = ["nick-fields/retry", "nick-invision/retry"];
const ATTEMPTS: u32 = 3;
const WAIT: Duration = Duration::from_secs(10);
/// Of a job, unless it says otherwise.
const JOB_TIMEOUT: Duration = Duration::from_secs(6 * 3_600);

pub(crate) fn is_workflow(document: &Node) -> bool {
    // Other systems have jobs with steps as well: a workflow says when it runs, or where its jobs do.
    let has_steps = |job: &Member| {
        let is_called = job.node.text_of("uses").is_some();
        let steps = job.node.get("steps");
        let has_action = steps.map(Node::items).unwrap_or_default().iter().any(|step| step.text_of("uses").is_some());
        is_called
            || has_action
            || steps.is_some() && (job.node.get("runs-on").is_some() || document.get("on").is_some())
    };
    document.get("jobs").map(Node::members).unwrap_or_default().iter().any(has_steps)
        || document.at(&["runs", "steps"]).is_some() && document.at(&["runs", "using"]).is_some()
}

pub(crate) fn read(document: &Node) -> Vec<Entry> {
    let mut entries = Vec::new();
    for job in document.get("jobs").map(Node::members).unwrap_or_default() {
        let mut fields = Fields::of(&job.node, format!("jobs.{}", job.key));
        let timeout = fields.take("timeout-minutes");
        steps(&mut fields, true, timeout.as_ref(), &mut entries);
    }
    // A composite action.
    if let Some(runs) = document.get("runs") {
        steps(&mut Fields::of(runs, "runs"), false, None, &mut entries);
    }
    entries
}

fn steps(fields: &mut Fields<'_>, is_job: bool, job_timeout: Option<&Field<'_>>, entries: &mut Vec<Entry>) {
    for (path, step) in fields.take("steps").map(|field| field.items()).unwrap_or_default() {
        let mut fields = Fields::of(step, path);
        let Some(uses) = fields.take("uses") else { continue };
        let action = uses.text().unwrap_or_default().split('@').next().unwrap_or_default();
        if !ACTIONS.iter().any(|name| action.eq_ignore_ascii_case(name)) {
            continue;
        }
        let mut entry = Entry::new(Format::GitHub, EntryKind::Step, fields.path.clone(), uses.span());
        let step_timeout = fields.take("timeout-minutes");
        inputs(&uses, fields.take("with").as_ref(), &mut entry);
        let limit = match step_timeout.as_ref().or(job_timeout) {
            Some(field) => time(field, &mut entry.remarks),
            None => Found::Absent,
        };
        // The job of a composite action is not known.
        entry.settings.timeout = if is_job { Some(limit.limit_or(Limit::At(JOB_TIMEOUT))) } else { limit.limit() };
        entries.push(entry);
    }
}

/// The inputs of the action.
const INPUTS: [&str; 13] = [
    "timeout_minutes",
    "timeout_seconds",
    "max_attempts",
    "command",
    "retry_wait_seconds",
    "shell",
    "polling_interval_seconds",
    "retry_on",
    "warning_on_retry",
    "on_retry_command",
    "continue_on_error",
    "new_command_on_retry",
    "retry_on_exit_code",
];

fn field_of<'a>(path: &str, member: &'a Member) -> Field<'a> {
    Field { path: join(path, &member.key), key_span: member.key_span, node: &member.node }
}

fn inputs(uses: &Field<'_>, with: Option<&Field<'_>>, entry: &mut Entry) {
    let (settings, remarks) = (&mut entry.settings, &mut entry.remarks);
    let members = with.map(|with| with.node.members()).unwrap_or_default();
    let path = with.map_or(uses.path.as_str(), |with| with.path.as_str());
    // The names of inputs are compared without case, and by nothing else.
    let input = |name: &str| members.iter().rev().find(|member| member.key.eq_ignore_ascii_case(name));
    let number = |name: &str, remarks: &mut Vec<Remark>| match input(name) {
        Some(member) => whole_of(&field_of(path, member), remarks),
        None => Found::Absent,
    };
    let attempts = number("max_attempts", remarks);
    settings.attempts = Some(unless_zero(attempts).limit_or(Limit::At(ATTEMPTS)));
    let wait = unless_zero(number("retry_wait_seconds", remarks));
    if let Some(wait) = wait.map(|seconds| Duration::from_secs(seconds.into())).or(WAIT) {
        *settings = core::mem::take(settings).constant(wait);
    }
    let minutes = unless_zero(number("timeout_minutes", remarks));
    let seconds = unless_zero(number("timeout_seconds", remarks));
    let length = |unit: u64| move |number: u32| Duration::from_secs(unit.saturating_mul(number.into()));
    settings.attempt_timeout = seconds.map(length(1)).or_else(minutes.map(length(60))).limit();
    let is_set = [minutes, seconds].map(|timeout| timeout != Found::Absent);
    if !minutes.is_unknown() && !seconds.is_unknown() && is_set[0] == is_set[1] {
        let text = "the action wants either timeout_minutes or timeout_seconds, and fails without running the command";
        remarks.push(with.unwrap_or(uses).remark(RemarkKind::Invalid, text));
    }
    settings.budget = Some(Setting::default(RetryBudget::Unlimited));
    // The command runs again, whatever it had done.
    entry.may_repeat_unsafe = Some(true);
    let conditions = "decides which failures are retried";
    for (name, text) in [
        ("retry_on", conditions),
        ("retry_on_exit_code", conditions),
        ("new_command_on_retry", "what runs in place of the command"),
        ("on_retry_command", "what runs before a retry"),
    ] {
        remarks.extend(input(name).map(|member| field_of(path, member).remark(RemarkKind::Unmapped, text)));
    }
    let is_unknown = |member: &&Member| !INPUTS.iter().any(|name| member.key.eq_ignore_ascii_case(name));
    remarks.extend(members.iter().filter(is_unknown).map(|member| {
        field_of(path, member)
            .remark(RemarkKind::NoEffect, "the action has no input of this name: it is ignored with a warning")
    }));
}

/// Returns a number, of which the action takes 0 for an absent one.
fn unless_zero(found: Found<u32>) -> Found<u32> {
    match found {
        Found::Known(Setting { value: 0, .. }) => Found::Absent,
        found => found,
    }
}

/// Reads the whole number at the beginning of an input, as the action does.
fn whole_of(field: &Field<'_>, remarks: &mut Vec<Remark>) -> Found<u32> {
    if field.node.is_null() {
        return field.refused(remarks, "a whole number of 0 or more");
    }
    let start = |text: &str| {
        let text = text.trim();
        let end = text.bytes().take_while(u8::is_ascii_digit).count();
        Some((text[..end].parse::<u32>().ok()?, end == text.len()))
    };
    let found = field.parse(remarks, "a whole number of 0 or more", start);
    if let Found::Known(Setting { value: (number, false), .. }) = found {
        let text = format!("`{}` is no whole number: the action reads {number}", shortened(field.text().unwrap_or("")));
        remarks.push(field.remark(RemarkKind::Invalid, text));
    }
    found.map(|(number, _)| number)
}

/// Reads a number of minutes.
fn time(field: &Field<'_>, remarks: &mut Vec<Remark>) -> Found<Duration> {
    field.parse(remarks, "a number", |text| Duration::try_from_secs_f64(text.parse::<f64>().ok()? * 60.0).ok())
}
