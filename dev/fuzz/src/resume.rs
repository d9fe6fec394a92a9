//! Heads of answers to requests for the rest of a body.

use http::{HeaderMap, HeaderName, HeaderValue, Method, StatusCode, Version, header};
use stagger_http::resume::{self, Answer, End, Next, Rest, Resume};

const NAMES: [HeaderName; 8] = [
    header::ETAG,
    header::LAST_MODIFIED,
    header::DATE,
    header::CONTENT_RANGE,
    header::CONTENT_LENGTH,
    header::CONTENT_ENCODING,
    header::RANGE,
    header::TRANSFER_ENCODING,
];

/// A status and the lines of a head: each a number of [`NAMES`] and a value.
pub type Head = (u8, Vec<(u8, Vec<u8>)>);

fn headers(lines: &[(u8, Vec<u8>)]) -> HeaderMap {
    let mut headers = HeaderMap::new();
    for (name, value) in lines {
        if let Ok(value) = HeaderValue::from_bytes(value) {
            headers.append(NAMES[usize::from(*name) % NAMES.len()].clone(), value);
        }
    }
    headers
}

fn head(number: u8, headers: &HeaderMap) -> resume::Head<'_> {
    let version = if number < 128 { Version::HTTP_11 } else { Version::HTTP_2 };
    resume::Head { version, status: status(number), headers }
}

fn status(number: u8) -> StatusCode {
    match number % 8 {
        0..=2 => StatusCode::PARTIAL_CONTENT,
        3 | 4 => StatusCode::OK,
        5 => StatusCode::RANGE_NOT_SATISFIABLE,
        6 => StatusCode::SERVICE_UNAVAILABLE,
        _ => StatusCode::FORBIDDEN,
    }
}

/// No head and no body makes the machine panic or lose its place, and no byte is delivered from outside of a chunk.
pub fn check((request, first, answers): (Vec<(u8, Vec<u8>)>, Head, Vec<(Head, Vec<u8>, bool)>)) {
    let settings = Resume::new().allow_dates().reread(1_000);
    let lines = headers(&first.1);
    let Ok(mut rest) = Rest::new(&Method::GET, &headers(&request), head(first.0, &lines), settings) else { return };
    for (answer, body, is_clean) in answers {
        let before = rest.position();
        if let Ok(bytes) = rest.take(&body) {
            assert_eq!(rest.position() - before, bytes.len() as u64);
        } else {
            return;
        }
        assert!(rest.known_end().is_none_or(|end| rest.position() <= end.max(before)));
        if rest.end(if is_clean { End::Clean } else { End::Broken }) == Next::Complete {
            return;
        }
        let ask = rest.ask();
        assert!(ask.range.to_str().is_ok_and(|range| range.starts_with(&format!("bytes={}-", rest.position()))));
        match rest.judge(head(answer.0, &headers(&answer.1))) {
            Ok(Answer::Continue) => {}
            _ => return,
        }
    }
}
