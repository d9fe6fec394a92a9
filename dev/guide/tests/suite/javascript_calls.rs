//! Golden vectors of whole calls by HTTP, from the tower layer, which `fetchRetry` of the JavaScript client is compared
//! with.

use core::fmt;
#[cfg(target_os = "linux")]
use std::io;
use std::path::Path;
use std::sync::{Arc, Mutex};
use std::{fs, vec};

use bytes::Bytes;
use http::{HeaderMap, HeaderValue, Method, Request, Response, header};
use http_body_util::Full;
use serde_json::{Value, json};
use stagger::guard::QuietPeriod;
use stagger::{FailureKind, Outcome, Policy, Retrier, Seed, classify, policy};
use stagger_http::RequestProgress;
use stagger_http::tower::{ReplayBody, RetryLayer};
use tokio::time::Instant;
use tower::{Layer as _, ServiceExt as _, service_fn};

/// Without jitter, and hints as they are, so that the times are those of the rules.
const POLICY: Policy = policy!(constant(secs(1)).jitter(Jitter::None).max_attempts(4).hint_mode(HintMode::Exact));
const ROWS: u64 = 160;

const TOKEN: &str = "00000000000000ff0123456789abcdef";

/// What an attempt can end with: a status with one header, or an error.
const ENDS: [&str; 20] = [
    "200",
    "401",
    "401",
    "403",
    "401 x-should-retry: true",
    "503",
    "503 retry-after: 2",
    "503 stagger-reservation: 500;token=TOKEN",
    "429 retry-after: 2",
    "429 stagger-reservation: 500;token=TOKEN",
    "502 stagger-reservation: 500;token=TOKEN",
    "500 x-should-retry: false",
    "425",
    "421",
    "409",
    "404 x-should-retry: true",
    "refused",
    "lost",
    "unprocessed",
    "unprocessed",
];

/// An attempt without a response.
#[derive(Debug)]
struct NoResponse(&'static str);

impl fmt::Display for NoResponse {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.0)
    }
}

impl core::error::Error for NoResponse {}

fn progress(error: &NoResponse) -> RequestProgress {
    match error.0 {
        "refused" => RequestProgress::NotSent,
        "unprocessed" => RequestProgress::NotProcessed,
        _ => RequestProgress::MaybeProcessed,
    }
}

fn end(text: &'static str) -> Result<Response<Full<Bytes>>, NoResponse> {
    let (status, line) = text.split_once(' ').unwrap_or((text, ""));
    let Ok(status) = status.parse::<u16>() else { return Err(NoResponse(text)) };
    let mut response = Response::builder().status(status);
    if let Some((name, value)) = line.split_once(": ") {
        response = response.header(name, value.replace("TOKEN", TOKEN));
    }
    Ok(response.body(Full::default()).unwrap())
}

/// Returns the call of this number: what is asked, how its attempts end, and what is sent at which time.
async fn call(number: u64) -> Value {
    let random = |index: u64| Seed::new(23).draw(number << 8 | index);
    let script: Vec<_> = (0..6).map(|index| ENDS[(random(index) % ENDS.len() as u64) as usize]).collect();
    let (method, key) =
        [(Method::GET, false), (Method::POST, true), (Method::POST, false)][(random(6) % 3) as usize].clone();
    let credentials = ["fresh", "fresh", "none", "off"][(random(7) % 4) as usize];
    let mut request = Request::builder().method(&method).header(header::AUTHORIZATION, "stale");
    if key {
        request = request.header("idempotency-key", "\"8e03978e\"");
    }
    let body = if method == Method::GET { Full::default() } else { Full::from("an order") };
    let layer = RetryLayer::new(Retrier::new(POLICY)).attempt_header();
    let layer = layer.classify_progress(progress);
    let layer = match credentials {
        "fresh" => layer.refresh_credentials(|_| async {
            Some(HeaderMap::from_iter([(header::AUTHORIZATION, HeaderValue::from_static("fresh"))]))
        }),
        "none" => layer.refresh_credentials(|_| async { None }),
        _ => layer,
    };
    let sent = Arc::new(Mutex::new(Vec::new()));
    let ends: Arc<Mutex<vec::IntoIter<&str>>> = Arc::new(Mutex::new(script.clone().into_iter()));
    let (log, start) = (Arc::clone(&sent), Instant::now());
    let server = service_fn(move |request: Request<ReplayBody<Full<Bytes>>>| {
        let text = |name: &str| request.headers().get(name).map_or("-", |value| value.to_str().unwrap()).to_owned();
        let at = start.elapsed().as_millis();
        let [credentials, attempt, token] = ["authorization", "x-retry-attempt", "stagger-reservation-token"].map(text);
        log.lock().unwrap().push(format!("at {at} attempt {attempt} {credentials} token {token}"));
        let next = end(ends.lock().unwrap().next().unwrap_or("200"));
        async { next }
    });
    let end = match layer.layer(server).oneshot(request.body(body).unwrap()).await {
        Ok(response) => response.status().to_string(),
        Err(error) => error.to_string(),
    };
    let end = end.split(' ').next().unwrap_or_default();
    let sent = sent.lock().unwrap().clone();
    let used = sent.len().min(script.len());
    let script = &script[..used];
    json!({
        "method": method.as_str(), "key": key, "credentials": credentials, "script": script, "sent": sent, "end": end
    })
}

