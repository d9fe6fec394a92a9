//! Tests of `stagger check --traces`, run as a program.

use std::fs;
use std::path::Path;

use serde_json::Value;

use crate::support::{Files, see, see_with_input, stagger};

const GUIDE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/guide");

fn basket() -> String {
    Path::new(GUIDE).join("traces/basket.json").display().to_string()
}

#[test]
fn traces_tell_which_layer_multiplies() {
    let seen = see(&mut stagger(["check", "--json", "--traces", &basket()]));
    let document: Value = serde_json::from_str(&seen.exits(1).stdout).unwrap();
    assert_eq!((&document["schema"], &document["traces"]), (&Value::from("stagger.traces/1"), &Value::from(1)));
    let found = &document["multiplications"][0];
    assert_eq!((&found["product"], &found["guilty"]), (&Value::from(9), &Value::from(0)));
    assert_eq!(found["layers"][1]["caller"], "orders");
}

#[test]
fn traces_are_read_from_several_files_and_standard_input() {
    let text = fs::read_to_string(basket()).unwrap();
    let (first, rest) = text.split_once('\n').unwrap();
    let files = Files::new();
    let path = files.path("rest.json");
    fs::write(&path, rest).unwrap();
    let command = &mut stagger(["check", "--traces", "-", &path.display().to_string()]);
    let seen = see_with_input(command, first.as_bytes());
    assert!(seen.exits(1).stdout.contains("layers multiply one another: 9 attempts"), "{seen:#?}");
}

#[test]
fn a_file_that_cannot_be_read_is_named_with_the_place() {
    let files = Files::new();
    let path = files.path("cut.json");
    fs::write(&path, "{\"resourceSpans\": [\n{").unwrap();
    let path = path.display().to_string();
    see(&mut stagger(["check", "--traces", &path])).exits(125).prints("").says(&format!("cannot read {path}:2:1: "));
    see(&mut stagger(["check", "--traces", "/nowhere.json"])).exits(125).says("cannot open /nowhere.json");
    see(&mut stagger(["check", "--traces", &path, "--log", "-"])).exits(2).says("--traces");
}

/// Returns OTLP: calls that fail once and are repeated after this many milliseconds each.
fn otlp(repeated_after: impl Iterator<Item = u64>) -> String {
    let span = |trace: usize, id: u8, start: u64, code: u8| {
        format!(
            r#"{{"traceId": "{trace:x}", "spanId": "{id}", "parentSpanId": "f", "name": "GET", "kind": 3,
                "startTimeUnixNano": "{start}000000", "endTimeUnixNano": "{}000000", "status": {{"code": {code}}}}}"#,
            start + 5
        )
    };
    let call = |(at, after): (usize, u64)| {
        let start = 1_000_000 * (at as u64 + 1);
        [span(at + 1, 1, start, 2), span(at + 1, 2, start + 5 + after, 1)].join(", ")
    };
    let spans: Vec<_> = repeated_after.enumerate().map(call).collect();
    format!(r#"{{"resourceSpans": [{{"scopeSpans": [{{"spans": [{}]}}]}}]}}"#, spans.join(", "))
}

#[test]
fn a_file_from_which_no_span_is_read_is_an_error_that_says_what_it_has() {
    let files = Files::new();
    let good = otlp([100].into_iter());
    for (name, content, want) in [
        ("empty", &b""[..], "it is empty, or a list of no traces"),
        ("list", b"{\"resourceSpans\": []}", "it is empty, or a list of no traces"),
        ("metrics", b"{\"resourceMetrics\": [{}]}", "it has metrics, and no traces"),
        ("search", b"{\"traces\": [{\"traceID\": \"1\"}]}", "it has the results of a search"),
        ("lines", b"{\"le\\u001b[2Jvel\": 1}\n{\"a\": 2}\n", "another format, which begins with `le\\u{1b}[2Jvel`"),
        ("spans", b"{\"spans\": [{\"name\": \"x\"}]}", "of its 1 span, none has both identifiers"),
        ("cut", b"{\"resourceSpans\": [{", "cannot read "),
        ("gzip", b"\x1f\x8b\x08\0", "it is compressed by gzip; pass `gunzip -c FILE | stagger check --traces -`"),
        ("utf16", b"\xff\xfe{\0}\0", "it is UTF-16; save it as UTF-8"),
        ("text", b"trace 1: GET /", "traces are read in OTLP/JSON"),
        ("proto", b"\n\x8f\x12\n", "traces are read in OTLP/JSON"),
    ] {
        let path = files.write(name, content).display().to_string();
        for flag in [&[][..], &["--json"]] {
            let seen = see(stagger(["check", "--traces", &path]).args(flag));
            seen.exits(125).prints("").says(want);
            seen.says(&path);
        }
        // Beside a file that is well, too.
        let well = files.write("good", &good).display().to_string();
        see(&mut stagger(["check", "--traces", &well, &path])).exits(125).prints("").says(&path);
    }
    let marked = files.write("marked", format!("\u{feff}{good}")).display().to_string();
    see(&mut stagger(["check", "--traces", &marked])).exits(3);
}

#[test]
fn too_few_retries_are_told_from_none_and_from_enough() {
    let server = otlp([1].into_iter()).replace("\"kind\": 3", "\"kind\": 2");
    let once = otlp([1].into_iter()).replace("\"code\": 2", "\"code\": 1");
    for (text, code, evidence, says) in [
        (server, 3, "no_calls", "too few to judge: none of the spans is that of a client"),
        (once, 0, "no_retries", "no findings: none of the 2 calls was repeated"),
        (otlp([100; 19].into_iter()), 3, "few_retries", "too few to judge: 19 retries of 19 calls, and 20 with the"),
        (otlp([100; 20].into_iter()), 1, "enough", "warning[in-step]"),
        (otlp((0..40).map(|n| 100 * n)), 0, "enough", "no findings\n"),
    ] {
        let seen = see_with_input(stagger(["check", "--traces", "-"]).env("COLUMNS", "200"), text.as_bytes());
        assert!(seen.exits(code).stdout.contains(says), "{seen:#?}");
        let seen = see_with_input(&mut stagger(["check", "--json", "--traces", "-"]), text.as_bytes());
        let document: Value = serde_json::from_str(&seen.exits(code).stdout).unwrap();
        assert_eq!(document["evidence"], evidence, "{document}");
    }
}
