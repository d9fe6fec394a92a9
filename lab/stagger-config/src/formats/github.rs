//! GitHub Actions: steps with the action `nick-fields/retry`. GitHub itself retries nothing.
//!
//! Read in the action's `action.yml`, version 4.

use core::time::Duration;

use crate::entry::{Entry, EntryKind, Limit, Remark, RemarkKind, RetryBudget, Setting};
use crate::fields::{Field, Fields};
use crate::format::Format;
use crate::tree::Node;

/// The action, and its former name.
const ACTIONS: [&str; 2] = ["nick-fields/retry", "nick-invision/retry"];
const ATTEMPTS: u32 = 3;
const WAIT: Duration = Duration::from_secs(10);

pub(crate) fn is_workflow(document: &Node) -> bool {
    let has_steps = |job: &crate::tree::Member| job.node.get("steps").is_some() || job.node.get("uses").is_some();
    document.get("jobs").map(Node::members).unwrap_or_default().iter().any(has_steps)
        || document.at(&["runs", "steps"]).is_some()
}

pub(crate) fn read(document: &Node) -> Vec<Entry> {
    let mut entries = Vec::new();
    for job in document.get("jobs").map(Node::members).unwrap_or_default() {
        let mut fields = Fields::of(&job.node, format!("jobs.{}", job.key));
        let timeout = fields.take("timeout-minutes");
        steps(&mut fields, timeout.as_ref(), &mut entries);
    }
    // A composite action.
    if let Some(runs) = document.get("runs") {
        steps(&mut Fields::of(runs, "runs"), None, &mut entries);
    }
    entries
}

fn steps(fields: &mut Fields<'_>, job_timeout: Option<&Field<'_>>, entries: &mut Vec<Entry>) {
    for (path, step) in fields.take("steps").map(|field| field.items()).unwrap_or_default() {
        let mut fields = Fields::of(step, path);
        let Some(uses) = fields.take("uses") else { continue };
        let action = uses.text().unwrap_or_default().split('@').next().unwrap_or_default();
        if !ACTIONS.contains(&action) {
            continue;
        }
        let mut entry = Entry::new(Format::GitHub, EntryKind::Step, fields.path.clone(), uses.span());
        let step_timeout = fields.take("timeout-minutes");
        inputs(fields.take("with").as_ref(), &mut entry);
        let limit = match step_timeout.as_ref().or(job_timeout) {
            Some(field) => time(field, 60.0, &mut entry.remarks),
            None => None,
        };
        entry.settings.timeout = Some(Setting::or_unlimited(limit));
        entries.push(entry);
    }
}

fn inputs(with: Option<&Field<'_>>, entry: &mut Entry) {
    let (settings, remarks) = (&mut entry.settings, &mut entry.remarks);
    let mut fields = with.map(Field::fields);
    let mut take = |name: &str| fields.as_mut()?.take(name);
    settings.attempts = match take("max_attempts") {
        Some(field) if is_expression(&field, remarks) => None,
        Some(field) => field.count(remarks).map(|attempts| attempts.map(Limit::At)),
        None => Some(Setting::default(Limit::At(ATTEMPTS))),
    };
    let wait = match take("retry_wait_seconds") {
        Some(field) => time(&field, 1.0, remarks),
        None => Some(Setting::default(WAIT)),
    };
    if let Some(wait) = wait {
        *settings = core::mem::take(settings).constant(wait);
    }
    let minutes = take("timeout_minutes").and_then(|field| time(&field, 60.0, remarks));
    let each = take("timeout_seconds").and_then(|field| time(&field, 1.0, remarks)).or(minutes);
    settings.attempt_timeout = each.map(|each| each.map(Limit::At));
    settings.budget = Some(Setting::default(RetryBudget::Unlimited));
    // The command runs again, whatever it had done.
    entry.may_repeat_unsafe = Some(true);
    let conditions = "decides which failures are retried";
    if let Some(mut fields) = fields {
        fields.unmapped(
            &[
                ("retry_on", conditions),
                ("retry_on_exit_code", conditions),
                ("new_command_on_retry", "what runs in place of the command"),
                ("on_retry_command", "what runs before a retry"),
            ],
            remarks,
        );
    }
}

/// Whether a value is known only when the workflow runs.
fn is_expression(field: &Field<'_>, remarks: &mut Vec<Remark>) -> bool {
    let is_expression = field.text().unwrap_or_default().contains("${{");
    if is_expression {
        remarks.push(field.remark(RemarkKind::Unmapped, "an expression, whose value is known only in a run"));
    }
    is_expression
}

/// Reads a number of units of so many seconds.
fn time(field: &Field<'_>, unit: f64, remarks: &mut Vec<Remark>) -> Option<Setting<Duration>> {
    if is_expression(field, remarks) {
        return None;
    }
    field.parse(remarks, "a number", |text| Duration::try_from_secs_f64(text.parse::<f64>().ok()? * unit).ok())
}