/// Values of `Authorization`: credentials, and signatures of different requests.
const AUTHORIZATIONS: [&str; 31] = [
    "",
    "Bearer one",
    "bearer one",
    "Bearer two",
    "Bearer id=1,x=1",
    "Bearer id=1,x=2",
    "Basic id=1,id=2",
    "AWS4-HMAC-SHA256 Credential=AK1/20260101/us/s3/aws4_request, SignedHeaders=host, Signature=01",
    "AWS4-HMAC-SHA256 Credential=AK1/20260102/eu/s3/aws4_request, SignedHeaders=host;x, Signature=02",
    "AWS4-HMAC-SHA256 Credential=AK2/20260101/us/s3/aws4_request, SignedHeaders=host, Signature=01",
    "AWS4-HMAC-SHA256 Signature=02,  CREDENTIAL=AK1/x",
    "AWS4-ECDSA-P256-SHA256 Credential=AK1/20260101/s3/aws4_request, Signature=01",
    "AWS AK1:01",
    "aws AK1:02",
    "AWS AK1:02",
    "AWS AK1",
    "SharedKey account:01",
    "SharedKey account:02:03",
    "SharedKeyLite account:01",
    "SharedKey other:01",
    "Digest username=\"me\", nonce=\"1\", response=\"2\"",
    "Digest username=\"me\", nonce=\"3\", response=\"4\"",
    "Digest username=\"you\", nonce=\"1\", response=\"2\"",
    "OAuth oauth_consumer_key=\"k\", oauth_token=\"a=b\", oauth_nonce=\"1\"",
    "OAuth oauth_consumer_key=\"k\", oauth_token=\"a=b\", oauth_nonce=\"2\"",
    "OAuth oauth_consumer_key=\"k\", oauth_token=\"a=c\", oauth_nonce=\"2\"",
    "Hawk mac=\"1\"",
    "Hawk mac=\"2\"",
    "Hawk id, mac=\"2\"",
    "secret",
    "secret  id=1",
];

/// Returns for each of the values the number of the first one whose calls wait with its calls.
async fn waiting_together() -> Vec<Value> {
    let mut rows = Vec::new();
    for (number, value) in AUTHORIZATIONS.iter().enumerate() {
        let mut first = number;
        for (earlier, other) in AUTHORIZATIONS.iter().enumerate().take(number) {
            if wait_together(other, value).await {
                first = earlier;
                break;
            }
        }
        rows.push(json!([value, first]));
    }
    rows
}

/// Returns whether a call with the second value waits after the server has asked one with the first to.
async fn wait_together(first: &str, second: &str) -> bool {
    let is_first = Arc::new(Mutex::new(true));
    let server = service_fn(move |_: Request<ReplayBody<Full<Bytes>>>| {
        let status = if core::mem::take(&mut *is_first.lock().unwrap()) { "429 retry-after: 10" } else { "200" };
        async move { end(status) }
    });
    let client = RetryLayer::new(Retrier::new(POLICY).guard(QuietPeriod::new()))
        .guards_by(stagger_http::key::credentials)
        .layer(server);
    let request = |value: &str| {
        let request = Request::post("https://api.example/").header(header::AUTHORIZATION, value);
        request.body(Full::default()).unwrap()
    };
    assert_eq!(client.clone().oneshot(request(first)).await.unwrap().status(), 429);
    let start = Instant::now();
    assert_eq!(client.oneshot(request(second)).await.unwrap().status(), 200);
    start.elapsed().as_secs() > 0
}

/// Names of errors in Node, and what the operating system calls them here.
#[cfg(target_os = "linux")]
const ERRORS: [(&str, i32); 13] = [
    ("ECONNREFUSED", 111),
    ("ECONNRESET", 104),
    ("ECONNABORTED", 103),
    ("EPIPE", 32),
    ("ETIMEDOUT", 110),
    ("EHOSTUNREACH", 113),
    ("ENETUNREACH", 101),
    ("ENETDOWN", 100),
    ("EADDRNOTAVAIL", 99),
    ("EMFILE", 24),
    ("ENFILE", 23),
    ("ENOBUFS", 105),
    ("EAGAIN", 11),
];

#[cfg(target_os = "linux")]
fn error((name, code): (&str, i32)) -> Value {
    let error = io::Error::from_raw_os_error(code);
    let class = match classify::io(&error) {
        Outcome::Failed { kind: FailureKind::LocalExhaustion, .. } => "local",
        Outcome::Failed { .. } => "transient",
        outcome => panic!("{name}: {outcome:?}"),
    };
    json!({ "code": name, "class": class, "isUnsent": RequestProgress::from_error(&error) == RequestProgress::NotSent })
}

fn compare(name: &str, list: &str, rows: &[Value]) {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../clients/js/test/vectors").join(name);
    let rows: Vec<_> = rows.iter().map(|row| format!("    {row}")).collect();
    let text = format!("{{\n  \"{list}\": [\n{}\n  ]\n}}\n", rows.join(",\n"));
    if std::env::var_os("STAGGER_BLESS").is_some() {
        fs::write(&path, &text).unwrap();
    }
    let committed = fs::read_to_string(&path).unwrap_or_default();
    assert!(committed == text, "{} is outdated; run this test with STAGGER_BLESS=1", path.display());
}

#[tokio::test(start_paused = true)]
async fn the_vectors_of_calls_by_the_javascript_client_are_current() {
    let mut calls = Vec::new();
    for number in 0..ROWS {
        calls.push(call(number).await);
    }
    compare("calls.json", "calls", &calls);
}

#[tokio::test(start_paused = true)]
async fn the_vectors_of_calls_that_wait_together_in_the_javascript_client_are_current() {
    compare("signers.json", "authorizations", &waiting_together().await);
}

#[cfg(target_os = "linux")]
#[test]
fn the_vectors_of_errors_in_the_javascript_client_are_current() {
    compare("errors.json", "errors", &ERRORS.map(error));
}
