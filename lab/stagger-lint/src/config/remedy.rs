//! How findings about calls are mended, in the syntax of each system.

use core::time::Duration;

use stagger_config::{Entry, EntryKind, Format, Limit, Remark};
use stagger_core::Jitter;
use stagger_core::text::Compact;

use super::draft::Remedy;
use super::edits::{Editor, Line};
use super::translate::{self, beside, milliseconds, nginx_time, notation, span};
use crate::analysis::brief;
use crate::change::Change;
use crate::file::Edit;
use crate::rules::config::{MAKES_WORSE, REJECTIONS_RETRIED, RUNS_PILE_UP};
use crate::{Finding, Rule};

/// A finding of a rule for policies, and the limits that a fix has to keep.
pub(super) struct Aim<'a> {
    pub(super) finding: &'a Finding,
    /// The time limit of a call, by the file and by its caller.
    pub(super) deadline: Option<Duration>,
    /// The time limit that is given, if the system lets a call last longer.
    pub(super) shorter: Option<Duration>,
}

impl Remedy {
    fn words(advice: impl Into<String>) -> Self {
        Self { advice: advice.into(), ..Self::default() }
    }

    fn line(editor: &Editor<'_>, line: &Line, edits: Vec<Edit>, advice: &str) -> Self {
        Self { text: editor.written(line), advice: advice.to_owned(), edits }
    }

    /// Lines that have an effect only together.
    fn lines(entry: &Entry, editor: &Editor<'_>, lines: &[Line], advice: &str) -> Self {
        let written: Vec<_> = lines.iter().map(|line| editor.written(line)).collect();
        let edits = lines.iter().flat_map(|line| beside(entry, editor, line)).collect();
        Self { text: written.join("\n"), advice: advice.to_owned(), edits }
    }

    /// A directive of a file without YAML or JSON.
    fn directive(text: &str, edits: Vec<Edit>, advice: &str) -> Self {
        Self { text: text.to_owned(), advice: advice.to_owned(), edits }
    }
}

/// Takes away what has no effect: a word of a list, or the whole line.
pub(super) fn ineffective(remark: &Remark, editor: &Editor<'_>) -> Remedy {
    if let Some(word) = word_in_backticks(remark) {
        if let Some((text, edits)) = editor.without_word(remark.span, word) {
            return Remedy { text, advice: "remove the word, or correct it".to_owned(), edits };
        }
    }
    Remedy { edits: editor.remove(remark.span), ..Remedy::words("remove the line, or write what it needs") }
}

/// Returns the rule for what makes a failure worse.
pub(super) fn hazard_rule(entry: &Entry, remark: &Remark) -> &'static Rule {
    match entry.format {
        Format::Kubernetes => &RUNS_PILE_UP,
        Format::Nginx if word_in_backticks(remark).is_some() => &REJECTIONS_RETRIED,
        _ => &MAKES_WORSE,
    }
}

/// Returns the word or the condition that a remark is about.
fn word_in_backticks(remark: &Remark) -> Option<&str> {
    remark.text.split('`').nth(1)
}

/// Mends what makes a failure worse.
pub(super) fn hazard(entry: &Entry, remark: &Remark, editor: &Editor<'_>) -> Remedy {
    match (entry.format, word_in_backticks(remark)) {
        (Format::Nginx, Some(condition)) => {
            let (left, edits) = editor.without(remark.span, &format!(" {condition}"));
            let name = editor.key(remark.span);
            let advice = "leave the condition out, or let the limiter answer with a status that is not among them, by \
                          limit_req_status";
            if left.trim_end_matches(';').trim() != name {
                return Remedy::directive(&left, edits, advice);
            }
            // It is the only one.
            let off = format!("{name} off;");
            Remedy::directive(&off, editor.replace_text(remark.span, &off), advice)
        }
        (Format::Nginx, None) => {
            let (text, edits) = editor.without(remark.span, " max_fails=0");
            let advice = "leave out a server for a while after a failure, which is the default: fail_timeout is 10s";
            Remedy { text, advice: advice.to_owned(), edits }
        }
        (Format::Kubernetes, _) => {
            let line = Line::text("concurrencyPolicy", "Forbid");
            let is_stated = editor.key(remark.span) == line.key;
            let edits = if is_stated { editor.replace(remark.span, &line) } else { editor.before(remark.span, &line) };
            let advice = "start no run while another one goes on, or end it in time with activeDeadlineSeconds";
            Remedy::line(editor, &line, edits, advice)
        }
        _ => Remedy::words(
            "write depends_on as a mapping, with `condition: service_healthy`, and give these services a healthcheck",
        ),
    }
}

