//! Files as they come: in parts, in another order, cut off, and made to harm.

use stagger_traces::{Analyzer, Evidence, FileRead, Report};

use crate::recorded::{CLIENT, Recorded, SERVER, report};

fn recorded(traces: u64) -> Recorded {
    let mut recorded = Recorded::default();
    for trace in 1..=traces {
        let start = trace * 1_000_000;
        let root = recorded.add((trace, 0), ("shop", "GET /", SERVER), (start, start + 90_000), false);
        for attempt in 0..2 {
            let start = start + attempt * 40_000;
            recorded.add((trace, root), ("shop", "GET", CLIENT), (start, start + 10_000), attempt == 0);
            recorded.with("server.address", "stock");
        }
    }
    recorded
}

#[test]
fn a_trace_in_several_files_is_put_together_in_either_order() {
    let whole = recorded(30);
    let wanted = whole.report();
    assert_eq!((wanted.edges[0].calls, wanted.edges[0].attempts), (30, 60));
    let part = |keep: fn(usize) -> bool| Recorded {
        spans: whole.spans.iter().enumerate().filter(|(at, _)| keep(*at)).map(|(_, span)| span.clone()).collect(),
        ..Recorded::default()
    };
    for parts in [[0, 1], [1, 0]] {
        let files = [part(|at| at % 3 == 1).otlp(), part(|at| at % 3 != 1).jaeger()];
        let mut analyzer = Analyzer::new();
        parts.iter().for_each(|part: &usize| drop(analyzer.read(files[*part].as_bytes()).unwrap()));
        assert_eq!(analyzer.finish(), wanted, "{parts:?}");
    }
}

#[test]
fn more_spans_than_are_held_close_the_oldest_traces_and_it_is_said() {
    let whole = recorded(100);
    let all = whole.report();
    let limited = |text: &str, spans: usize| {
        let mut analyzer = Analyzer::with_max_spans(spans);
        analyzer.read(text.as_bytes()).unwrap();
        analyzer.finish()
    };
    // Each trace stands together.
    let jaeger = limited(&whole.jaeger(), 10);
    assert_eq!((jaeger.traces_closed_early > 90, jaeger.traces_split, &jaeger.edges), (true, 0, &all.edges));
    // The spans of a trace are a hundred others apart.
    let mut apart = whole;
    apart.spans.sort_by_key(|span| span.id % 3);
    let otlp = limited(&apart.otlp(), 50);
    assert!(otlp.traces_split > 100 && otlp.traces > 200, "{otlp:?}");
    assert_eq!(otlp.spans, 300);
    assert_eq!(otlp.edges.iter().map(|edge| edge.attempts).sum::<u64>(), 200, "no attempt is lost or counted twice");
    assert_eq!(limited(&apart.otlp(), 1_000).edges, all.edges);
}

#[test]
fn members_may_come_in_any_order_and_spans_twice() {
    let wanted = recorded(3).report();
    let otlp = recorded(3).otlp();
    let (head, spans) = otlp.trim_end().split_once("\"scopeSpans\": ").unwrap();
    let resource = head.split_once("\"resource\": ").unwrap().1.trim_end().trim_end_matches(',');
    let spans = spans.strip_suffix("}]}").unwrap();
    let turned =
        format!("{{\"resourceSpans\": [{{\"scopeSpans\": {spans}, \"resource\": {resource}}}], \"extra\": [1]}}");
    assert_eq!(report(&turned), wanted);
    let twice = report(&format!("{otlp}{otlp}{{\"other\": 1}}"));
    assert_eq!((twice.duplicate_spans, twice.unknown_values, &twice.edges), (9, 1, &wanted.edges));
}

fn read(text: &str) -> Result<Report, String> {
    let mut analyzer = Analyzer::new();
    let read = analyzer.read(text.as_bytes());
    let report = analyzer.finish();
    read.map(|_| report).map_err(|error| format!("{}:{}: {error}", error.line(), error.column()))
}

#[test]
fn a_file_that_is_cut_or_changed_anywhere_is_read_or_refused_with_a_place() {
    for text in [recorded(1).otlp(), recorded(1).jaeger()] {
        for at in (0..text.len()).step_by(5) {
            if at > 0 {
                assert!(read(&text[..at]).is_err() || text[at..].trim().is_empty(), "{}", &text[..at]);
            }
            for replacement in ["", "{", "\"", "null", "-1", "[", "99999999999999999999999"] {
                let _ = read(&format!("{}{replacement}{}", &text[..at], &text[at + 1..]));
            }
        }
    }
    assert_eq!(read("{\n \"data\": 7}").unwrap_err(), "2:11: invalid type: integer `7`, expected a list of traces");
    assert!(read("hello").unwrap_err().starts_with("1:1: "));
    assert!(read(&"[".repeat(1_000)).is_err() && read(&"{\"a\":".repeat(1_000)).is_err());
    assert!(read("").unwrap().is_clean());
}

