//! Event streams: any bytes parse without a panic, in any chunks to the same events, none of which exceeds the limit.

use stagger_http::sse::{Message, ParseError, Parser};

/// Parses `stream` in one piece and in chunks of these lengths.
pub fn check((limit, cuts, stream): (u8, Vec<u8>, Vec<u8>)) {
    let limit = usize::from(limit);
    let whole = parse(limit, &[&stream]);
    let mut chunks = Vec::new();
    let mut rest = &stream[..];
    for cut in cuts {
        let (chunk, later) = rest.split_at(rest.len().min(usize::from(cut)));
        chunks.push(chunk);
        rest = later;
    }
    chunks.push(rest);
    assert_eq!(parse(limit, &chunks), whole);
    for message in whole.0 {
        let named = if message.event == "message" { 0 } else { message.event.len() };
        assert!(named + message.data.len() <= limit, "{message:?}");
        assert!(!message.last_event_id.contains(['\0', '\r', '\n']), "{message:?}");
    }
}

fn parse(limit: usize, chunks: &[&[u8]]) -> (Vec<Message>, Option<ParseError>) {
    let mut parser = Parser::new().max_event_bytes(limit);
    let mut messages = Vec::new();
    for mut bytes in chunks.iter().copied() {
        loop {
            match parser.parse(&mut bytes) {
                Ok(Some(message)) => messages.push(message),
                Ok(None) => break,
                Err(error) => return (messages, Some(error)),
            }
        }
        assert!(bytes.is_empty());
    }
    (messages, None)
}
