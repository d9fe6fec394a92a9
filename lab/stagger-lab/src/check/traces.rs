//! `stagger check --traces`: what traces tell about retries.
//!
//! `stagger_traces` finds it; this module opens the files and prints the report.

use core::time::Duration;
use std::fs::File;
use std::io::{self, BufRead, BufReader, ErrorKind, Read};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::UNIX_EPOCH;

use serde::Serialize;
use stagger_core::text::{Compact, Outside};
use stagger_report::report::{self, Finding, Part, Table};
use stagger_terminal::output::error::CliError;
use stagger_terminal::output::outside::path_shown;
use stagger_terminal::output::terminal::Term;
use stagger_terminal::output::write::{print, to_json};
use stagger_terminal::plot::RenderOptions;
use stagger_traces::{Analyzer, DelayFrom, Evidence, FileRead, Report};

use super::TOO_FEW;
use super::report::counted;

/// Output of `stagger check --traces FILE --json`: schema `stagger.traces/1`.
///
/// Lengths of time are in nanoseconds. Later versions of the schema may add fields; existing fields keep their names and meanings.
#[derive(Serialize)]
struct Document<'a> {
    /// Always `stagger.traces/1`.
    schema: &'static str,
    /// The names of the files.
    files: Vec<String>,
    #[serde(flatten)]
    report: &'a Report,
}

/// Reads the files one after the other, and prints what they tell together.
pub(crate) fn run(files: &[PathBuf], as_json: bool, term: &Term) -> Result<ExitCode, CliError> {
    let mut analyzer = Analyzer::new();
    let mut without_spans = Vec::new();
    for file in files {
        let found = read(&mut analyzer, file)?;
        if found.spans == 0 {
            without_spans.push(format!("no span was read from {}: {}", name(file), reason(&found)));
        }
    }
    if !without_spans.is_empty() {
        return Err(CliError::io(without_spans.join("; "), io::Error::new(ErrorKind::InvalidData, FORMS)));
    }
    let report = analyzer.finish();
    let names: Vec<_> = files.iter().map(|file| name(file)).collect();
    let printed = if as_json {
        to_json(&Document { schema: "stagger.traces/1", files: names, report: &report })?
    } else {
        shown(&names, &report).text(RenderOptions::for_screen(&term.stdout, term))
    };
    print(printed.as_bytes())?;
    Ok(match too_few(&report) {
        _ if !report.is_clean() => ExitCode::FAILURE,
        Some(_) => ExitCode::from(TOO_FEW),
        None => ExitCode::SUCCESS,
    })
}

/// What is read, and what leads to it.
const FORMS: &str = "traces are read in OTLP/JSON, as Tempo's API answers with them, and in Jaeger's JSON; the \
                     file exporter of the OpenTelemetry Collector writes OTLP/JSON from whatever it receives, such as \
                     OTLP in protobuf, Zipkin's spans and Kafka's messages";

/// Says why no span was read.
fn reason(found: &FileRead) -> String {
    if found.invalid_spans > 0 {
        let spans = counted(found.invalid_spans as usize, "span");
        return format!("of its {spans}, none has both identifiers");
    }
    match (&found.unknown_member, found.unknown_values) {
        (Some(member), _) => match member.as_str() {
            "resourceMetrics" | "resource_metrics" => "it has metrics, and no traces".to_owned(),
            "resourceLogs" | "resource_logs" => "it has logs, and no traces".to_owned(),
            "traces" => {
                "it has the results of a search, which have no spans; get the traces by their identifiers".to_owned()
            }
            member => format!("its JSON is of another format, which begins with `{}`", Outside(member)),
        },
        (None, 0) => "it is empty, or a list of no traces".to_owned(),
        (None, _) => "its JSON is of another format".to_owned(),
    }
}

/// Says what the traces are too few for, if nothing was found in them.
fn too_few(report: &Report) -> Option<String> {
    match report.evidence {
        Evidence::NoCalls => Some(
            "too few to judge: none of the spans is that of a client, so nothing is known of retries; export the \
             spans of the services that call, too"
                .to_owned(),
        ),
        Evidence::FewRetries => Some(format!(
            "too few to judge: {} of {}, and {} with the same number, from one service to another, are needed to say \
             whether their delays are equal",
            match report.retries() {
                1 => "1 retry".to_owned(),
                retries => format!("{retries} retries"),
            },
            counted(report.calls() as usize, "call"),
            Report::ENOUGH,
        )),
        _ => None,
    }
}

fn name(file: &Path) -> String {
    if file == Path::new("-") { "standard input".to_owned() } else { path_shown(file) }
}

