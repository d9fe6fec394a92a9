//! How a setting of a policy is written in a file of each system.

use core::time::Duration;

use stagger_config::{Entry, Format, Setting, Span};
use stagger_core::text::{Compact, parse_duration};

use super::edits::{Editor, Line};
use crate::file::Edit;

/// What is written, and the edits that write it.
pub(super) type Written = (String, Vec<Edit>);

/// Writes a setting, as the policy language has it; `None` if a file of this system cannot say it, or not in one place.
pub(super) fn setting(key: &str, value: &str, entry: &Entry, editor: &Editor<'_>) -> Option<Written> {
    let settings = &entry.settings;
    match key {
        "max-attempts" => attempts(value.parse().ok()?, entry, editor),
        "base" => length(settings.base, value, entry, editor),
        "cap" => length(settings.cap, value, entry, editor),
        _ => None,
    }
}

/// Writes the maximum number of attempts.
pub(super) fn attempts(most: u32, entry: &Entry, editor: &Editor<'_>) -> Option<Written> {
    let retries = most.saturating_sub(1);
    let stated = span(entry.settings.attempts);
    let (name, count) = match entry.format {
        Format::Envoy => ("num_retries", retries),
        Format::Istio | Format::GatewayApi => ("attempts", retries),
        Format::EnvoyGateway => ("numRetries", retries),
        Format::Linkerd => ("retry.linkerd.io/limit", retries),
        Format::Grpc | Format::Resilience4j | Format::SpringRetry => ("maxAttempts", most),
        Format::DotNet | Format::Polly => ("MaxRetryAttempts", retries),
        Format::StepFunctions => ("MaxAttempts", retries),
        Format::Dapr | Format::ServiceBus => ("maxRetries", retries),
        Format::SpringGateway => ("retries", retries),
        Format::AzureFunctions => ("maxRetryCount", retries),
        Format::Nginx => {
            let tries = stated.filter(|span| editor.key(*span).ends_with("_tries"));
            return Some(nginx(&format!("tries {most}"), tries, entry, editor));
        }
        Format::Haproxy => {
            let text = format!("retries {retries}");
            let edits = match stated {
                Some(span) => editor.replace_text(span, &text),
                None => editor.line_after(entry.span.start.line, &text),
            };
            return Some((text, edits));
        }
        _ => return None,
    };
    let line = Line::plain(name, count.to_string());
    Some(match (stated, entry.format) {
        (Some(span), _) => (editor.written(&line), editor.replace(span, &line)),
        (None, Format::Istio) => {
            let line = Line::plain("retries", format!("{{\"attempts\": {retries}}}"));
            (editor.written(&line), editor.before(entry.span, &line))
        }
        _ => (editor.written(&line), beside(entry, editor, &line)),
    })
}

/// Writes how long nginx passes a request on to other servers.
pub(super) fn nginx_time(length: Duration, entry: &Entry, editor: &Editor<'_>) -> Option<Written> {
    let directive = format!("timeout {}", notation(Format::Nginx, length)?);
    Some(nginx(&directive, span(entry.settings.timeout), entry, editor))
}

/// Writes a directive of nginx, in place of the one that is there: twice in a block is an error.
fn nginx(directive: &str, stated: Option<Span>, entry: &Entry, editor: &Editor<'_>) -> Written {
    let pass = editor.key(entry.span);
    let text = format!("{}_next_upstream_{directive};", pass.strip_suffix("_pass").unwrap_or("proxy"));
    let edits = match stated {
        Some(span) => editor.replace_text(span, &text),
        None => editor.line_before(entry.span, &text),
    };
    (text, edits)
}

fn length<T>(stated: Option<Setting<T>>, value: &str, entry: &Entry, editor: &Editor<'_>) -> Option<Written> {
    let span = stated?.span()?;
    let text = notation(entry.format, parse_duration(value).ok()??)?;
    let key = editor.key(span);
    let line = if entry.format == Format::StepFunctions { Line::plain(key, text) } else { Line::text(key, text) };
    Some((editor.written(&line), editor.replace(span, &line)))
}

/// Writes a length of time as a system has it; `None` if it cannot be said so.
pub(super) fn notation(format: Format, length: Duration) -> Option<String> {
    Some(match format {
        Format::Grpc | Format::Envoy => format!("{}s", length.as_secs_f64()),
        Format::Istio | Format::Dapr => Compact(length).to_string(),
        Format::DotNet | Format::Polly | Format::AzureFunctions | Format::ServiceBus => {
            let (whole, ms) = (length.as_secs(), length.subsec_millis());
            let clock = format!("{:02}:{:02}:{:02}", whole / 3_600 % 24, whole / 60 % 60, whole % 60);
            let fraction = if ms == 0 { String::new() } else { format!(".{ms:03}") };
            if whole >= 86_400 { format!("{}.{clock}{fraction}", whole / 86_400) } else { format!("{clock}{fraction}") }
        }
        Format::StepFunctions if length.subsec_nanos() == 0 => length.as_secs().to_string(),
        Format::GatewayApi
        | Format::EnvoyGateway
        | Format::Linkerd
        | Format::Nginx
        | Format::Haproxy
        | Format::Resilience4j
        | Format::SpringRetry
        | Format::SpringGateway
        | Format::Systemd => milliseconds(length),
        _ => return None,
    })
}

/// Writes a length of time in whole seconds, or else in milliseconds.
pub(super) fn milliseconds(length: Duration) -> String {
    if length.subsec_nanos() == 0 { format!("{}s", length.as_secs()) } else { format!("{}ms", length.as_millis()) }
}

/// Inserts a field into the mapping of the retries.
pub(super) fn beside(entry: &Entry, editor: &Editor<'_>, line: &Line) -> Vec<Edit> {
    let settings = &entry.settings;
    let members = [span(settings.attempts), span(settings.base), span(settings.multiplier)];
    match members.into_iter().flatten().next() {
        Some(member) => editor.before(member, &editor.spelled_like(member, line)),
        None if entry.span.start.line == entry.span.end.line => editor.below(entry.span, line),
        None => editor.inside(entry.span, line),
    }
}

/// Returns where a setting is written; `None` if it is a default.
pub(super) fn span<T>(setting: Option<Setting<T>>) -> Option<Span> {
    setting?.span()
}