#[test]
fn spans_that_are_their_own_ancestors_are_left_out() {
    let span = |id: &str, parent: &str| {
        format!(
            r#"{{"traceId": "1", "spanId": "{id}", "parentSpanId": "{parent}", "name": "a", "kind": 3, "startTimeUnixNano": 1, "endTimeUnixNano": 0}}"#
        )
    };
    let spans = [span("a", "b"), span("b", "a"), span("c", "c"), span("d", "")].join(",");
    let report = read(&format!(r#"{{"resourceSpans": [{{"scopeSpans": [{{"spans": [{spans}]}}]}}]}}"#)).unwrap();
    assert_eq!((report.spans, report.edges[0].attempts), (4, 2));
}

#[test]
fn every_form_that_tempo_and_jaeger_answer_with_is_read() {
    let recorded = recorded(3);
    let wanted = recorded.report();
    let (otlp, jaeger) = (recorded.otlp(), recorded.jaeger());
    let lists: Vec<_> = otlp.lines().map(|line| line.replace("{\"resourceSpans\"", "{\"batches\"")).collect();
    let list = otlp.lines().collect::<Vec<_>>().join(",");
    let jaeger_list = jaeger.split_once("\"data\": [").unwrap().1.rsplit_once("], \"total\"").unwrap().0;
    let snake = otlp
        .replace("resourceSpans", "resource_spans")
        .replace("scopeSpans", "scope_spans")
        .replace("traceId", "trace_id")
        .replace("spanId", "span_id")
        .replace("parentSpanId", "parent_span_id")
        .replace("startTimeUnixNano", "start_time_unix_nano")
        .replace("endTimeUnixNano", "end_time_unix_nano")
        .replace("stringValue", "string_value")
        .replace("intValue", "int_value");
    for (form, text) in [
        ("Tempo's first interface", lists.join("\n")),
        ("its second one", lists.iter().map(|list| format!("{{\"trace\": {list}, \"metrics\": {{}}}}")).collect()),
        ("its second one, as OTLP", otlp.lines().map(|line| format!("{{\"trace\": {line}}}\n")).collect()),
        ("Jaeger's third interface", otlp.lines().map(|line| format!("{{\"result\": {line}}}\n")).collect()),
        ("a list", format!("[{list}]")),
        ("the names of protobuf", snake),
        ("a trace of Jaeger's alone", jaeger_list.replace(",\n", "\n")),
        ("several of them in a list", format!("[{jaeger_list}]")),
    ] {
        assert_eq!(report(&text), wanted, "{form}: {text}");
    }
}

fn found(text: &str) -> (FileRead, Report) {
    let mut analyzer = Analyzer::new();
    let found = analyzer.read(text.as_bytes()).expect("it is JSON");
    (found, analyzer.finish())
}

#[test]
fn a_file_without_spans_says_what_it_has() {
    for (text, unknown, member) in [
        ("", 0, None),
        (" \n", 0, None),
        ("[]", 0, None),
        ("{\"resourceSpans\": []}", 0, None),
        ("{\"data\": null, \"errors\": [{\"code\": 404}]}", 0, None),
        ("{}", 1, None),
        ("{\"resourceMetrics\": []}", 1, Some("resourceMetrics")),
        ("{\"level\": \"info\"}\n{\"msg\": \"x\"}", 2, Some("level")),
        // Zipkin's.
        ("[{\"traceId\": \"a\", \"id\": \"b\"}]", 1, Some("traceId")),
        ("{\"trace\": {\"trace\": {\"trace\": {\"batches\": 7}}}}", 1, Some("trace")),
    ] {
        let (found, report) = found(text);
        assert_eq!(
            (found.spans, found.unknown_values, found.unknown_member.as_deref()),
            (0, unknown, member),
            "{text}"
        );
        assert_eq!((report.evidence, report.spans), (Evidence::NoCalls, 0), "{text}");
    }
    let (long, _) = found(&format!("{{\"{}\": 1}}", "ß".repeat(100)));
    assert_eq!(long.unknown_member.map(|member| member.chars().count()), Some(40));
}

#[test]
fn spans_without_identifiers_are_not_counted() {
    for text in [
        r#"{"resourceSpans": [{"scopeSpans": [{"spans": [{"name": "a"}, {"traceId": "1", "spanId": ""}]}]}]}"#,
        r#"{"spans": [{"name": "a"}, {"traceId": "1", "spanId": "2"}]}"#,
    ] {
        let (found, report) = found(text);
        assert_eq!((found.spans, found.invalid_spans, report.invalid_spans, report.spans), (0, 2, 2, 0), "{text}");
    }
}

#[test]
fn what_traces_are_enough_for_is_told_apart() {
    let none = Recorded::default();
    let evidence = |recorded: &Recorded| (recorded.report().evidence, recorded.report().comparable_retries);
    assert_eq!(evidence(&none), (Evidence::NoCalls, 0));
    let mut servers = Recorded::default();
    servers.add((1, 0), ("shop", "GET /", SERVER), (0, 9), false);
    assert_eq!(evidence(&servers), (Evidence::NoCalls, 0));
    let mut calls = servers.clone();
    calls.add((1, 1), ("shop", "GET", CLIENT), (0, 9), true);
    assert_eq!(evidence(&calls), (Evidence::NoRetries, 0));
    assert_eq!(evidence(&recorded(19)), (Evidence::FewRetries, 19));
    assert_eq!(evidence(&recorded(20)), (Evidence::Enough, 20));
    assert_eq!((recorded(19).report().calls(), recorded(19).report().retries()), (19, 19));
    assert!(!recorded(20).report().is_clean(), "20 equal delays are a finding");
}
