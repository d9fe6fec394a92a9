//! The readers beside the systems themselves: nginx and HAProxy try as often as is read, and systemd reads the same lengths.

#![cfg(target_os = "linux")]

use core::sync::atomic::{AtomicUsize, Ordering};
use core::time::Duration;
use std::fs;
use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::os::unix::net::UnixStream;
use std::sync::Arc;
use std::thread;

use stagger_config::{Entry, Limit, read};
use stagger_kit::{Port, Program, Ready, Server};

/// Longer than any step of these tests takes, even on a loaded machine.
const PATIENCE: Duration = Duration::from_secs(30);

/// Servers that read a request, and close the connection without an answer.
struct Closing {
    addresses: Vec<String>,
    requests: Arc<AtomicUsize>,
}

impl Closing {
    fn start(number: usize) -> Self {
        let requests = Arc::new(AtomicUsize::new(0));
        let start = |_| {
            let listener = TcpListener::bind("127.0.0.1:0").expect("the server starts");
            let address = listener.local_addr().expect("the server starts").to_string();
            let requests = Arc::clone(&requests);
            thread::spawn(move || {
                for mut stream in listener.incoming().flatten() {
                    let _ = stream.set_read_timeout(Some(PATIENCE));
                    // A probe of the health, or of the kernel, sends nothing.
                    if stream.read(&mut [0; 4096]).is_ok_and(|bytes| bytes > 0) {
                        requests.fetch_add(1, Ordering::SeqCst);
                    }
                }
            });
            address
        };
        Self { addresses: (0..number).map(start).collect(), requests }
    }

    /// Returns the number of requests since the last time.
    fn take(&self) -> usize {
        self.requests.swap(0, Ordering::SeqCst)
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
