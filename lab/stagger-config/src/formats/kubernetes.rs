//! Kubernetes: probes, jobs, the restarts of containers, and the schedule of a `CronJob`, whose runs may overlap.
//!
//! Read on kubernetes.io: Jobs, Pod lifecycle, probes, `CronJob`; in `pkg/apis/batch/v1/defaults.go`,
//! `pkg/apis/batch/validation`, `pkg/apis/core/validation`, `pkg/controller/job/job_controller.go` and
//! `backoff_utils.go`; and in robfig/cron, whose syntax Kubernetes has. Kubernetes 1.35.
//!
//! | field | default | 0 | refused |
//! |---|---|---|---|
//! | `backoffLimit` | 6; no limit with `backoffLimitPerIndex` | 0: no retry | negative |
//! | `backoffLimitPerIndex` | none | 0: no retry | without `completionMode: Indexed`, `restartPolicy: Never` |
//! | `activeDeadlineSeconds` | no limit | | negative |
//! | `restartPolicy` of a job | Always, which is refused | | neither `Never` nor `OnFailure` |
//! | delays with `Never` | 10 s, doubling up to 10 min (6 in the manual) | | |
//! | delays with `OnFailure` | at once, then 10 s, doubling up to 5 min | | |
//! | `periodSeconds` | 10 s | 0: the default | negative |
//! | `timeoutSeconds` | 1 s | 0: the default | negative |
//! | `failureThreshold` | 3 | 0: the default | negative |
//! | `successThreshold` | 1 | 0: the default | above 1 for liveness and startup |
//! | `terminationGracePeriodSeconds` of a probe | that of the pod | | for readiness |
//! | probes of `initContainers` | none | | without `restartPolicy: Always` |
//!
//! Of other kinds of objects, the fields whose names are about retries are not read, and named.

use core::time::Duration;

use stagger_core::Jitter;
use stagger_core::text::Compact;

use super::object::Object;
use crate::entry::{Entry, EntryKind, Found, Limit, Remark, RemarkKind, Setting, Settings};
use crate::fields::{Field, Fields};
use crate::format::Format;
use crate::tree::Node;

const PROBES: [&str; 3] = ["livenessProbe", "readinessProbe", "startupProbe"];
const PROBE_PERIOD: u32 = 10;
const PROBE_TIMEOUT: u32 = 1;
const PROBE_FAILURES: u32 = 3;
const BACKOFF_LIMIT: u32 = 6;
const FIRST_RESTART: Duration = Duration::from_secs(10);
/// The longest delay before a pod of a job is replaced.
const LONGEST_POD: Duration = Duration::from_secs(600);
/// The longest delay before a container is restarted in its pod.
const LONGEST_CONTAINER: Duration = Duration::from_secs(300);

