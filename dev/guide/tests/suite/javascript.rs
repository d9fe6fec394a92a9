//! Golden vectors of the HTTP rules, which the JavaScript client is compared with.

use core::time::Duration;
use std::fs;
use std::path::Path;
use std::time::SystemTime;

use http::{HeaderMap, HeaderName, HeaderValue, Method, StatusCode};
use serde_json::{Value, json};
use stagger::{FailureKind, Outcome, ServerHint};
use stagger_http::hint::server_hint;
use stagger_http::status::{announced_wait, response_outcome};
use stagger_http::{Idempotency, RequestProgress};

/// Seconds since 1970: 2026-11-23 12:00:00.
const NOW: u64 = 1_795_435_200;

const TOKEN: &str = "00000000000000ff0123456789abcdef";

/// Headers, right and wrong. Several values are several lines.
const HEADERS: &[&[(&str, &str)]] = &[
    &[],
    &[("retry-after", "120")],
    &[("retry-after", "0")],
    &[("retry-after", " 7\t")],
    &[("retry-after", "-1")],
    &[("retry-after", "+1")],
    &[("retry-after", "1.5")],
    &[("retry-after", "1e308")],
    &[("retry-after", "soon")],
    &[("retry-after", "")],
    &[("retry-after", "99999999999999999999999999")],
    &[("retry-after", "18446744073709551615")],
    &[("retry-after", "18446744073709551616")],
    &[("retry-after", "000000000000000000000000000001")],
    &[("retry-after", "0x10")],
    &[("retry-after", "2"), ("retry-after", "30"), ("retry-after", "x")],
    &[("retry-after", "Mon, 23 Nov 2026 12:00:30 GMT")],
    &[("retry-after", "Mon, 23 Nov 2026 12:00:30 GMT"), ("retry-after", "40")],
    &[("retry-after", "40"), ("retry-after", "Mon, 23 Nov 2026 12:01:30 GMT")],
    &[("retry-after", "Mon, 23 Nov 2026 11:00:00 GMT")],
    &[("retry-after", "Fri, 31 Dec 9999 23:59:59 GMT")],
    &[("retry-after", "Fri, 31 Dec 9999 23:59:60 GMT")],
    &[("retry-after", "Sat, 01 Jan 10000 00:00:00 GMT")],
    &[("retry-after", "Sun, 06 Nov 1994 08:49:37 GMT")],
    &[("retry-after", "Sun Nov  6 08:49:37 1994")],
    &[("retry-after", "Mon Nov 23 12:00:09 2026")],
    &[("retry-after", "Monday, 23-Nov-26 12:00:07 GMT")],
    &[("retry-after", "Tuesday, 23-Nov-76 12:00:07 GMT")],
    &[("retry-after", "Monday, 24-Nov-76 12:00:07 GMT")],
    &[("retry-after", "Tuesday, 24-Nov-76 12:00:07 GMT")],
    &[("retry-after", "Tuesday, 23-Nov-26 12:00:07 GMT")],
    &[("retry-after", "Tue, 23 Nov 2026 12:00:30 GMT")],
    &[("retry-after", "Mon, 23 Nov 2026 12:00:30 UTC")],
    &[("retry-after", "Mon, 23 Nov 2026 12:00:60 GMT")],
    &[("retry-after", "Mon, 23 Nov 2026 12:00:61 GMT")],
    &[("retry-after", "Mon, 23 Nov 2026 24:00:00 GMT")],
    &[("retry-after", "Mon, 31 Nov 2026 12:00:30 GMT")],
    &[("retry-after", "Sun, 29 Feb 2032 12:00:30 GMT")],
    &[("retry-after", "Tue, 29 Feb 2100 12:00:30 GMT")],
    &[("retry-after", "Wed, 31 Dec 1969 23:59:59 GMT")],
    &[("retry-after", "mon, 23 nov 2026 12:00:30 gmt")],
    &[("retry-after", "Mon, 23 Nov 2026 12:00:30 GMT"), ("date", "Mon, 23 Nov 2026 12:00:10 GMT")],
    &[("retry-after", "Mon, 23 Nov 2026 12:00:30 GMT"), ("date", "Mon, 23 Nov 2027 12:00:10 GMT")],
    &[("retry-after", "Mon, 23 Nov 2026 12:00:30 GMT"), ("date", "nonsense")],
    &[("retry-after", "5"), ("date", "Mon, 23 Nov 2026 11:00:10 GMT")],
    &[("retry-after-ms", "1500")],
    &[("retry-after-ms", "1500.25"), ("retry-after", "9")],
    &[("retry-after-ms", "0.123456789")],
    &[("retry-after-ms", ".5"), ("retry-after", "9")],
    &[("retry-after-ms", "5."), ("retry-after", "9")],
    &[("retry-after-ms", "-5"), ("retry-after", "9")],
    &[("retry-after-ms", "10"), ("retry-after-ms", "20")],
    &[("x-ms-retry-after-ms", "20"), ("retry-after", "9")],
    &[("retry-after-ms", "x"), ("x-ms-retry-after-ms", "20")],
    &[("x-amz-retry-after", "250"), ("retry-after", "9")],
    &[("x-amz-retry-after", "250.5"), ("retry-after", "9")],
    &[("x-should-retry", "false"), ("retry-after", "9")],
    &[("x-should-retry", "true"), ("retry-after", "9")],
    &[("x-should-retry", "true")],
    &[("x-should-retry", "False"), ("retry-after", "9")],
    &[("x-should-retry", "false"), ("x-should-retry", "false"), ("retry-after", "9")],
    &[("stagger-reservation", "1520;token=TOKEN"), ("retry-after", "9")],
    &[("stagger-reservation", "1520 ; token=TOKEN")],
    &[("stagger-reservation", "0;token=TOKEN")],
    &[("stagger-reservation", "-1;token=TOKEN"), ("retry-after", "9")],
    &[("stagger-reservation", "1520;token=TOKEN0"), ("retry-after", "9")],
    &[("stagger-reservation", "1520;token="), ("retry-after", "9")],
    &[("stagger-reservation", "1520;token=TOKEN"), ("stagger-reservation", "1;token=TOKEN"), ("retry-after", "9")],
    &[("stagger-reservation", "99999999999999999999;token=TOKEN"), ("retry-after", "9")],
    &[("ratelimit", "\"default\";r=0;t=30")],
    &[("ratelimit", "\"default\";r=1;t=30")],
    &[("ratelimit", "\"a\";r=0;t=30, \"b\";r=0;t=60,\"c\";r=3;t=90")],
    &[("ratelimit", "\"a\";r=0;t=30"), ("ratelimit", "\"b\";r=0;t=60")],
    &[("ratelimit", "\"a\";r=0;t=-5")],
    &[("ratelimit", "\"a\";r=0;t=5.5")],
    &[("ratelimit", "\"a\\\"b\";pk=:YWJj:;r=0;x=?1;y=tok;t=12")],
    &[("ratelimit", "\"a\";r=0;r=1;t=12")],
    &[("ratelimit", "\"a\";r=0;t=12,")],
    &[("ratelimit", "default;r=0;t=12")],
    &[("ratelimit", "limit=100, remaining=0, reset=30")],
    &[("ratelimit", "limit=100, remaining=5, reset=30")],
    &[("ratelimit", "limit=100, remaining=0;w=5, reset=30;q")],
    &[("ratelimit", "limit=100, remaining=0, reset=x")],
    &[("ratelimit", "limit=100, remaining=0, reset=30, reset=40")],
    &[("ratelimit", "remaining=0, reset=30,")],
    &[("ratelimit", "100")],
    &[("ratelimit", ""), ("ratelimit-reset", "20")],
    &[("ratelimit-remaining", "0"), ("ratelimit-reset", "20")],
    &[("ratelimit-remaining", "3"), ("ratelimit-reset", "20")],
    &[("ratelimit-reset", "20")],
    &[("ratelimit-remaining", "x"), ("ratelimit-reset", "20")],
    &[("x-ratelimit-remaining", "0"), ("x-ratelimit-reset", "1795435260")],
    &[("x-ratelimit-remaining", "0"), ("x-ratelimit-reset", "1000000000")],
    &[("x-ratelimit-remaining", "0"), ("x-ratelimit-reset", "999999999")],
    // Unix times in milliseconds, in seconds, and with a fraction, in every header; and what is no time at all.
    &[("x-ratelimit-remaining", "0"), ("x-ratelimit-reset", "1795435202000")],
    &[("x-ratelimit-remaining", "0"), ("x-ratelimit-reset", "1795435198000")],
    &[("x-ratelimit-remaining", "0"), ("x-ratelimit-reset", "1795435202.25")],
    &[("x-ratelimit-remaining", "0"), ("x-ratelimit-reset", "1795435202000.25")],
    &[("x-ratelimit-remaining", "0"), ("x-ratelimit-reset", "64.5")],
    &[("x-ratelimit-remaining", "0"), ("x-ratelimit-reset", ".5")],
    &[("x-ratelimit-remaining", "0"), ("x-ratelimit-reset", "1.795435202e9")],
    &[("x-ratelimit-remaining", "0"), ("x-ratelimit-reset", "31622400")],
    &[("x-ratelimit-remaining", "0"), ("x-ratelimit-reset", "31622401")],
    &[("x-ratelimit-remaining", "0"), ("x-ratelimit-reset", "1827057600")],
    &[("x-ratelimit-remaining", "0"), ("x-ratelimit-reset", "1827057601")],
    &[("x-ratelimit-remaining", "0"), ("x-ratelimit-reset", "1795435202000000")],
    &[("x-ratelimit-remaining", "0"), ("x-ratelimit-reset", "18446744073709551615")],
    &[("ratelimit-remaining", "0"), ("ratelimit-reset", "1795435202000"), ("x-ratelimit-reset", "8")],
    &[("ratelimit-remaining", "0"), ("ratelimit-reset", "4102444800"), ("x-ratelimit-reset", "8")],
    &[("ratelimit", "\"a\";r=0;t=1795435202")],
    &[("ratelimit", "\"a\";r=0;t=1795435202000, \"b\";r=0;t=999999999999999, \"c\";r=0;t=1")],
    &[("ratelimit", "limit=100, remaining=0, reset=1795435202000")],
    &[("ratelimit", "limit=100, remaining=0, reset=40000000"), ("ratelimit-reset", "20")],
    &[("retry-after", "1795435202")],
    &[("retry-after", "1795435202000")],
    &[("retry-after", "1795435100")],
    &[("retry-after", "1795435202"), ("date", "Mon, 23 Nov 2026 12:00:01 GMT")],
    &[("retry-after", "2147483647"), ("retry-after", "9")],
    &[("retry-after", "31622400")],
    &[("retry-after", "31622401"), ("ratelimit-reset", "20")],
    &[("retry-after", "999999999")],
    &[("retry-after", "Tue, 24 Nov 2027 12:00:01 GMT"), ("ratelimit-reset", "20")],
    &[("retry-after-ms", "1795435202000"), ("retry-after", "9")],
    &[("retry-after-ms", "1795435202000.5"), ("retry-after", "9")],
    &[("retry-after-ms", "1795435202"), ("retry-after", "9")],
    &[("retry-after-ms", "1e3"), ("retry-after", "9")],
    &[("retry-after-ms", "99999999999999999999999999.999"), ("retry-after", "9")],
    &[("x-ms-retry-after-ms", "1795435202000"), ("retry-after", "9")],
    &[("x-amz-retry-after", "1795435202000"), ("retry-after", "9")],
    &[("x-amz-retry-after", "253402300799000"), ("retry-after", "9")],
    &[("stagger-reservation", "31622400000;token=TOKEN")],
    &[("stagger-reservation", "31622400001;token=TOKEN"), ("retry-after", "9")],
    &[("stagger-reservation", "1795435202000;token=TOKEN"), ("retry-after", "9")],
    &[("ratelimit-remaining", "1"), ("ratelimit-reset", "5"), ("x-ratelimit-reset", "8")],
    &[("retry-after", "3"), ("ratelimit-reset", "20")],
];