fn read(analyzer: &mut Analyzer, file: &Path) -> Result<FileRead, CliError> {
    let opened: Box<dyn Read> = if file == Path::new("-") {
        Box::new(io::stdin().lock())
    } else {
        Box::new(
            File::open(file).map_err(|error| CliError::io(format_args!("cannot open {}", path_shown(file)), error))?,
        )
    };
    let mut reader = BufReader::new(opened);
    let head = reader.fill_buf().map_err(|error| CliError::io(format_args!("cannot read {}", name(file)), error))?;
    if let Some(how) = unreadable(head) {
        let error = io::Error::new(ErrorKind::InvalidData, how);
        return Err(CliError::io(format_args!("cannot read {}", name(file)), error));
    }
    let has_mark = head.starts_with(MARK);
    let text = head.strip_prefix(MARK).unwrap_or(head).trim_ascii_start();
    let begins_like_json = matches!(text.first(), None | Some(b'{' | b'['));
    if has_mark {
        reader.consume(MARK.len());
    }
    analyzer.read(reader).map_err(|error| {
        let place = format!("{}:{}:{}", name(file), error.line(), error.column());
        let text = if begins_like_json { error.to_string() } else { format!("{error}; {FORMS}") };
        CliError::io(format_args!("cannot read {place}"), io::Error::new(error.kind(), text))
    })
}

/// The byte order mark that some programs begin a file with.
const MARK: &[u8] = b"\xef\xbb\xbf";

/// Says how a file has to be changed, if it begins with the mark of something else than JSON.
fn unreadable(head: &[u8]) -> Option<&'static str> {
    const MARKS: [(&[u8], &str); 6] = [
        (b"\x1f\x8b", "it is compressed by gzip; pass `gunzip -c FILE | stagger check --traces -`"),
        (b"\x28\xb5\x2f\xfd", "it is compressed by zstd; pass `zstd -dc FILE | stagger check --traces -`"),
        (b"BZh", "it is compressed by bzip2; pass `bzip2 -dc FILE | stagger check --traces -`"),
        (b"PK\x03\x04", "it is a zip archive; unpack it first"),
        (b"\xff\xfe", "it is UTF-16; save it as UTF-8"),
        (b"\xfe\xff", "it is UTF-16; save it as UTF-8"),
    ];
    MARKS.iter().find(|(mark, _)| head.starts_with(mark)).map(|(_, how)| *how)
}

/// Most findings of a kind, and edges, that are printed.
const SHOWN: usize = 5;

/// Returns the report.
pub(super) fn shown(files: &[String], found: &Report) -> report::Report {
    let counts = [counted(found.traces as usize, "trace"), counted(found.spans as usize, "span")].join(", ");
    let mut parts = vec![Part::Text(format!("{}: {counts}", files.join(", ")))];
    parts.extend(edges(found));
    let kinds = [multiplied(found), in_step(found), late(found), hints(found), storms(found)];
    for mut findings in kinds {
        let more = findings.len().saturating_sub(SHOWN);
        findings.truncate(SHOWN);
        parts.extend(findings.into_iter().map(Part::Finding));
        if more > 0 {
            parts.push(Part::Text(format!("and {more} more of these; --json has all")));
        }
    }
    if found.is_clean() {
        let clean = match too_few(found) {
            Some(text) => text,
            None if found.evidence == Evidence::NoRetries => {
                let text = match found.calls() {
                    1 => "the one call was not repeated".to_owned(),
                    calls => format!("none of the {calls} calls was repeated"),
                };
                format!("no findings: {text}")
            }
            None => "no findings".to_owned(),
        };
        parts.push(Part::Text(clean));
    }
    parts.extend(notes(found).map(|note| Part::Text(format!("note: {note}"))));
    report::Report { parts, ..report::Report::default() }
}

/// Returns the table of the edges whose calls are repeated.
fn edges(found: &Report) -> Vec<Part> {
    let retried: Vec<_> = found.edges.iter().filter(|edge| edge.attempts > edge.calls).collect();
    if retried.is_empty() {
        return Vec::new();
    }
    let rows = retried.iter().take(2 * SHOWN).map(|edge| {
        vec![
            format!("{} → {}", edge.caller, edge.callee),
            edge.calls.to_string(),
            edge.attempts.to_string(),
            format!("{:.2}", edge.amplification()),
            edge.most_attempts.to_string(),
            edge.caused.to_string(),
        ]
    });
    let heads =
        [("edge", false), ("calls", false), ("attempts", false), ("per call", false), ("most", true), ("caused", true)];
    let table = Table { title: String::new(), heads: heads.into(), rows: rows.collect(), best: None };
    let more = retried.len().saturating_sub(2 * SHOWN);
    let more = if more > 0 { Some(Part::Text(format!("and {more} more; --json has all"))) } else { None };
    [Part::Table(table)].into_iter().chain(more).collect()
}

