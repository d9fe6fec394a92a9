use std::io::Write;
use std::net::{TcpStream, UdpSocket};
use std::time::Instant;

use super::server::{Answer, ENDLESS, RACE, Server, read};
use crate::support::PATIENCE;

#[test]
fn other_hosts_and_other_sites_are_refused() {
    let server = Server::start();
    let port = server.address.port();
    let own = format!("origin: http://127.0.0.1:{port}");
    for (headers, want) in [
        (&["host: evil.example"][..], 403),
        (&[&*format!("host: evil.example:{port}")], 403),
        (&["origin: http://evil.example"], 403),
        (&["origin: null"], 403),
        (&["sec-fetch-site: cross-site", "sec-fetch-mode: no-cors"], 403),
        (&[&*own, "sec-fetch-site: same-origin"], 200),
        (&[&*format!("host: localhost:{port}")], 200),
        (&[], 200),
    ] {
        for answer in [server.request("GET", "/", headers, ""), server.request("POST", "/api/race", headers, RACE)] {
            assert_eq!(answer.status, want, "{headers:?}: {answer:?}");
            assert!(!answer.head.contains("access-control-allow"), "{answer:?}");
        }
    }
    let form = server.request("POST", "/api/race", &["content-type: text/plain"], RACE);
    assert!(form.error(415).contains("must be JSON"));
}

#[test]
fn every_response_has_a_strict_content_security_policy() {
    let server = Server::start();
    for path in ["/", "/main.js", "/style.css", "/api/presets", "/none"] {
        let answer = server.get(path);
        assert_eq!(answer.status, if path == "/none" { 404 } else { 200 }, "{answer:?}");
        let policy = answer.head.lines().find(|line| line.starts_with("content-security-policy: ")).expect("a policy");
        for part in ["default-src 'none'", "script-src 'self'", "style-src 'self'", "frame-ancestors 'none'"] {
            assert!(policy.contains(part), "{policy}");
        }
        assert!(!policy.contains("unsafe") && !policy.contains("http"), "{policy}");
        assert!(answer.head.contains("x-content-type-options: nosniff"), "{answer:?}");
    }
}

#[test]
fn nothing_listens_outside_loopback() {
    let server = Server::start();
    assert!(server.address.ip().is_loopback(), "{}", server.address);
    // The address that this machine would send from; no packet is sent.
    let socket = UdpSocket::bind("0.0.0.0:0").unwrap();
    if socket.connect("192.0.2.1:9").is_ok() {
        let outside = socket.local_addr().unwrap().ip();
        if !outside.is_loopback() {
            assert!(TcpStream::connect((outside, server.address.port())).is_err(), "reachable at {outside}");
        }
    }
    #[cfg(target_os = "linux")]
    for table in ["/proc/net/tcp", "/proc/net/tcp6"] {
        let table = std::fs::read_to_string(table).unwrap_or_default();
        let port = format!(":{:04X}", server.address.port());
        let listens = |line: &&str| line.split_whitespace().nth(3) == Some("0A");
        let local = |line: &str| line.split_whitespace().nth(1).unwrap_or_default().to_owned();
        for address in table.lines().filter(listens).map(local).filter(|address| address.ends_with(&port)) {
            assert_eq!(address, format!("0100007F{port}"));
        }
    }
}

#[test]
fn a_port_in_use_is_an_error_with_a_remedy() {
    let server = Server::start();
    let port = server.address.port().to_string();
    let seen = crate::support::see(&mut crate::support::stagger(["serve", "--no-open", "--port", &port]));
    seen.exits(125).says(&format!("cannot listen on 127.0.0.1:{port}; try another --port, or 0: "));
}

#[test]
fn what_is_too_large_is_refused_with_a_reason() {
    let server = Server::start();
    let ten_megabytes = format!("{{\"policy\":\"{}\"}}", "x".repeat(10_000_000));
    assert!(server.post("/api/policy", &ten_megabytes).error(413).contains("longer than 16384 bytes"));
    let long_address = server.get(&format!("/?a={}", "x".repeat(1_000_000)));
    assert!((400..500).contains(&long_address.status), "{long_address:?}");
    for (settings, want) in [
        (r#"[["clients","1000000000"]]"#, "clients"),
        (r#"[["clients","2M"]]"#, "2000000 clients are more than the 1000000 that the page simulates"),
        (r#"[["horizon","1000h"]]"#, "horizon"),
        (r#"[["guards","tokens"]]"#, "the page has no setting `guards`"),
        (r#"[["weather","fine"]]"#, "the page has no setting `weather`"),
    ] {
        let answer = server.post("/api/race", &format!("{{\"policies\":[\"socket.io\"],\"settings\":{settings}}}"));
        let error = answer.error(422);
        assert!(error.contains(want), "{error}");
    }
    let three = server.post("/api/race", r#"{"policies":["socket.io","curl","phoenix"]}"#);
    assert!(three.error(422).contains("3 policies cannot race"));
    assert!(server.post("/api/race", "[").error(400).contains("the body is not as expected"));
    #[cfg(target_os = "linux")]
    assert!(server.peak_memory_mib() < 100, "{} MiB", server.peak_memory_mib());
}

#[test]
fn a_policy_never_names_a_file() {
    let server = Server::start();
    let files = crate::support::Files::new();
    let path = files.write("policy", "exponential base=7s");
    for spec in [format!("@{}", path.display()), path.display().to_string()] {
        let error = server.post("/api/policy", &serde_json::json!({ "policy": spec }).to_string()).error(422);
        assert!(error.contains("is not a backoff") && !error.contains("is a file"), "{error}");
    }
}

#[test]
fn a_hundred_pages_at_once_are_answered_or_told_to_wait() {
    let server = Server::start();
    let request = server.written("POST", "/api/race", &[], RACE);
    // All are connected before the first is read.
    let streams: Vec<TcpStream> = (0..100).map(|_| server.connect()).collect();
    for mut stream in &streams {
        stream.write_all(&request).unwrap();
    }
    let answers: Vec<Answer> = streams.into_iter().map(read).collect();
    let done = answers.iter().filter(|answer| answer.body.contains("event: done")).count();
    let busy = answers.iter().filter(|answer| answer.status == 503).count();
    assert_eq!(done + busy, 100, "{:?}", answers.iter().map(|answer| answer.status).collect::<Vec<_>>());
    assert!(done >= 16, "{done} done");
    assert!(server.post("/api/race", RACE).body.contains("event: done"), "it answers afterwards");
    #[cfg(target_os = "linux")]
    assert!(server.peak_memory_mib() < 200, "{} MiB", server.peak_memory_mib());
}

#[test]
fn a_closed_connection_cancels_its_simulation() {
    let server = Server::start();
    let begun = Instant::now();
    // More than run at a time.
    for _ in 0..10 {
        let mut stream = server.connect();
        stream.write_all(&server.written("POST", "/api/race", &[], ENDLESS)).unwrap();
        let mut first = [0; 12];
        std::io::Read::read_exact(&mut stream, &mut first).unwrap();
        assert_eq!(&first, b"HTTP/1.1 200");
    }
    let answer = server.post("/api/race", RACE);
    assert!(answer.body.contains("event: done"), "{answer:?}");
    // A simulation that is not cancelled takes 20 s.
    assert!(begun.elapsed() < PATIENCE / 4, "{:?}", begun.elapsed());
    #[cfg(target_os = "linux")]
    assert!(server.peak_memory_mib() < 500, "{} MiB", server.peak_memory_mib());
}