/// Returns the vectors: the hint of each list of headers, and how every status is classified.
fn vectors() -> String {
    let now = SystemTime::UNIX_EPOCH + Duration::from_secs(NOW);
    let hints = HEADERS.iter().map(|lines| {
        let lines: Vec<_> = lines.iter().map(|(name, value)| (*name, value.replace("TOKEN", TOKEN))).collect();
        let mut headers = HeaderMap::new();
        for (name, value) in &lines {
            headers.append(HeaderName::from_static(name), HeaderValue::from_bytes(value.as_bytes()).unwrap());
        }
        json!({ "headers": lines, "hint": server_hint(&headers, || now).map(shown) })
    });
    let hints: Vec<_> = hints.collect();
    let mut statuses = Vec::new();
    for idempotency in [Idempotency::ByMethod, Idempotency::ByKey, Idempotency::OnlyIfUnsent] {
        for (says, hint) in [(None, None), (None, Some(9)), (Some("true"), None), (Some("false"), None)] {
            statuses.push(classified(idempotency, says, hint));
        }
    }
    let announced: Vec<_> = ANNOUNCED.iter().map(|(status, lines)| announced(*status, lines, now)).collect();
    let rows = |rows: &[Value]| rows.iter().map(|row| format!("    {row}")).collect::<Vec<_>>().join(",\n");
    format!(
        "{{\n  \"now\": {NOW},\n  \"hints\": [\n{}\n  ],\n  \"announced\": [\n{}\n  ],\n  \"statuses\": [\n{}\n  ]\n}}\n",
        rows(&hints),
        rows(&announced),
        rows(&statuses)
    )
}

