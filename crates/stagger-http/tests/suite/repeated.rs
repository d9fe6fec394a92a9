//! What is repeated: the table of `repeated.md`, from the decisions of the layer.
//!
//! `STAGGER_BLESS=1 cargo nextest run -p stagger-http --all-features repeated` writes it.

use core::fmt::Write as _;
use std::io;
use std::sync::{Arc, Mutex};

use bytes::Bytes;
use http::{Method, Request, Response};
use http_body_util::Full;
use stagger::observe::Action;
use stagger::{DelaySource, Policy, Retrier, policy};
use stagger_http::tower::{ReplayBody, RetryLayer};
use tower::load_shed::error::Overloaded;
use tower::{BoxError, Layer as _, ServiceExt as _, service_fn};

const POLICY: Policy = policy!(constant(ms(10)).jitter(Jitter::None).max_attempts(2));
const PAGE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/suite/repeated.md");

/// The requests of the table: idempotent by their method, by a key, and not at all.
const REQUESTS: [(Method, Option<&str>); 3] =
    [(Method::PUT, None), (Method::POST, Some("\"8e03978e\"")), (Method::POST, None)];

type Attempt = Result<Response<Full<Bytes>>, BoxError>;

/// Returns when a request is repeated whose first attempt ends so, and which then succeeds.
async fn when(method: &Method, key: Option<&str>, first: impl Fn() -> Attempt) -> &'static str {
    let decided = Arc::new(Mutex::new(None));
    let log = Arc::clone(&decided);
    let retrier = Retrier::new(POLICY).on_event(move |event| {
        if let Action::Retry { after, source } = event.action {
            *log.lock().unwrap() = Some(match source {
                DelaySource::Hint => "when the server says",
                _ if after.is_zero() => "at once, once",
                _ => "after the delay",
            });
        }
    });
    let ends = Mutex::new(vec![Ok(Response::default()), first()]);
    let ends = Arc::new(ends);
    let server = service_fn(move |_: Request<ReplayBody<Full<Bytes>>>| {
        let end = ends.lock().unwrap().pop().unwrap();
        async { end }
    });
    let mut request = Request::builder().method(method);
    if let Some(key) = key {
        request = request.header("idempotency-key", key);
    }
    let request = request.body(Full::from("an order")).unwrap();
    let _ = RetryLayer::new(retrier).layer(server).oneshot(request).await;
    let decided = *decided.lock().unwrap();
    decided.unwrap_or("no")
}

/// Returns when each of the requests is repeated.
async fn cells(first: impl Fn() -> Attempt) -> [&'static str; 3] {
    let mut cells = [""; 3];
    for (cell, (method, key)) in cells.iter_mut().zip(REQUESTS) {
        *cell = when(&method, key, &first).await;
    }
    cells
}

/// Headers of responses: the name for people, and name and value.
const HEADERS: [(&str, Option<(&str, &str)>); 5] = [
    ("", None),
    (" with `Retry-After`", Some(("retry-after", "1"))),
    (" with `stagger-reservation`", Some(("stagger-reservation", "1000;token=0123456789abcdef0123456789abcdef"))),
    (" with `x-should-retry: true`", Some(("x-should-retry", "true"))),
    (" with `x-should-retry: false`", Some(("x-should-retry", "false"))),
];

/// Returns why a row of responses is safe.
fn why_of_responses(cells: [&str; 3]) -> &'static str {
    match cells {
        ["no", "no", "no"] => "never sent again",
        ["no", _, "no"] => "the first request with the key is still in progress",
        [_, _, "no"] => "the server may have processed it, so only what has no further effect is sent again",
        _ => "admission control rejected it before anything read it",
    }
}

/// Writes numbers as ranges: `400 to 407, 410`.
fn ranges(numbers: &[u16]) -> String {
    let mut text = String::new();
    for run in numbers.chunk_by(|a, b| a + 1 == *b) {
        let separator = if text.is_empty() { "" } else { ", " };
        match run {
            [only] => write!(text, "{separator}{only}"),
            [first, second] => write!(text, "{separator}{first}, {second}"),
            [first, .., last] => write!(text, "{separator}{first} to {last}"),
            [] => Ok(()),
        }
        .unwrap();
    }
    text
}