/// Limits the time of a call.
pub(super) fn timeout(entry: &Entry, editor: &Editor<'_>) -> Remedy {
    within(Duration::from_secs(10), entry, editor)
}

/// Limits the time of a call to a length.
fn within(length: Duration, entry: &Entry, editor: &Editor<'_>) -> Remedy {
    const ADVICE: &str = "limit the time of the whole call, to less than its caller waits";
    let written = notation(entry.format, length);
    match (entry.format, span(entry.settings.timeout), written) {
        (Format::Nginx, ..) => {
            let (text, edits) = nginx_time(length, entry, editor).unwrap_or_default();
            let advice = "limit the time for all servers; an attempt that has begun lasts until its read_timeout";
            Remedy::directive(&text, edits, advice)
        }
        (Format::Istio | Format::Envoy | Format::Grpc, None, Some(length)) => {
            let line = Line::text("timeout", length);
            Remedy::line(editor, &line, editor.before(entry.span, &line), ADVICE)
        }
        (Format::Haproxy, ..) => {
            let text = "timeout server 30s";
            Remedy::directive(
                text,
                editor.line_after(entry.span.start.line, text),
                "limit the time until the server answers",
            )
        }
        (Format::StepFunctions, ..) => {
            let line = Line::plain("TimeoutSeconds", "60");
            let edits = editor.beside_above(entry.span, "Retry", &line);
            Remedy::line(editor, &line, edits, "limit the time of the state, whose default is years")
        }
        (Format::Dapr, ..) => Remedy::words("add a timeout below policies.timeouts, and name it in the target"),
        (_, Some(span), Some(length)) => {
            let line = Line::text(editor.key(span), length);
            Remedy::line(editor, &line, editor.replace(span, &line), ADVICE)
        }
        _ => Remedy::words(ADVICE),
    }
}

/// States how often a call is retried: as often as it is.
pub(super) fn stated(entry: &Entry, editor: &Editor<'_>) -> Remedy {
    let (attempts, advice) = match entry.format {
        // Of a group with any number of servers.
        Format::Nginx => (2, "say what is meant; `proxy_next_upstream off;` turns it off"),
        Format::Haproxy => (4, "say what is meant; `retries 0` turns it off"),
        _ => (3, "say what is meant; `attempts: 0` turns it off, where the application retries itself"),
    };
    let (text, edits) = translate::attempts(attempts, entry, editor).unwrap_or_default();
    Remedy { text, advice: advice.to_owned(), edits }
}

/// Bounds retries that are made at once.
pub(super) fn delay(entry: &Entry, editor: &Editor<'_>) -> Remedy {
    match entry.format {
        Format::Nginx => {
            let mut written = Vec::from_iter(translate::attempts(2, entry, editor));
            match entry.settings.timeout {
                // A directive that is there twice is an error.
                Some(timeout) if timeout.value != Limit::None => {}
                _ => written.extend(nginx_time(Duration::from_secs(10), entry, editor)),
            }
            let (texts, edits): (Vec<_>, Vec<_>) = written.into_iter().unzip();
            Remedy::directive(
                &texts.join("\n"),
                merged(edits.concat()),
                "nginx cannot wait: try twice, within a limit of time",
            )
        }
        Format::Haproxy => Remedy::words(
            "HAProxy waits only before it tries the same server again: set `retries 1` and `timeout server`",
        ),
        _ => Remedy::words("set a delay that grows and is drawn at random, or make one attempt"),
    }
}