fn multiplied(report: &Report) -> Vec<Finding> {
    let finding = |found: &stagger_traces::Multiplication| {
        let layers: Vec<_> = found
            .layers
            .iter()
            .map(|layer| format!("{} to {}: {}", layer.caller, layer.callee, layer.attempts))
            .collect();
        let guilty = &found.layers[found.guilty.min(found.layers.len().saturating_sub(1))];
        Finding {
            is_warning: true,
            code: "multiplied".to_owned(),
            title: format!("layers multiply one another: {} attempts of the lowest call", found.product),
            facts: vec![
                format!("attempts of one call: {}", layers.join(", ")),
                format!(
                    "in {}; the retries of {} cause most of the attempts",
                    counted(found.traces as usize, "trace"),
                    guilty.caller
                ),
            ],
            why: Some("each layer repeats what the layer below it has repeated already".to_owned()),
            help: format!("retry in one layer only; begin with {}", guilty.caller),
            ..Finding::default()
        }
    };
    report.multiplications.iter().filter(|found| !found.layers.is_empty()).map(finding).collect()
}

fn in_step(report: &Report) -> Vec<Finding> {
    let finding = |found: &stagger_traces::InStep| {
        let from = match found.from {
            DelayFrom::End => "the end",
            DelayFrom::Start => "the start",
        };
        let delay = match found.delay_ns {
            0 => "at once".to_owned(),
            delay => format!("{} after {from} of the attempt before", rounded(delay)),
        };
        Finding {
            is_warning: true,
            code: "in-step".to_owned(),
            title: format!("{} retries {} in step", found.caller, found.callee),
            facts: vec![format!(
                "{:.0} % of {} retries with the number {} come {delay}",
                found.share * 100.0,
                found.retries,
                found.retry
            )],
            why: Some("calls that fail together are repeated together".to_owned()),
            help: "use full jitter".to_owned(),
            ..Finding::default()
        }
    };
    report.in_step.iter().map(finding).collect()
}

fn late(report: &Report) -> Vec<Finding> {
    let finding = |found: &stagger_traces::LateAttempts| Finding {
        is_warning: true,
        code: "late".to_owned(),
        title: format!("{} calls {} after its own caller has given up", found.caller, found.callee),
        facts: vec![format!(
            "{} of {}, of which {} are retries",
            found.late,
            counted(found.attempts as usize, "attempt"),
            found.retries
        )],
        why: Some("the results of these attempts are lost, and their load is not".to_owned()),
        help: "pass the deadline on, and begin no attempt after it".to_owned(),
        ..Finding::default()
    };
    report.late.iter().map(finding).collect()
}

fn hints(report: &Report) -> Vec<Finding> {
    let finding = |found: &stagger_traces::HintsIgnored| Finding {
        is_warning: true,
        code: "hint-ignored".to_owned(),
        title: format!("{} does not wait as long as {} asks it to", found.caller, found.callee),
        facts: vec![format!(
            "{} of {} retries after an answer with Retry-After come before that time",
            found.early, found.hinted
        )],
        why: Some("a server that sends Retry-After knows when it has capacity again".to_owned()),
        help: "wait for at least as long as the server says".to_owned(),
        ..Finding::default()
    };
    report.hints_ignored.iter().map(finding).collect()
}

fn storms(report: &Report) -> Vec<Finding> {
    let finding = |found: &stagger_traces::Storm| {
        let start = UNIX_EPOCH + Duration::from_nanos(found.start_ns);
        Finding {
            is_warning: true,
            code: "storm".to_owned(),
            title: format!("more retries than first attempts for {}", rounded(found.length_ns)),
            facts: vec![format!(
                "from {}: {} retries, and {} first attempts",
                humantime::format_rfc3339_seconds(start),
                found.retries,
                found.first
            )],
            why: Some("a server that is overloaded needs fewer requests, and gets more".to_owned()),
            help: "limit the retries of all calls together by a budget".to_owned(),
            ..Finding::default()
        }
    };
    report.storms.iter().map(finding).collect()
}

/// What is to be known about the figures.
fn notes(report: &Report) -> impl Iterator<Item = String> {
    let known = [
        (
            report.traces_split,
            "traces are counted in parts, because their spans are far apart in the files: pass files in the order of \
             time",
        ),
        (report.spans_without_parent, "spans have a parent that is in no file: what is above them is not known"),
        (report.duplicate_spans, "spans are there twice, and counted once"),
        (report.unknown_values, "values of the files are neither OTLP, nor Tempo's or Jaeger's, and are not read"),
        (report.invalid_spans, "spans have no identifier of their own or of their trace, and are not counted"),
    ];
    known.into_iter().filter(|(count, _)| *count > 0).map(|(count, text)| format!("{count} {text}"))
}

/// Writes a length to three digits.
fn rounded(nanoseconds: u64) -> String {
    let digits = nanoseconds.checked_ilog10().unwrap_or_default().saturating_sub(2);
    let unit = 10_u64.pow(digits);
    let rounded = (nanoseconds / unit).saturating_mul(unit);
    Compact(Duration::from_nanos(rounded)).to_string()
}
