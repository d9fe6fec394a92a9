//! Rate limits of nginx and HAProxy, and what stagger does after them.

use std::io::BufReader;

use stagger_kit::{Port, Program, Ready, Server};

use super::bench::Bench;
use super::page::{code, with};
use crate::origin::{OK, Origin};
use crate::support::{PATIENCE, Running};

/// Returns the status and `Retry-After` of so many requests.
fn requests(bench: &Bench, port: &Port, number: usize) -> Vec<String> {
    let line = format!(
        "curl -s -o /dev/null -w '%{{http_code}} %header{{retry-after}}\\n' 'http://{}/?[1-{number}]'",
        port.address()
    );
    let seen = bench.see(&line);
    seen.exits(0).stdout.lines().map(|line| line.trim_end().to_owned()).collect()
}

/// Asserts that a client with `--http` waits at least so long after the server has refused it.
fn assert_waits(bench: &Bench, port: &Port, seconds: f64) {
    let line = format!("exec stagger run --http --log json -n 2 -- curl -fsSo /dev/null http://{}/", port.address());
    let mut running = Running::start(&mut bench.shell(&line));
    let mut stderr = BufReader::new(running.child.stderr.take().expect("it is piped"));
    let log = crate::wait::read_until(&mut stderr, "\"event\":\"attempt\"");
    let attempt: serde_json::Value = serde_json::from_str(log.lines().last().expect("a line")).expect("JSON");
    assert_eq!(attempt["http_status"], 429, "{attempt}");
    assert_eq!(attempt["retry_after_s"], seconds, "{attempt}");
    assert!(attempt["next_s"].as_f64().is_some_and(|next| next >= seconds), "{attempt}");
}

#[test]
fn nginx_refuses_with_429_and_says_when_to_come_back() {
    needs!("curl", "nginx");
    let bench = Bench::new();
    let (port, backend) = (Port::reserve().unwrap(), Origin::start(&[OK]));
    let path = bench.path("");
    let lines = with(
        &code("nginx")[0],
        &[
            ("listen 8080", &format!("listen {}", port.address())),
            ("http://127.0.0.1:8081", backend.url().trim_end_matches('/')),
            // Nothing is earned back while the test runs.
            ("rate=10r/s", "rate=1r/m"),
        ],
    );
    let config = format!(
        "daemon off; master_process off; pid {path}pid; error_log {path}error.log; user root;\nevents {{ }}\n\
         http {{ access_log off; client_body_temp_path {path}a; proxy_temp_path {path}b; fastcgi_temp_path {path}c;\n\
         uwsgi_temp_path {path}d; scgi_temp_path {path}e;\n{lines} }}\n"
    );
    let file = bench.files.write("nginx.conf", config);
    let nginx = Program::find("nginx").unwrap().arg("-c").arg(&file).arg("-p").arg(&path);
    let _server = Server::start(nginx, Ready::Port(port.address()), PATIENCE).unwrap();
    // The first one, and the burst.
    assert_eq!(requests(&bench, &port, 23), [vec!["200"; 21], vec!["429 5"; 2]].concat());
    assert_waits(&bench, &port, 5.0);
}

#[test]
fn haproxy_refuses_with_429_and_says_when_to_come_back() {
    needs!("curl", "haproxy");
    let bench = Bench::new();
    let (port, backend) = (Port::reserve().unwrap(), Origin::start(&[OK]));
    let authority = backend.url().trim_start_matches("http://").trim_end_matches('/').to_owned();
    let lines = with(
        &code("HAProxy")[0],
        &[("bind :8080", &format!("bind {}", port.address())), ("127.0.0.1:8081", &authority)],
    );
    let file = bench.files.write("haproxy.cfg", lines);
    let haproxy = Program::find("haproxy").unwrap().arg("-f").arg(&file);
    let _server = Server::start(haproxy, Ready::Port(port.address()), PATIENCE).unwrap();
    let seen = requests(&bench, &port, 102);
    assert_eq!(seen, [vec!["200"; 100], vec!["429 10"; 2]].concat());
    assert_eq!(backend.requests().len(), 100);
    assert_waits(&bench, &port, 10.0);
}