/// Joins insertions at one place, which would overlap.
fn merged(edits: Vec<Edit>) -> Vec<Edit> {
    let mut merged: Vec<Edit> = Vec::new();
    for edit in edits {
        match merged.iter_mut().find(|other| other.place == edit.place) {
            Some(other) => other.text.push_str(&edit.text),
            None => merged.push(edit),
        }
    }
    merged
}

/// Limits the retries of all calls together.
pub(super) fn budget(entry: &Entry, editor: &Editor<'_>) -> Remedy {
    const ENVOY: &str = "{\"budget_percent\": {\"value\": 20}, \"min_retry_concurrency\": 3}";
    match entry.format {
        Format::Grpc => {
            let line = Line::plain("retryThrottling", "{\"maxTokens\": 100, \"tokenRatio\": 0.1}");
            let advice = "add it at the top level: retries stop while half of the tokens are spent";
            Remedy::line(editor, &line, editor.top(&line), advice)
        }
        Format::Envoy => {
            let line = Line::plain("retry_budget", ENVOY);
            let edits = match span(entry.settings.budget) {
                // Of several clusters, the span is that of the first.
                Some(span)
                    if matches!(editor.key(span), "max_retries" | "maxRetries") && editor.count_limits() == 1 =>
                {
                    editor.replace_text(span, &editor.written(&line))
                }
                _ => Vec::new(),
            };
            let advice = "write a budget below circuit_breakers.thresholds, in place of max_retries";
            Remedy::line(editor, &line, edits, advice)
        }
        Format::Istio => {
            let line = Line::plain("retryBudget", "{\"percent\": 20, \"minRetryConcurrency\": 3}");
            let advice = "add a budget to the trafficPolicy of the host's DestinationRule, or \
                          connectionPool.http.maxRetries in older releases";
            let is_here = entry.kind == EntryKind::Limit;
            let edits = if is_here { editor.inside(entry.span, &line) } else { Vec::new() };
            Remedy::line(editor, &line, edits, advice)
        }
        Format::Aws => Remedy::words("set retry_mode to standard, which has a quota of 500 tokens for retries"),
        _ => Remedy::words("set circuitBreaker.retryBudget, or a maxParallelRetries of a few"),
    }
}

/// Mends a finding of a rule for policies.
pub(super) fn of_policy(aim: &Aim<'_>, entry: &Entry, editor: &Editor<'_>) -> Remedy {
    match (aim.finding.rule().code(), aim.shorter) {
        ("S001", _) => jitter(entry, editor),
        ("S005", _) => cap(entry, editor),
        ("S011", _) => attempts(entry, editor),
        ("S012", Some(limit)) => within(limit, entry, editor),
        ("S013", _) => attempt_timeout(aim.deadline, entry, editor),
        ("S016", _) if has_budget(entry.format) => budget(entry, editor),
        ("S016", _) => Remedy::words(format!(
            "{} cannot limit the retries of all calls together: make fewer attempts, or limit them where the calls \
             begin",
            entry.format
        )),
        ("S019", _) => only_safe(entry, editor),
        _ => of_suggestion(aim.finding, entry, editor),
    }
}

/// Returns whether a file of this system can limit the retries of all calls together.
pub(super) const fn has_budget(format: Format) -> bool {
    matches!(format, Format::Grpc | Format::Envoy | Format::Istio | Format::EnvoyGateway | Format::Aws)
}

/// Writes what the rule suggests for a policy, as far as the system can say it.
fn of_suggestion(finding: &Finding, entry: &Entry, editor: &Editor<'_>) -> Remedy {
    let suggestion = finding.suggestion();
    let advice = suggestion.advice().unwrap_or_default();
    let Some(change) = suggestion.change() else { return Remedy::words(advice) };
    if let Change::Settings(settings) = change {
        let written: Option<Vec<_>> =
            settings.iter().map(|(key, value)| translate::setting(key, value, entry, editor)).collect();
        if let Some(written) = written {
            let (texts, edits): (Vec<_>, Vec<_>) = written.into_iter().unzip();
            return Remedy { text: texts.join("\n"), advice: suggestion.to_string(), edits: edits.concat() };
        }
    }
    let cost = if advice.is_empty() { String::new() } else { format!("; {advice}") };
    Remedy::words(format!("{change}, as a policy, which this file cannot say in one place{cost}"))
}

