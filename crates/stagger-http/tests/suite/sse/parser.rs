//! The parser alone. The first tables have the facts of the Web Platform Tests in `eventsource`, by the names of their
//! files.

use core::time::Duration;

use proptest::prelude::*;
use stagger_http::sse::{Message, ParseError, Parser};

/// Parses a whole stream, in chunks of this length.
pub(super) fn parse(
    parser: &mut Parser,
    stream: &[u8],
    chunk: usize,
) -> Result<Vec<(String, String, String)>, ParseError> {
    let mut messages = Vec::new();
    for mut bytes in stream.chunks(chunk) {
        while let Some(Message { event, data, last_event_id, .. }) = parser.parse(&mut bytes)? {
            messages.push((event.into_owned(), data, last_event_id.to_string()));
        }
        assert!(bytes.is_empty(), "what was not parsed would be lost");
    }
    Ok(messages)
}

/// Parses a whole stream, in one piece and byte by byte.
fn events(stream: &[u8]) -> Vec<(String, String, String)> {
    let whole = parse(&mut Parser::new(), stream, usize::MAX).unwrap();
    assert_eq!(parse(&mut Parser::new(), stream, 1).unwrap(), whole, "byte by byte");
    whole
}

/// Returns type and data.
fn types_and_data(stream: &[u8]) -> Vec<(String, String)> {
    events(stream).into_iter().map(|(event, data, _)| (event, data)).collect()
}

#[test]
fn the_web_platform_tests_of_the_format_hold() {
    let long = "x".repeat(2049);
    let comments = format!("data:1\r:\0\n:\r\ndata:2\n:{long}\rdata:3\n:data:fail\r:{long}\ndata:4\n\n");
    let cases: &[(&str, &[u8], &[(&str, &str)])] = &[
        (
            "format-bom",
            b"\xEF\xBB\xBFdata:1\n\n\xEF\xBB\xBFdata:2\n\ndata:3\n\n",
            &[("message", "1"), ("message", "3")],
        ),
        (
            "format-bom-2",
            b"\xEF\xBB\xBF\xEF\xBB\xBFdata:1\n\ndata:2\n\ndata:3\n\n",
            &[("message", "2"), ("message", "3")],
        ),
        ("format-comments", comments.as_bytes(), &[("message", "1\n2\n3\n4")]),
        (
            "format-data-before-final-empty-line",
            b"retry:1000\ndata:test1\n\nid:test\ndata:test2",
            &[("message", "test1")],
        ),
        (
            "format-field-data",
            b"data:\n\ndata\ndata\n\ndata:test\n\n",
            &[("message", ""), ("message", "\n"), ("message", "test")],
        ),
        ("format-field-event", b"event:test\ndata:x\n\ndata:x\n\n", &[("test", "x"), ("message", "x")]),
        ("format-field-event-empty", b"event: \ndata:data\n\n", &[("message", "data")]),
        (
            "format-field-parsing",
            b"data:\0\ndata:  2\rData:1\ndata\0:2\ndata:1\r\0data:4\nda-ta:3\rdata_5\ndata:3\rdata:\r\n \
              data:32\ndata:4\n\n",
            &[("message", "\0\n 2\n1\n3\n\n4")],
        ),
        (
            "format-field-unknown",
            b"data:test\n data\ndata\nfoobar:xxx\njustsometext\n:thisisacommentyay\ndata:test\n\n",
            &[("message", "test\n\ntest")],
        ),
        ("format-leading-space", b"data:\ttest\rdata: \ndata:test\n\n", &[("message", "\ttest\n\ntest")]),
        ("format-newlines", b"data:test\r\ndata\ndata:test\r\n\r", &[("message", "test\n\ntest")]),
        ("format-null-character", b"data:\0\n\n\n\n", &[("message", "\0")]),
        ("format-utf-8", "data:ok…\n\n".as_bytes(), &[("message", "ok…")]),
        (
            "event-data",
            b"data:msg\ndata: msg\n\n:\ndata\n\ndata: end\n\n",
            &[("message", "msg\nmsg"), ("message", ""), ("message", "end")],
        ),
    ];
    for &(name, stream, want) in cases {
        let found = types_and_data(stream);
        let found: Vec<_> = found.iter().map(|(event, data)| (&**event, &**data)).collect();
        assert_eq!(found, want, "{name}");
    }
}