/// Responses that announce a wait, or seem to.
const ANNOUNCED: &[(u16, &[(&str, &str)])] = &[
    (403, &[("retry-after", "60")]),
    (403, &[("retry-after-ms", "1500")]),
    (403, &[("x-amz-retry-after", "1500")]),
    (403, &[("stagger-reservation", "1520;token=00000000000000ff0123456789abcdef")]),
    (403, &[("x-ratelimit-remaining", "0"), ("x-ratelimit-reset", "1795435202")]),
    (403, &[("x-ratelimit-remaining", "0")]),
    (403, &[("ratelimit-remaining", "0")]),
    (403, &[("ratelimit", "\"default\";r=0;t=30")]),
    (403, &[("ratelimit", "\"default\";r=1;t=30")]),
    (403, &[("ratelimit", "limit=9, remaining=0, reset=40000000")]),
    (403, &[("retry-after", "60"), ("x-ratelimit-remaining", "17")]),
    (403, &[("x-ratelimit-remaining", "17"), ("x-ratelimit-reset", "1795435202")]),
    (403, &[("x-ratelimit-reset", "30")]),
    (403, &[("retry-after", "soon")]),
    (403, &[("retry-after", "60"), ("x-should-retry", "false")]),
    (403, &[]),
    (413, &[("retry-after", "60")]),
    (413, &[("x-ratelimit-remaining", "0"), ("x-ratelimit-reset", "1795435202")]),
    (413, &[]),
    (401, &[("retry-after", "60")]),
    (404, &[("x-ratelimit-remaining", "0"), ("retry-after", "60")]),
];