fn jitter(entry: &Entry, editor: &Editor<'_>) -> Remedy {
    let line = match entry.format {
        Format::StepFunctions => Line::text("JitterStrategy", "FULL"),
        Format::DotNet => Line::plain("UseJitter", "true"),
        Format::Resilience4j => {
            // Without a factor, a wait that grows has no maximum.
            let lines = [Line::plain("enableRandomizedWait", "true"), factor()];
            return Remedy::lines(entry, editor, &lines, "draw the delays at random");
        }
        _ => return jitter_of_dapr(entry, editor),
    };
    let edits = match span(entry.settings.jitter) {
        Some(span) => editor.replace(span, &line),
        None => beside(entry, editor, &line),
    };
    Remedy::line(editor, &line, edits, "draw the delays at random")
}

/// Dapr draws the delays of exponential policies alone, which begin at 500 ms and grow up to a limit.
fn jitter_of_dapr(entry: &Entry, editor: &Editor<'_>) -> Remedy {
    const LONGEST: Duration = Duration::from_secs(15);
    let settings = &entry.settings;
    let policy = Line::text("policy", "exponential");
    let length = settings.base.map_or(LONGEST, |base| base.value).max(LONGEST);
    let longest = Line::text("maxInterval", Compact(length).to_string());
    let mut edits = match span(settings.multiplier) {
        Some(span) => editor.replace(span, &policy),
        None => beside(entry, editor, &policy),
    };
    if let Some(delay) = span(settings.base) {
        edits.extend(editor.replace_text(delay, &editor.written(&longest)));
    }
    let text = format!("{}\n{}", editor.written(&policy), editor.written(&longest));
    let advice = "let the delays grow, which Dapr then draws at random; `duration` has no effect there";
    Remedy { text, advice: advice.to_owned(), edits }
}

fn cap(entry: &Entry, editor: &Editor<'_>) -> Remedy {
    let line = match entry.format {
        Format::StepFunctions => Line::plain("MaxDelaySeconds", "60"),
        Format::DotNet => Line::text("MaxDelay", "00:00:30"),
        _ => return cap_of_resilience4j(entry, editor),
    };
    Remedy::line(editor, &line, beside(entry, editor, &line), "limit the delays")
}

/// resilience4j takes the maximum only together with the multiplier, and with the factor if it draws the delays.
fn cap_of_resilience4j(entry: &Entry, editor: &Editor<'_>) -> Remedy {
    let settings = &entry.settings;
    let mut lines = Vec::new();
    if span(settings.multiplier).is_none() {
        lines.push(Line::plain("exponentialBackoffMultiplier", "1.5"));
    }
    let is_drawn = settings.jitter.is_some_and(|jitter| jitter.value != Jitter::None);
    let names = ["randomizedWaitFactor", "randomized-wait-factor"];
    if is_drawn && names.iter().all(|name| editor.find_line(name).is_none()) {
        lines.push(factor());
    }
    if span(settings.cap).is_none() {
        lines.push(Line::text("exponentialMaxWaitDuration", "30s"));
    }
    Remedy::lines(entry, editor, &lines, "limit the delays")
}

/// The factor that resilience4j has by itself, which it wants to be told all the same.
fn factor() -> Line {
    Line::plain("randomizedWaitFactor", "0.5")
}

fn attempts(entry: &Entry, editor: &Editor<'_>) -> Remedy {
    let most = match entry.format {
        Format::Grpc => 5,
        _ => 4,
    };
    match translate::attempts(most, entry, editor) {
        Some((text, edits)) => Remedy { text, advice: "limit the attempts".to_owned(), edits },
        None => Remedy::words("limit the attempts, or the time of all of them"),
    }
}