#[test]
fn the_web_platform_tests_of_ids_hold() {
    let cases: &[(&str, &[u8], &[&str])] = &[
        ("format-field-id", "id:…\ndata:hello\n\n".as_bytes(), &["…"]),
        ("format-field-id-3 persists", b"id: 1\ndata: 1\n\ndata:2\n\n", &["1", "1"]),
        ("format-field-id-3 changes and persists", b"id: 1\ndata: 1\n\nid: 2\ndata:2\n\ndata:2\n\n", &["1", "2", "2"]),
        ("format-field-id-3 resets", b"id: 1\ndata: 1\n\nid:\ndata:2\n\ndata:3\n\n", &["1", "", ""]),
        ("format-field-id-3 resets without a colon", b"id: 1\ndata: 1\n\nid\ndata:2\n\ndata:3\n\n", &["1", "", ""]),
        ("format-field-id-null", b"id:ok\ndata:1\n\nid:\0evil\ndata:2\n\nid:x\0\ndata:3\n\n", &["ok", "ok", "ok"]),
    ];
    for &(name, stream, want) in cases {
        let ids: Vec<_> = events(stream).into_iter().map(|(_, _, id)| id).collect();
        assert_eq!(ids, want, "{name}");
    }
}

#[test]
fn the_web_platform_tests_of_retry_hold() {
    let millis = |n| Some(Duration::from_millis(n));
    let cases: &[(&str, &[u8], Option<Duration>)] = &[
        ("format-field-retry", b"retry:03000\ndata:x\n\n", millis(3000)),
        ("format-field-retry-bogus", b"retry:3000\nretry:1000x\ndata:x\n\n", millis(3000)),
        ("format-field-retry-empty", b"retry\ndata:test\n\n", None),
        ("without an event", b"retry:1\n", millis(1)),
        ("more than a year", b"retry:3000\nretry:31622400001\n", millis(3000)),
        ("a Unix time", b"retry:1795255202000\n", None),
        ("negative", b"retry:-1\n", None),
        ("a sign", b"retry:+1\n", None),
        ("a fraction", b"retry:1.5\n", None),
        ("spaces", b"retry:  1\n", None),
        ("other digits", "retry:١\n".as_bytes(), None),
        ("zero", b"retry:0\n", millis(0)),
        ("absurd", b"retry:99999999999999999999999999\n", None),
    ];
    for &(name, stream, want) in cases {
        for chunk in [usize::MAX, 1] {
            let mut parser = Parser::new();
            parse(&mut parser, stream, chunk).unwrap();
            assert_eq!(parser.retry(), want, "{name}, in chunks of {chunk}");
        }
    }
}

#[test]
fn an_event_without_data_is_not_returned_and_its_id_counts() {
    let mut parser = Parser::new();
    let stream = b"event: gone\n\nid: 7\n\ndata: x\n\n";
    let want = [("message".to_owned(), "x".to_owned(), "7".to_owned())];
    assert_eq!(parse(&mut parser, stream, usize::MAX).unwrap(), want);
}

#[test]
fn the_id_of_an_incomplete_event_does_not_count() {
    let mut parser = Parser::new();
    parse(&mut parser, b"id: 1\ndata: a\n\nid: 2\ndata: b\nda", usize::MAX).unwrap();
    assert_eq!(&**parser.last_event_id(), "1");
    parser.restart();
    let want = [("message".to_owned(), "c".to_owned(), "1".to_owned())];
    assert_eq!(parse(&mut parser, b"\xEF\xBB\xBFdata: c\n\n", usize::MAX).unwrap(), want);
}