fn announced(status: u16, lines: &[(&'static str, &'static str)], now: SystemTime) -> Value {
    let lines_of = lines.iter().map(|(name, value)| (HeaderName::from_static(name), HeaderValue::from_static(value)));
    let headers = HeaderMap::from_iter(lines_of);
    let hint = server_hint(&headers, || now);
    let found = announced_wait(StatusCode::from_u16(status).unwrap(), &headers, hint);
    json!({ "status": status, "headers": lines, "isThrottled": found == Some(Outcome::throttled(hint)) })
}

fn shown(hint: ServerHint) -> String {
    match hint {
        ServerHint::AtLeast(wait) => format!("at-least {}", nanos(wait)),
        ServerHint::Reserved(wait) => format!("reserved {}", nanos(wait)),
        _ => "do-not-retry".to_owned(),
    }
}

/// Returns a length as the core reads it: it saturates.
fn nanos(length: Duration) -> u64 {
    u64::try_from(length.as_nanos()).unwrap_or(u64::MAX)
}

/// Returns the classes of the statuses from 200 to 599, which are all that `fetch` returns.
fn classified(idempotency: Idempotency, says: Option<&'static str>, hint: Option<u64>) -> Value {
    let headers: HeaderMap = says
        .map(|says| (HeaderName::from_static("x-should-retry"), HeaderValue::from_static(says)))
        .into_iter()
        .chain(hint.map(|seconds| (http::header::RETRY_AFTER, HeaderValue::from(seconds))))
        .collect();
    let hint = server_hint(&headers, || SystemTime::UNIX_EPOCH);
    let class = |status| match response_outcome(StatusCode::from_u16(status).unwrap(), &headers, idempotency, hint) {
        Outcome::Success => 's',
        Outcome::Permanent => 'p',
        Outcome::Failed { kind: FailureKind::Throttled, .. } => 'o',
        Outcome::Failed { .. } => 't',
        outcome => panic!("{outcome:?}"),
    };
    let name = match idempotency {
        Idempotency::ByKey => "key",
        Idempotency::ByMethod => "method",
        _ => "none",
    };
    let headers: Vec<_> = headers.iter().map(|(name, value)| (name.as_str(), value.to_str().unwrap())).collect();
    json!({ "idempotency": name, "headers": headers, "classes": (200..600).map(class).collect::<String>() })
}