/// Shortens the attempts so that all of them fit.
fn attempt_timeout(deadline: Option<Duration>, entry: &Entry, editor: &Editor<'_>) -> Remedy {
    const ADVICE: &str = "shorten an attempt so that all of them fit, or make fewer";
    let settings = &entry.settings;
    let (Some(Limit::At(attempts)), Some(overall)) = (settings.attempts.map(|attempts| attempts.value), deadline)
    else {
        return Remedy::words(ADVICE);
    };
    let delays = longest_delays(entry, attempts);
    let left = overall.saturating_sub(delays);
    if left.is_zero() {
        return Remedy::words(format!(
            "make fewer attempts: the delays between them alone take up to {}",
            brief(delays)
        ));
    }
    let length = share(left, attempts);
    let seconds = || format!("{}s", length.as_secs_f64());
    let line = match entry.format {
        _ if length.is_zero() => return Remedy::words(ADVICE),
        Format::Istio => Line::text("perTryTimeout", Compact(length).to_string()),
        Format::Envoy => Line::text("per_try_timeout", seconds()),
        Format::GatewayApi => Line::text("backendRequest", milliseconds(length)),
        Format::EnvoyGateway => Line::text("timeout", milliseconds(length)),
        Format::DotNet => Line::text("Timeout", notation(Format::DotNet, length).unwrap_or_default()),
        Format::Linkerd => Line::text("retry.linkerd.io/timeout", milliseconds(length)),
        _ => return Remedy::words(format!("{ADVICE}: {} each", Compact(length))),
    };
    let edits = match (span(settings.attempt_timeout), entry.format) {
        (Some(span), _) => editor.replace(span, &line),
        (None, Format::DotNet) => {
            let section = Line::plain("AttemptTimeout", format!("{{ {} }}", editor.written(&line)));
            return Remedy::line(editor, &section, editor.below(entry.span, &section), ADVICE);
        }
        _ => beside(entry, editor, &line),
    };
    Remedy::line(editor, &line, edits, ADVICE)
}

/// Returns how long the delays between so many attempts are at most.
fn longest_delays(entry: &Entry, attempts: u32) -> Duration {
    /// More attempts than any time limit has room for.
    const MOST: u32 = 10_000;
    let Some(policy) = entry.policy() else { return Duration::ZERO };
    let bounds = (1..attempts.min(MOST)).map_while(|retry| policy.bounds(retry));
    bounds.fold(Duration::ZERO, |sum, (_, most)| sum.saturating_add(most))
}

/// Returns the longest attempt of which so many fit, in whole seconds or, if that is none, in whole steps of 10 ms.
fn share(overall: Duration, attempts: u32) -> Duration {
    let each = overall / attempts.max(1);
    let whole = Duration::from_secs(each.as_secs());
    if whole.is_zero() { Duration::from_millis((each.as_millis() as u64) / 10 * 10) } else { whole }
}

/// Retries only what cannot have been carried out.
fn only_safe(entry: &Entry, editor: &Editor<'_>) -> Remedy {
    const UNSENT: &str = "connect-failure,refused-stream";
    match entry.format {
        Format::Istio => Remedy {
            text: format!("retryOn: {UNSENT}"),
            advice: "retry only what was not processed, or route methods that are safe to repeat apart".to_owned(),
            edits: editor.replace_near(entry.span, &["retryOn"], UNSENT),
        },
        Format::Envoy => Remedy {
            text: format!("retry_on: {UNSENT}"),
            advice: "retry only what was not processed, or route methods that are safe to repeat apart".to_owned(),
            edits: editor.replace_near(entry.span, &["retry_on", "retryOn"], UNSENT),
        },
        Format::Nginx => Remedy::words("leave `non_idempotent` out of proxy_next_upstream"),
        Format::Haproxy => Remedy::words("retry on conn-failure only, which is the default of retry-on"),
        Format::DotNet => Remedy::words("call DisableForUnsafeHttpMethods() on the retry options, in code"),
        Format::StepFunctions => {
            Remedy::words("make the task safe to repeat, by a key such as $$.Execution.Id, or name the errors that are")
        }
        Format::Linkerd if entry.path.starts_with("ServiceProfile/") => {
            Remedy::words("remove isRetryable from routes whose method is not safe to repeat")
        }
        Format::Linkerd => Remedy::words("move the annotations to an HTTPRoute for methods that are safe to repeat"),
        _ => Remedy::words("retry only methods that are safe to repeat, or send an idempotency key"),
    }
}