#[test]
fn an_id_that_no_header_can_carry_is_ignored() {
    for bad in ["\u{1}", "a\u{7f}", "\u{1b}[2J"] {
        let stream = format!("id: good\ndata\n\nid: {bad}\ndata\n\n");
        let ids: Vec<_> = events(stream.as_bytes()).into_iter().map(|(_, _, id)| id).collect();
        assert_eq!(ids, ["good", "good"], "{bad:?}");
    }
}

#[test]
fn invalid_utf_8_is_replaced() {
    let found = types_and_data(b"data: a\xFFb\xE2\x82\n\nevent: \xC3\ndata\n\n");
    let want = [("message", "a\u{FFFD}b\u{FFFD}"), ("\u{FFFD}", "")];
    assert_eq!(found, want.map(|(event, data)| (event.to_owned(), data.to_owned())));
}

#[test]
fn an_event_is_returned_without_waiting_for_the_line_feed_after_its_last_return() {
    let mut parser = Parser::new();
    let first = parse(&mut parser, b"data: 1\r\n\r", 1).unwrap();
    assert_eq!(first.len(), 1);
    // The line feed does not end another, empty line.
    assert_eq!(parse(&mut parser, b"\ndata: 2\r\rdata: 3\r\n\r\n", 1).unwrap().len(), 2);
}

#[test]
fn what_exceeds_a_limit_is_an_error() {
    let long =
        |prefix: &str, length: usize, suffix: &str| format!("{prefix}{}{suffix}", "x".repeat(length)).into_bytes();
    let lines = |line: &str, number: usize| line.repeat(number).into_bytes();
    let too_long = ParseError::EventTooLong { max_bytes: 100 };
    let line = ParseError::LineTooLong { max_bytes: 100 };
    let id = ParseError::IdTooLong { max_bytes: 4096 };
    let cases = [
        ("data of the longest event", long("data: ", 100, "\n\n"), 100, None),
        ("data", long("data: ", 101, "\n\n"), 100, Some(too_long)),
        ("data of several lines", lines("data: 012345678\n", 10), 100, None),
        ("data of too many lines", lines("data: 012345678\n", 11), 100, Some(too_long)),
        ("empty data lines", lines("data\n", 102), 100, Some(too_long)),
        ("a type beside data", [long("data: ", 50, "\n"), long("event: ", 50, "\n\n")].concat(), 100, None),
        (
            "a long type beside data",
            [long("data: ", 50, "\n"), long("event: ", 51, "\n\n")].concat(),
            100,
            Some(too_long),
        ),
        ("data beside a type", [long("event: ", 50, "\n"), long("data: ", 50, "\n\n")].concat(), 100, None),
        (
            "long data beside a type",
            [long("event: ", 50, "\n"), long("data: ", 51, "\n\n")].concat(),
            100,
            Some(too_long),
        ),
        ("replaced bytes", [&b"data: "[..], &[0xFF; 34], b"\n\n"].concat(), 100, Some(too_long)),
        ("a line without an end", long("data: ", 111, ""), 100, Some(line)),
        ("the longest line", long(":", 115, "\n"), 100, None),
        ("a comment without an end", long(":", 116, ""), 100, Some(line)),
        ("an unknown field", long("field: ", 110, "\n"), 100, Some(line)),
        ("the longest id", long("id: ", 4096, "\n"), 1 << 20, None),
        ("an id", long("id: ", 4097, "\n"), 1 << 20, Some(id)),
    ];
    for (name, stream, max_event_bytes, want) in cases {
        for chunk in [usize::MAX, 7, 1] {
            let mut parser = Parser::new().max_event_bytes(max_event_bytes);
            let result = parse(&mut parser, &stream, chunk);
            assert_eq!(result.as_ref().err(), want.as_ref(), "{name}, in chunks of {chunk}");
            if want.is_some() {
                // Also when it goes on, until the next stream.
                assert_eq!(parser.parse(&mut &b"\n\ndata: x\n\n"[..]).err(), want, "{name}");
                parser.restart();
                assert!(parser.parse(&mut &b"data: x\n\n"[..]).unwrap().is_some(), "{name}");
            }
        }
    }
}