#[test]
fn the_http_vectors_of_the_javascript_client_are_current() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../clients/js/test/vectors/http.json");
    let vectors = vectors();
    if std::env::var_os("STAGGER_BLESS").is_some() {
        fs::write(&path, &vectors).unwrap();
    }
    let committed = fs::read_to_string(&path).unwrap_or_default();
    assert!(committed == vectors, "{} is outdated; run this test with STAGGER_BLESS=1", path.display());
}

#[test]
fn the_methods_of_the_javascript_client_are_those_that_are_idempotent() {
    let listed =
        fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join("../../clients/js/src/fetch-rules.ts")).unwrap();
    let line = listed.lines().find(|line| line.starts_with("const IDEMPOTENT")).unwrap();
    for method in [
        Method::GET,
        Method::HEAD,
        Method::OPTIONS,
        Method::TRACE,
        Method::PUT,
        Method::DELETE,
        Method::POST,
        Method::PATCH,
        Method::CONNECT,
    ] {
        let idempotency = Idempotency::from_request(&method, &HeaderMap::new());
        let allows_retry = idempotency.allows_retry(RequestProgress::MaybeProcessed);
        assert_eq!(line.contains(&format!("\"{method}\"")), allows_retry, "{method}");
    }
}

#[test]
fn the_javascript_client_knows_the_headers_with_credentials_and_the_parts_of_signatures() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let list = |path: &str, name: &str| {
        let source = fs::read_to_string(root.join(path)).unwrap();
        let (_, list) = source.split_once(&format!("const {name}")).unwrap();
        let (list, _) = list.split_once("];").unwrap();
        list.split('"').skip(1).step_by(2).map(str::to_owned).collect::<Vec<_>>()
    };
    for (name, length) in [("CREDENTIALS", 11), ("SIGNER", 6), ("ACCOUNT_AND_SIGNATURE", 4), ("OPAQUE", 2)] {
        let ours = list("crates/stagger-http/src/key.rs", name);
        assert_eq!(ours.len(), length, "{name}");
        assert_eq!(list("clients/js/src/quiet-periods.ts", name), ours, "{name}");
    }
}

#[test]
fn the_package_that_the_pages_install_is_the_one_that_is_packed() {
    let client = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../clients/js");
    let package: Value = serde_json::from_str(&fs::read_to_string(client.join("package.json")).unwrap()).unwrap();
    let (name, version) = (package["name"].as_str().unwrap(), package["version"].as_str().unwrap());
    assert!(package["scripts"]["build"].is_string() && package["files"].as_array().unwrap().contains(&"dist".into()));
    let install = format!("npm install /path/to/clone/clients/js/{name}-{version}.tgz ");
    for page in [client.join("README.md"), client.join("../../docs/guide/browsers.md")] {
        let page = fs::read_to_string(page).unwrap();
        assert!(page.contains(&install) && page.contains("npm install && npm run build && npm pack"), "{install}");
    }
}