/// Returns the rows of the responses: statuses with the same decisions are one row. Rows of a header are those that
/// differ from the rows without.
async fn responses() -> Vec<(String, [&'static str; 3], &'static str)> {
    let (mut rows, mut plain) = (Vec::new(), Vec::new());
    for (name, header) in HEADERS {
        let mut groups: Vec<([&str; 3], Vec<u16>)> = Vec::new();
        for status in 400..600 {
            let response = || {
                let response = Response::builder().status(status);
                let response =
                    header.into_iter().fold(response, |response, (name, value)| response.header(name, value));
                Ok(response.body(Full::default()).unwrap())
            };
            let cells = cells(response).await;
            if header.is_none() {
                plain.push(cells);
            } else if plain[usize::from(status - 400)] == cells {
                continue;
            }
            match groups.iter_mut().find(|(known, _)| *known == cells) {
                Some((_, statuses)) => statuses.push(status),
                None => groups.push((cells, vec![status])),
            }
        }
        groups.sort_by_key(|(cells, _)| core::cmp::Reverse(cells.iter().filter(|cell| **cell != "no").count()));
        rows.extend(
            groups
                .into_iter()
                .map(|(cells, statuses)| (format!("{}{name}", ranges(&statuses)), cells, why_of_responses(cells))),
        );
    }
    rows
}

fn io(kind: io::ErrorKind) -> Attempt {
    Err(io::Error::from(kind).into())
}

/// The errors: name for people, first attempt, and why.
type Failure = (&'static str, fn() -> Attempt, &'static str);

const ERRORS: [Failure; 3] = [
    (
        "the connection is refused, or the host or network cannot be reached",
        || io(io::ErrorKind::ConnectionRefused),
        "nothing was sent; the server may be down, so the retry waits",
    ),
    ("`LoadShed` sheds the request", || Err(Overloaded::new().into()), "nothing was sent"),
    (
        "the connection is lost, or the attempt times out",
        || io(io::ErrorKind::ConnectionReset),
        "the server may have processed it, so only what has no further effect is sent again",
    ),
];

/// Runs `test` on one thread, in virtual time if the clock is paused.
fn on_clock<T>(is_paused: bool, test: impl Future<Output = T>) -> T {
    tokio::runtime::Builder::new_current_thread().enable_all().start_paused(is_paused).build().unwrap().block_on(test)
}

/// Returns the table, in Markdown.
fn table() -> String {
    let mut rows = on_clock(true, async {
        let mut rows = responses().await;
        for (name, first, why) in ERRORS {
            rows.push((name.to_owned(), cells(first).await, why));
        }
        rows
    });
    rows.extend(on_clock(false, super::servers::not_processed::rows()));
    let mut table = String::from(
        "| the attempt ends with | GET, HEAD, OPTIONS, TRACE, PUT, DELETE | POST, PATCH, … with a key, or declared \
         idempotent | POST, PATCH, … | why that is safe |\n|---|---|---|---|---|\n",
    );
    for (name, [by_method, by_key, only_if_unsent], why) in rows {
        writeln!(table, "| {name} | {by_method} | {by_key} | {only_if_unsent} | {why} |").unwrap();
    }
    table
}

#[test]
fn the_table_is_what_the_layer_does() {
    let page = format!("# What the layer sends again\n\n{}", table());
    if std::env::var_os("STAGGER_BLESS").is_some() {
        std::fs::write(PAGE, page).unwrap();
        return;
    }
    assert_eq!(std::fs::read_to_string(PAGE).unwrap(), page);
}

#[tokio::test(start_paused = true)]
async fn x_should_retry_is_obeyed_but_makes_no_request_safe() {
    let response = |status: u16, value: &'static str| {
        move || Ok(Response::builder().status(status).header("x-should-retry", value).body(Full::default()).unwrap())
    };
    for (status, value, want) in [
        (404, "true", ["after the delay", "after the delay", "no"]),
        (503, "true", ["after the delay", "after the delay", "no"]),
        (503, "false", ["no"; 3]),
        (404, "perhaps", ["no"; 3]),
        (503, "perhaps", ["after the delay", "after the delay", "no"]),
    ] {
        assert_eq!(cells(response(status, value)).await, want, "{status} {value}");
    }
}