/// Where objects of a kind have the template of their pods.
fn template(object: &Object<'_>) -> Option<&'static [&'static str]> {
    Some(match (object.group, object.kind) {
        ("", "Pod") => &["spec"],
        ("", "ReplicationController")
        | ("apps", "Deployment" | "StatefulSet" | "DaemonSet" | "ReplicaSet")
        | ("batch", "Job")
        | ("serving.knative.dev", "Service" | "Configuration")
        | ("argoproj.io", "Rollout") => &["spec", "template", "spec"],
        ("batch", "CronJob") => &["spec", "jobTemplate", "spec", "template", "spec"],
        _ => return None,
    })
}

pub(crate) fn read(object: &Object<'_>, entries: &mut Vec<Entry>) {
    let Some(template) = template(object) else { return };
    let job: Option<&[&str]> = match (object.group, object.kind) {
        ("batch", "Job") => Some(&["spec"]),
        ("batch", "CronJob") => Some(&["spec", "jobTemplate", "spec"]),
        _ => None,
    };
    let pod = object.node.at(template);
    if let Some(path) = job
        && let Some(spec) = object.node.at(path)
    {
        let mut entry = restarts_of_a_job(object, path, spec, pod);
        entry.remarks.extend(overlap(object, &entry.settings, Policy::of(pod)));
        misplaced(object, path, template, &mut entry.remarks);
        entries.push(entry);
    }
    let Some(pod) = pod else { return };
    for kind in ["initContainers", "containers"] {
        for (at, container) in pod.get(kind).map(Node::items).unwrap_or_default().iter().enumerate() {
            let path = format!("{} {}.{kind}[{at}]", object.path(), template.join("."));
            let mut fields = Fields::of(container, path);
            let is_refused = kind == "initContainers" && container.text_of("restartPolicy") != Some("Always");
            for name in PROBES {
                let Some(field) = fields.take(name) else { continue };
                let mut entry = probe(name, &field);
                if is_refused {
                    let text = "a container that only begins a pod has no probes: Kubernetes refuses it";
                    entry.remarks.push(field.remark(RemarkKind::Invalid, text));
                }
                entries.push(entry);
            }
        }
    }
}

/// How a job begins again.
#[derive(Clone, Copy, PartialEq)]
enum Policy {
    /// With another pod.
    Never,
    /// With the same container.
    OnFailure,
    /// The file does not say it.
    Unknown,
    Refused,
}

impl Policy {
    fn of(pod: Option<&Node>) -> Self {
        let Some(pod) = pod else { return Self::Unknown };
        match pod.get("restartPolicy") {
            Some(node) => match node.text() {
                Some("Never") => Self::Never,
                Some("OnFailure") => Self::OnFailure,
                Some(_) => Self::Refused,
                None => Self::Unknown,
            },
            None if pod.members().is_empty() => Self::Unknown,
            None => Self::Refused,
        }
    }
}

/// Says which limits of a job stand where Kubernetes knows none of their name, and drops them.
fn misplaced(object: &Object<'_>, job: &[&str], pod: &[&str], remarks: &mut Vec<Remark>) {
    const LIMITS: [&str; 2] = ["backoffLimit", "backoffLimitPerIndex"];
    let levels: [&[&str]; 5] = [&[], &["spec"], &["spec", "jobTemplate"], &pod[..pod.len() - 1], pod];
    let mut seen: Vec<&[&str]> = vec![job];
    for level in levels {
        if seen.contains(&level) {
            continue;
        }
        seen.push(level);
        let Some(node) = object.node.at(level) else { continue };
        let mut fields = Fields::of(node, format!("{} {}", object.path(), level.join(".")));
        for field in LIMITS.iter().filter_map(|name| fields.take(name)) {
            let text = format!("Kubernetes knows no such field here; it belongs into {}", job.join("."));
            remarks.push(field.remark(RemarkKind::NoEffect, text));
        }
    }
}

fn restarts_of_a_job(object: &Object<'_>, path: &[&str], spec: &Node, pod: Option<&Node>) -> Entry {
    let mut fields = Fields::of(spec, format!("{} {}", object.path(), path.join(".")));
    let place = match spec.members() {
        [first, ..] => first.key_span,
        [] => spec.span,
    };
    let mut entry = Entry::new(Format::Kubernetes, EntryKind::Restart, fields.path.clone(), place);
    let remarks = &mut entry.remarks;
    let mut limit = Found::Absent;
    if let Some(field) = fields.take("backoffLimit") {
        entry.span = field.span();
        limit = field.count(remarks);
    }
    let seconds = |field: &Field<'_>, remarks: &mut Vec<_>| field.count(remarks).map(|s| Duration::from_secs(s.into()));
    let deadline = fields.read("activeDeadlineSeconds", |field| seconds(field, remarks));
    let note = |kind, text: &str| Remark { kind, path: fields.path.clone(), span: entry.span, text: text.to_owned() };
    // No policy begins at once and goes on with 10 s.
    let (base, longest) = match Policy::of(pod) {
        Policy::OnFailure => {
            remarks.push(note(RemarkKind::Note, "the first restart is at once, the next after 10s, doubling up to 5m"));
            (None, Some(LONGEST_CONTAINER))
        }
        Policy::Unknown => (None, None),
        Policy::Refused => {
            let text = "a job needs restartPolicy: Never or OnFailure, without which Kubernetes refuses it";
            remarks.push(note(RemarkKind::Invalid, text));
            (None, None)
        }
        Policy::Never => (Some(Setting::default(FIRST_RESTART)), Some(LONGEST_POD)),
    };
    entry.settings = Settings {
        attempts: Some(limit.retries_or(BACKOFF_LIMIT)),
        base,
        cap: longest.map(|longest| Setting::default(Limit::At(longest))),
        multiplier: Some(Setting::default(2.0)),
        jitter: Some(Setting::default(Jitter::None)),
        timeout: Some(deadline.limit_or(Limit::None)),
        ..Settings::default()
    };
    if let Some(field) = fields.take("backoffLimitPerIndex") {
        let each = field.count(remarks).retries_or(0);
        if limit != Found::Absent {
            let text = "limits the retries of each index; backoffLimit limits those of all of them together";
            remarks.push(field.remark(RemarkKind::Note, text));
        } else {
            let text = "limits the retries of each index, and backoffLimit is then no limit by default";
            remarks.push(field.remark(RemarkKind::Note, text));
            entry.span = field.span();
        }
        entry.settings.attempts = Some(each);
        if spec.text_of("completionMode") != Some("Indexed") {
            let text = "needs completionMode: Indexed, without which Kubernetes refuses the job";
            remarks.push(field.remark(RemarkKind::Invalid, text));
        }
        if pod.and_then(|pod| pod.text_of("restartPolicy")).is_some_and(|policy| policy != "Never") {
            let text = "needs restartPolicy: Never, without which Kubernetes refuses the job";
            remarks.push(field.remark(RemarkKind::Invalid, text));
        }
    }
    let unmapped = [
        ("maxFailedIndexes", "ends the job when so many indexes have failed"),
        ("podFailurePolicy", "decides by exit code and reason which failures count"),
    ];
    fields.unmapped(&unmapped, remarks);
    if let Some(field) = fields.take("parallelism").filter(|field| field.text() != Some("1")) {
        remarks.push(
            field.remark(RemarkKind::Note, "several pods run at once, and each failure counts against the limit"),
        );
    }
    entry
}

fn probe(name: &str, field: &Field<'_>) -> Entry {
    let mut entry = Entry::new(Format::Kubernetes, EntryKind::Probe, field.path.clone(), field.span());
    let mut fields = field.fields();
    let remarks = &mut entry.remarks;
    let mut number = |name: &str, default| {
        match fields.count(name, remarks) {
            // 0 is read as the default.
            Found::Known(Setting { value: 0, .. }) | Found::Absent => Found::Known(Setting::default(default)),
            found => found,
        }
    };
    let seconds = |seconds: u32| Duration::from_secs(seconds.into());
    let period = number("periodSeconds", PROBE_PERIOD).map(seconds);
    let timeout = number("timeoutSeconds", PROBE_TIMEOUT).map(seconds);
    entry.settings.attempts = number("failureThreshold", PROBE_FAILURES).limit();
    entry.settings.attempt_timeout = timeout.limit();
    if let Some(period) = period.known() {
        entry.settings = core::mem::take(&mut entry.settings).constant(period);
    }
    let is_readiness = name == "readinessProbe";
    if let Some(successes) = fields.take("successThreshold") {
        match successes.count(remarks).known() {
            Some(number) if number.value > 1 && !is_readiness => {
                let text = "must be 1 here: Kubernetes refuses it";
                remarks.push(successes.remark(RemarkKind::Invalid, text));
            }
            _ => {
                let text = "how many successes in a row make it ready again";
                remarks.push(successes.remark(RemarkKind::Unmapped, text));
            }
        }
    }
    if is_readiness && let Some(grace) = fields.take("terminationGracePeriodSeconds") {
        let text = "nothing ends after this probe: Kubernetes refuses it";
        remarks.push(grace.remark(RemarkKind::Invalid, text));
    }
    let unmapped = [
        ("initialDelaySeconds", "how long the first probe waits"),
        ("terminationGracePeriodSeconds", "how long a container that failed its probe may take to end"),
    ];
    fields.unmapped(&unmapped, remarks);
    // What is asked is no matter of a policy.
    for name in ["httpGet", "tcpSocket", "exec", "grpc"] {
        let _ = fields.take(name);
    }
    fields.finish(remarks);
    entry
}

/// Returns a remark if runs that fail begin faster than they end: if several may run at once, which is the default, and
/// the delays before the retries of one take longer than the schedule waits for the next.
fn overlap(object: &Object<'_>, settings: &Settings, policy: Policy) -> Option<Remark> {
    let mut fields = Fields::of(object.node.get("spec")?, format!("{} spec", object.path()));
    let concurrency = fields.take("concurrencyPolicy");
    let schedule = fields.take("schedule")?;
    let is_suspended = fields.take("suspend").is_some_and(|field| field.text() != Some("false"));
    if is_suspended || concurrency.as_ref().is_some_and(|field| field.text() != Some("Allow")) {
        return None;
    }
    let period = shortest(schedule.text()?)?;
    let delays = waits(settings, policy)?;
    let lasts = match Setting::value_or(settings.timeout, Limit::None) {
        Limit::At(deadline) => deadline.min(delays),
        Limit::None => delays,
        Limit::Unknown => return None,
    };
    if lasts <= period {
        return None;
    }
    let text = format!(
        "Allow lets runs overlap: one begins every {}, and one that fails is retried for {}, and longer by what its \
         attempts take",
        Compact(period),
        Compact(lasts)
    );
    Some(concurrency.unwrap_or(schedule).remark(RemarkKind::Hazard, text))
}

/// Returns how long the delays before all retries are together.
fn waits(settings: &Settings, policy: Policy) -> Option<Duration> {
    let at_once = match policy {
        Policy::Never => 0,
        Policy::OnFailure => 1,
        Policy::Unknown | Policy::Refused => return None,
    };
    let attempts = match settings.attempts?.value {
        Limit::At(attempts) => attempts.saturating_sub(at_once),
        Limit::None => return Some(Duration::MAX),
        Limit::Unknown => return None,
    };
    let cap = Setting::value_or(settings.cap, Limit::None).at().unwrap_or(Duration::MAX);
    let mut delay = FIRST_RESTART.min(cap);
    let mut sum = Duration::ZERO;
    for retry in 1..attempts {
        if delay == cap {
            return Some(sum.saturating_add(cap.saturating_mul(attempts - retry)));
        }
        sum = sum.saturating_add(delay);
        delay = delay.saturating_mul(2).min(cap);
    }
    Some(sum)
}

/// Returns the shortest time between two runs of a schedule, if that is less than an hour.
fn shortest(schedule: &str) -> Option<Duration> {
    const HOUR: u32 = 60;
    if let Some(length) = schedule.strip_prefix("@every ")
        && let Some(every) = crate::units::go(length)
    {
        return Some(every);
    }
    // The time zone may stand before the fields.
    let mut fields = schedule.split_whitespace().skip_while(|field| field.contains("TZ="));
    let minutes = fields.next()?;
    if fields.count() != 4 {
        return None;
    }
    let mut chosen = [false; HOUR as usize];
    for part in minutes.split(',') {
        let (range, step) = part.split_once('/').unwrap_or((part, "1"));
        let step = step.parse::<u32>().ok()?.max(1);
        let (first, last) = match range.split_once('-') {
            _ if matches!(range, "*" | "?") => (0, HOUR - 1),
            Some((first, last)) => (first.parse().ok()?, last.parse().ok()?),
            // `5/10` is from the fifth minute on.
            None if part.contains('/') => (range.parse().ok()?, HOUR - 1),
            None => (range.parse().ok()?, range.parse().ok()?),
        };
        let minutes = (first..=last.min(HOUR - 1)).step_by(step as usize);
        minutes.filter_map(|minute| usize::try_from(minute).ok()).for_each(|minute| chosen[minute] = true);
    }
    let minutes: Vec<_> = (0_u64..).zip(chosen).filter(|(_, is_chosen)| *is_chosen).map(|(minute, _)| minute).collect();
    let gaps = minutes.windows(2).map(|pair| pair[1] - pair[0]);
    // The last of an hour and the first of the next.
    let around = 60 - minutes.last()? + minutes.first()?;
    let least = gaps.chain([around]).min()?;
    // One run in an hour is not looked at.
    if least >= 60 {
        return None;
    }
    Some(Duration::from_secs(60 * least))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_shortest_time_between_two_runs_is_found() {
        for (schedule, minutes) in [
            ("* * * * *", Some(1)),
            ("*/5 * * * *", Some(5)),
            ("?/20 0 * * *", Some(20)),
            ("0,10,40 * * * *", Some(10)),
            ("5/25 * * * *", Some(10)),
            ("0-10/5,58 * * * *", Some(2)),
            ("CRON_TZ=UTC */7 1-3 * * 1", Some(4)),
            ("@every 90s", Some(1)),
            ("0 * * * *", None),
            ("@daily", None),
            ("61 * * * *", None),
            ("x * * * *", None),
            ("*/5 * * *", None),
        ] {
            let found = shortest(schedule).map(|length| length.as_secs() / 60);
            assert_eq!(found, minutes, "{schedule}");
        }
    }
}
