//! Restarts and probes.

use core::time::Duration;

use stagger_config::{Entry, EntryKind, Format, Limit, RemarkKind};
use stagger_core::text::Compact;

use super::draft::{Draft, does};
use super::edits::{Editor, Line};
use super::translate::span;
use crate::file::Edit;
use crate::rules::config::{GIVES_UP, IMPATIENT_PROBE, LIMIT_UNREACHABLE};

/// A burst of restarts that is shorter ends before most outages do.
const BURST: Duration = Duration::from_secs(60);
/// The longest delay of restarts that grow.
const LONGEST: Duration = Duration::from_secs(120);
const STEPS: &str = "RestartSteps=8";
const LONGEST_DELAY: &str = "RestartMaxDelaySec=2min";

/// Checks how a process is started again.
pub(super) fn restart(entry: &Entry, editor: &Editor<'_>) -> Option<Draft> {
    if entry.format != Format::Systemd {
        return None;
    }
    let settings = &entry.settings;
    let attempts = settings.attempts?;
    // Whether and how it waits may not be known.
    let delay = settings.base?.value;
    let grows = settings.multiplier?.value > 0.0 && matches!(settings.cap.map(|cap| cap.value), Some(Limit::At(_)));
    // The reader tells a limit that is turned off from one that is out of reach.
    let is_unreachable = entry.remarks.iter().any(|remark| remark.text.contains("never reached"));
    let (rule, fact) = match attempts.value {
        Limit::At(starts) if delay.saturating_mul(starts) < BURST => {
            let lasts = Compact(delay.saturating_mul(starts));
            (&GIVES_UP, format!("a process that ends at once is given up after {starts} starts, within {lasts}"))
        }
        Limit::None if is_unreachable && !grows => (
            &LIMIT_UNREACHABLE,
            format!("each start waits {}, so those of the limit never fall into its interval", Compact(delay)),
        ),
        _ => return None,
    };
    let place = attempts.span().or(span(settings.base)).unwrap_or(entry.span);
    let (text, edits) = growing(entry, editor, delay);
    let draft = Draft::new(rule, &entry.path, place).fact(does(entry)).fact(fact);
    let advice = "let the delay grow instead of giving up, from systemd 254 on; systemd has no jitter, so spread what \
                  starts on many machines by other means";
    Some(draft.advise(advice).edits(text, edits))
}

/// Writes a delay that grows, without a start limit.
fn growing(entry: &Entry, editor: &Editor<'_>, delay: Duration) -> (String, Vec<Edit>) {
    let mut wanted = vec![STEPS.to_owned(), LONGEST_DELAY.to_owned()];
    let mut edits = Vec::new();
    let start = "RestartSec=1s";
    match span(entry.settings.base) {
        Some(span) if delay < Duration::from_secs(1) || delay >= LONGEST => {
            edits.extend(editor.replace_line(span.start.line, start));
        }
        Some(_) => {}
        None => wanted.insert(0, start.to_owned()),
    }
    let limit = "StartLimitIntervalSec=0";
    // The older name is one of [Service], and stays there. The newer one is ignored there.
    let is_obeyed = |line: &usize| {
        !entry.remarks.iter().any(|found| found.kind == RemarkKind::NoEffect && found.span.start.line == *line)
    };
    let stated = ["StartLimitIntervalSec", "StartLimitInterval"];
    let stated = stated.into_iter().find_map(|name| {
        let line = editor.find_lines(&format!("{name}=")).find(is_obeyed)?;
        Some((name, line))
    });
    match (stated, editor.find_line("[Unit]")) {
        (Some((name, line)), _) => edits.extend(editor.replace_line(line, &format!("{name}=0"))),
        (None, Some(line)) => edits.extend(editor.line_after(line, limit)),
        (None, None) => edits.push(editor.at_the_top(&format!("[Unit]\n{limit}\n\n"))),
    }
    let text = format!("[Unit]\n{limit}\n[Service]\n{start}\n{STEPS}\n{LONGEST_DELAY}");
    edits.extend(editor.line_after(entry.span.start.line, &wanted.join("\n")));
    (text, edits)
}

/// Checks a probe that restarts what it finds slow.
pub(super) fn probe(entry: &Entry, editor: &Editor<'_>) -> Option<Draft> {
    const PATIENT: Duration = Duration::from_secs(5);
    let settings = &entry.settings;
    debug_assert_eq!(entry.kind, EntryKind::Probe);
    if entry.format != Format::Kubernetes || !entry.path.ends_with("livenessProbe") {
        return None;
    }
    let (limit, period) = (settings.attempt_timeout?, settings.base?);
    let length = limit.value.at()?;
    let fact = if length <= Duration::from_secs(1) {
        let why = if limit.is_stated() { "" } else { ", the default" };
        format!("an instance that takes longer than {}{why} to answer counts as dead", Compact(length))
    } else if length > period.value {
        format!("an attempt may take {}, and the next one is due after {}", Compact(length), Compact(period.value))
    } else {
        return None;
    };
    let failures = settings.attempts?.value.at()?;
    let after = period.value.saturating_mul(failures);
    let line = Line::plain("timeoutSeconds", PATIENT.min(period.value).as_secs().max(2).to_string());
    let member = span(settings.attempts).or(period.span());
    let edits = match (limit.span(), member) {
        (Some(span), _) => editor.replace(span, &line),
        (None, Some(member)) => editor.before(member, &line),
        (None, None) => editor.below(entry.span, &line),
    };
    let draft = Draft::new(&IMPATIENT_PROBE, &entry.path, limit.span().unwrap_or(entry.span));
    let draft = draft.fact(fact).fact(format!("after {failures} in a row, {} at most, it is killed", Compact(after)));
    let advice = "give it time, and let it ask nothing but the process itself";
    Some(draft.advise(advice).edits(editor.written(&line), edits))
}
