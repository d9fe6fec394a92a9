//! GitHub Actions: steps with the action `nick-fields/retry`. GitHub itself retries nothing.
//!
//! Read in the action's `action.yml`, version 4. An expression is known only in a run.
//!
//! | field | default | 0 |
//! |---|---|---|
//! | `max_attempts` | 3 | |
//! | `retry_wait_seconds` | 10 s | 0: at once |
//! | `timeout_minutes`, `timeout_seconds` | | |
//! | `timeout-minutes` of the step, of the job | no limit here | |

use core::time::Duration;

use crate::entry::{Entry, EntryKind, Found, Limit, Remark, RetryBudget, Setting};
use crate::fields::{Field, Fields};
use crate::format::Format;
use crate::tree::Node;

/// The action, and its former name.
const ACTIONS: [&str; 2] = ["nick-fields/retry", "nick-invision/retry"];
const ATTEMPTS: u32 = 3;
const WAIT: Duration = Duration::from_secs(10);

pub(crate) fn is_workflow(document: &Node) -> bool {
    // Other systems have jobs with steps as well: a workflow says when it runs, or where its jobs do.
    let has_steps = |job: &crate::tree::Member| {
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
            None => Found::Absent,
        };
        entry.settings.timeout = Some(limit.limit_or(Limit::None));
        entries.push(entry);
    }
}

fn inputs(with: Option<&Field<'_>>, entry: &mut Entry) {
    let (settings, remarks) = (&mut entry.settings, &mut entry.remarks);
    let mut fields = with.map(Field::fields);
    let mut take = |name: &str| fields.as_mut()?.take(name);
    let attempts = take("max_attempts").map_or(Found::Absent, |field| field.count(remarks));
    settings.attempts = Some(attempts.limit_or(Limit::At(ATTEMPTS)));
    let wait = take("retry_wait_seconds").map_or(Found::Absent, |field| time(&field, 1.0, remarks));
    if let Some(wait) = wait.or(WAIT) {
        *settings = core::mem::take(settings).constant(wait);
    }
    let minutes = take("timeout_minutes").map_or(Found::Absent, |field| time(&field, 60.0, remarks));
    let seconds = take("timeout_seconds").map_or(Found::Absent, |field| time(&field, 1.0, remarks));
    settings.attempt_timeout = seconds.or_else(minutes).limit();
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

/// Reads a number of units of so many seconds.
fn time(field: &Field<'_>, unit: f64, remarks: &mut Vec<Remark>) -> Found<Duration> {
    field.parse(remarks, "a number", |text| Duration::try_from_secs_f64(text.parse::<f64>().ok()? * unit).ok())
}
