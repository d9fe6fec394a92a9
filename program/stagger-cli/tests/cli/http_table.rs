//! What `stagger run --http` does after each response: each row of the golden table is run with real clients and a real
//! server, and the guide shows some of its rows.
//!
//! `STAGGER_BLESS=1 cargo nextest run -p stagger-cli -E 'test(http_table)'` writes the golden table.

use core::fmt::Write as _;
use std::io::{BufRead, BufReader};
use std::process::Stdio;
use std::{env, fs, thread};

use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;

use crate::origin::{Answer, OK, Origin};
use crate::support::run;

const PAGE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/guide/run.md");
const GOLDEN: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/cli/golden/http_table.md");
const BEGIN: &str = "<!-- from the code: what is done -->\n";
const END: &str = "<!-- end -->\n";

/// The first answers of the server, before it answers 200.
#[derive(Clone, Copy, Debug)]
enum Server {
    Answers(&'static [Answer]),
    /// Each of these statuses, with the same result.
    Statuses(&'static [u16]),
    /// Nothing listens.
    Absent,
    /// Hangs up on a TLS handshake.
    WithoutTls,
    /// As a proxy, refuses to open a tunnel.
    Proxy(&'static [Answer]),
}

const fn head(lines: &'static [&'static str]) -> Answer {
    Answer::Head(lines)
}

const MOVED: Answer = head(&["HTTP/1.1 302 Found", "Location: /there"]);
const BUSY: &str = "HTTP/1.1 503 Service Unavailable";
const TOO_MANY: &str = "HTTP/1.1 429 Too Many Requests";
const RESERVED: &str = "stagger-reservation: 30000;token=0123456789abcdef0123456789abcdef";
const NOW: &str = "Date: Sun, 06 Nov 1994 08:49:37 GMT";

const ROWS: &[(&str, Server)] = &[
    ("429, `Retry-After: 30`", Server::Answers(&[head(&[TOO_MANY, "Retry-After: 30"])])),
    ("503, `Retry-After: 30`", Server::Answers(&[head(&[BUSY, "Retry-After: 30"])])),
    (
        "503, `Retry-After:` a date 90 s after its `Date`",
        Server::Answers(&[head(&[BUSY, NOW, "Retry-After: Sun, 06 Nov 1994 08:51:07 GMT"])]),
    ),
    ("503, `retry-after-ms: 250`", Server::Answers(&[head(&[BUSY, "Retry-After: 1", "retry-after-ms: 250"])])),
    (
        "429, `RateLimit: \"default\";r=0;t=30`",
        Server::Answers(&[head(&[TOO_MANY, "RateLimit: \"default\";r=0;t=30"])]),
    ),
    (
        "429, `X-RateLimit-Remaining: 0`, `X-RateLimit-Reset: 30`",
        Server::Answers(&[head(&[TOO_MANY, "X-RateLimit-Remaining: 0", "X-RateLimit-Reset: 30"])]),
    ),
    ("429 or 503, no hint", Server::Statuses(&[429, 503])),
    ("503, `Retry-After: soon`", Server::Answers(&[head(&[BUSY, "Retry-After: soon"])])),
    ("503, `Retry-After:` empty", Server::Answers(&[head(&[BUSY, "Retry-After:"])])),
    ("503, `Retry-After: 301`", Server::Answers(&[head(&[BUSY, "Retry-After: 301"])])),
    ("503, `x-should-retry: false`", Server::Answers(&[head(&[BUSY, "x-should-retry: false"])])),
    ("408, 425, 500, 502, 504, 599", Server::Statuses(&[408, 425, 500, 502, 504, 599])),
    ("409", Server::Statuses(&[409])),
    ("400, 403, 404, 405, 410, 422, 501, 505", Server::Statuses(&[400, 403, 404, 405, 410, 422, 501, 505])),
    ("400, `x-should-retry: true`", Server::Answers(&[head(&["HTTP/1.1 400 Bad Request", "x-should-retry: true"])])),
    ("302, and there 503, `Retry-After: 30`", Server::Answers(&[MOVED, head(&[BUSY, "Retry-After: 30"])])),
    (
        "302, and there the connection is refused",
        Server::Answers(&[head(&["HTTP/1.1 302 Found", "Location: http://127.0.0.1:1/"])]),
    ),
    ("302, and there 404", Server::Answers(&[MOVED, head(&["HTTP/1.1 404 Not Found"])])),
    ("503, `stagger-reservation` in 30 s", Server::Answers(&[head(&[BUSY, RESERVED])])),
    (
        "307, and there 503, `stagger-reservation` in 30 s",
        Server::Answers(&[head(&["HTTP/1.1 307 Temporary Redirect", "Location: /there"]), head(&[BUSY, RESERVED])]),
    ),
    (
        "100, then 503, `Retry-After: 30`",
        Server::Answers(&[head(&["HTTP/1.1 100 Continue", "", BUSY, "Retry-After: 30"])]),
    ),
    ("a proxy that refuses the tunnel: 503, `Retry-After: 30`", Server::Proxy(&[head(&[BUSY, "Retry-After: 30"])])),
    ("200", Server::Answers(&[OK])),
    (
        "200, `Retry-After: 30`, and the server dies in the middle of the body",
        Server::Answers(&[Answer::HalfBody(&["HTTP/1.1 200 OK", "Retry-After: 30"])]),
    ),
    ("503, `Retry-After: 30`, and dies there", Server::Answers(&[Answer::HalfBody(&[BUSY, "Retry-After: 30"])])),
    (
        "503, `Retry-After: 30`, and dies in the headers",
        Server::Answers(&[Answer::HalfHead(&[BUSY, "Retry-After: 30"])]),
    ),
    ("nothing: the server closes the connection", Server::Answers(&[Answer::Nothing])),
    ("nothing before the client's time-out", Server::Answers(&[Answer::Silence])),
    ("nothing: the connection is refused", Server::Absent),
    ("nothing: the TLS handshake fails", Server::WithoutTls),
];

/// The commands of the columns. `-L` follows redirects, as wget does.
const COLUMNS: [(&str, &[&str]); 4] = [
    ("`curl`", &["curl", "-fsSL"]),
    ("`curl -d`", &["curl", "-fsSL", "-d", "order"]),
    ("`curl -d`, with a key", &["curl", "-fsSL", "-d", "order", "-H", "Idempotency-Key: 7"]),
    ("`wget`", &["wget", "-qO-", "--tries=1"]),
];

/// What is done after the first attempt, and its exit code.
type Reaction = (String, u64);

/// Runs a client until stagger has decided what to do after its first attempt.
fn reaction(client: &[&str], server: Server, status: Option<u16>) -> Reaction {
    let line = status.map(|status| &*format!("HTTP/1.1 {status} Reason").leak());
    let answers = match server {
        Server::Answers(answers) | Server::Proxy(answers) => answers.to_vec(),
        Server::WithoutTls => vec![Answer::Hangup],
        Server::Statuses(_) | Server::Absent => line.map(|line| head(vec![line].leak())).into_iter().collect(),
    };
    let origin = Origin::start(&[&answers[..], &[OK]].concat());
    let mut command = run(["-n", "2", "--log", "json", "--http", "--"]);
    command.args(client);
    if answers.iter().any(|answer| matches!(answer, Answer::Silence)) {
        command.args(if client[0] == "curl" { ["-m", "0.3"] } else { ["--timeout", "0.3"] });
    }
    command.stdout(Stdio::null()).stderr(Stdio::piped());
    match server {
        Server::Absent => command.arg(Origin::nowhere()),
        Server::WithoutTls => command.arg(origin.https_url()),
        Server::Proxy(_) => command.arg("https://origin.invalid/").env("https_proxy", origin.url()),
        Server::Answers(_) | Server::Statuses(_) => command.arg(origin.url()),
    };
    let mut child = command.spawn().expect("stagger starts");
    let log = BufReader::new(child.stderr.take().expect("standard error is piped"));
    // The client writes lines of its own.
    let mut attempts = log.lines().map_while(Result::ok).filter_map(|line| serde_json::from_str::<Value>(&line).ok());
    let first = attempts.find(|line| line["event"] == "attempt").expect("the log has an attempt");
    // What it waits for is known.
    kill_process(Pid::from_child(&child), Signal::TERM).expect("stagger has not been waited for");
    attempts.for_each(drop);
    child.wait().expect("stagger ends");
    let done = match (first["retry_after_s"].as_f64(), first["next_s"].as_f64(), first["reason"].as_str()) {
        (Some(after), Some(next), _) => {
            assert!(next >= after, "{first}");
            format!("after {after} s")
        }
        (None, Some(_), _) => "after the delay".to_owned(),
        (_, None, Some("http-status" | "http-exit")) => "no".to_owned(),
        (_, None, Some("unsafe-to-retry")) => "no: unsafe".to_owned(),
        (_, None, Some("server")) => "no: forbidden".to_owned(),
        (_, None, None) if first["stop"] == "hint" => "no: too late".to_owned(),
        (_, None, None) if first["result"] == "ok" => "done".to_owned(),
        _ => panic!("{first}"),
    };
    (done, first["code"].as_u64().expect("an attempt has an exit code"))
}

/// Returns the reaction to all statuses of a row, which is the same.
fn cell(client: &[&str], server: Server) -> Reaction {
    let Server::Statuses(statuses) = server else { return reaction(client, server, None) };
    let mut all: Vec<_> = statuses.iter().map(|&status| reaction(client, server, Some(status))).collect();
    // Wget has several exit codes for a failed response.
    all.dedup_by(|(done, code), (first, first_code)| done == first && (code == first_code || client[0] == "wget"));
    assert_eq!(all.len(), 1, "{client:?} {statuses:?}: {all:?}");
    all.remove(0)
}

fn row((label, server): (&str, Server)) -> String {
    let cells = COLUMNS.map(|(_, client)| cell(client, server));
    // Of curl without data.
    let code = cells[0].1;
    let cells: Vec<_> = cells.into_iter().map(|(done, _)| done).collect();
    format!("| {label} | {} | {code} |\n", cells.join(" | "))
}

/// Takes a few seconds, because it runs two clients in some 150 processes.
#[test]
fn the_golden_table_is_what_is_done() {
    needs!("curl");
    let mut table = "| the response |".to_owned();
    COLUMNS.iter().for_each(|(name, _)| write!(table, " {name} |").unwrap());
    table += " exit code |\n|---|---|---|---|---|---|\n";
    let rows = thread::scope(|scope| {
        let parts = ROWS
            .chunks(ROWS.len().div_ceil(4))
            .map(|rows| scope.spawn(|| rows.iter().map(|&(label, server)| row((label, server))).collect::<String>()));
        let parts: Vec<_> = parts.collect();
        parts.into_iter().map(|part| part.join().unwrap()).collect::<String>()
    });
    table += &rows;
    if env::var_os("STAGGER_BLESS").is_some() {
        fs::write(GOLDEN, table).unwrap();
        return;
    }
    let is = fs::read_to_string(GOLDEN).unwrap();
    for (is, should) in is.lines().zip(table.lines()) {
        assert_eq!(is, should);
    }
    assert_eq!(is, table);
}

/// Returns the cells of a row without that of wget, which the guide does not show.
fn cells_of_curl(row: &str) -> Vec<&str> {
    let mut cells: Vec<_> = row.split('|').map(str::trim).collect();
    cells.remove(5);
    cells
}

#[test]
fn the_rows_of_the_guide_are_those_of_the_golden_table() {
    let golden = fs::read_to_string(GOLDEN).unwrap();
    let golden: Vec<_> = golden.lines().filter(|row| !row.starts_with("|-")).map(cells_of_curl).collect();
    let page = fs::read_to_string(PAGE).unwrap();
    let (_, rest) = page.split_once(BEGIN).unwrap();
    let (table, _) = rest.split_once(END).unwrap();
    let rows = table.lines().filter(|row| row.starts_with("| "));
    let rows: Vec<Vec<_>> = rows.map(|row| row.split('|').map(str::trim).collect()).collect();
    assert!(rows.len() > 5, "{rows:?}");
    for row in rows {
        assert!(golden.contains(&row), "{row:?}");
    }
}