#[test]
fn the_limit_bounds_one_event_and_not_the_stream() {
    let stream = b"data: 0123456789\n\n".repeat(1000);
    assert_eq!(parse(&mut Parser::new().max_event_bytes(10), &stream, 13).unwrap().len(), 1000);
}

/// The standard's rules, for a whole stream at once: decode, split into lines, interpret each.
fn interpret(stream: &[u8]) -> Vec<(String, String, String)> {
    let text = String::from_utf8_lossy(stream).into_owned();
    let text = text.strip_prefix('\u{FEFF}').unwrap_or(&text).replace("\r\n", "\n").replace('\r', "\n");
    let (mut data, mut event, mut id, mut events) = (String::new(), String::new(), String::new(), Vec::new());
    // What follows the last end of a line is not a line.
    for line in text.split('\n').rev().skip(1).collect::<Vec<_>>().into_iter().rev() {
        let (name, value) = line.split_once(':').unwrap_or((line, ""));
        let value = value.strip_prefix(' ').unwrap_or(value);
        match name {
            "" if line.is_empty() => {
                let event = core::mem::take(&mut event);
                if let Some(data) = core::mem::take(&mut data).strip_suffix('\n') {
                    let event = if event.is_empty() { "message".to_owned() } else { event };
                    events.push((event, data.to_owned(), id.clone()));
                }
            }
            "data" => data += &format!("{value}\n"),
            "event" => value.clone_into(&mut event),
            "id" if !value.chars().any(|c| c.is_ascii_control() && c != '\t') => value.clone_into(&mut id),
            _ => {}
        }
    }
    events
}

/// Bytes that are more often part of a stream than any others.
fn stream() -> impl Strategy<Value = Vec<u8>> {
    let piece = prop_oneof![
        8 => prop::sample::select(vec![
            "data", "data:", "data: ", "event", "event: ", "id", "id: ", "id: 7", "retry", "retry: 10", ":", " ", "x",
            "…",
            "\n", "\r", "\r\n", "\n\n", "\r\r", "\r\n\r\n", "\u{FEFF}", "\0",
        ]).prop_map(|piece| piece.as_bytes().to_vec()),
        1 => prop::collection::vec(any::<u8>(), 0..4),
    ];
    prop::collection::vec(piece, 0..60).prop_map(|pieces| pieces.concat())
}

proptest! {
    #[test]
    fn any_chunking_yields_what_the_standard_says(
        stream in stream(),
        cuts in prop::collection::vec(1_usize..9, 1..20),
    ) {
        let want = interpret(&stream);
        prop_assert_eq!(&parse(&mut Parser::new(), &stream, usize::MAX).unwrap(), &want);
        let (mut parser, mut rest, mut found) = (Parser::new(), &stream[..], Vec::new());
        for cut in cuts.iter().cycle() {
            let (chunk, later) = rest.split_at(rest.len().min(*cut));
            found.extend(parse(&mut parser, chunk, usize::MAX).unwrap());
            rest = later;
            if rest.is_empty() {
                break;
            }
        }
        prop_assert_eq!(found, want);
    }

    #[test]
    fn no_event_exceeds_the_limit(stream in stream(), max_event_bytes in 0_usize..20, chunk in 1_usize..9) {
        match parse(&mut Parser::new().max_event_bytes(max_event_bytes), &stream, chunk) {
            Ok(events) => for (event, data, _) in events {
                let named = if event == "message" { 0 } else { event.len() };
                prop_assert!(named + data.len() <= max_event_bytes, "{event:?}: {data:?}");
            },
            Err(error) => prop_assert!(!matches!(error, ParseError::IdTooLong { .. }), "{error}"),
        }
    }
}
