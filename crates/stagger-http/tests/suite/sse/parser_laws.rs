//! Laws of the parser, for any bytes.

use proptest::prelude::*;
use stagger_http::sse::{ParseError, Parser};

use super::parser::parse;

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
            "data", "data:", "data: ", "event", "event: ", "id", "id: ", "id: 7", "retry", "retry: 10", ":", " ", "x", "…",
            "\n", "\r", "\r\n", "\n\n", "\r\r", "\r\n\r\n", "\u{FEFF}", "\0",
        ]).prop_map(|piece| piece.as_bytes().to_vec()),
        1 => prop::collection::vec(any::<u8>(), 0..4),
    ];
    prop::collection::vec(piece, 0..60).prop_map(|pieces| pieces.concat())
}

proptest! {
    #[test]
    fn any_chunking_yields_what_the_standard_says(stream in stream(), cuts in prop::collection::vec(1_usize..9, 1..20)) {
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
