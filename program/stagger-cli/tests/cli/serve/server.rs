use core::net::SocketAddr;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;

use serde_json::Value;

use crate::support::{PATIENCE, Running, stagger};

/// A server on a port of its own, killed when dropped.
pub(super) struct Server {
    pub(super) running: Running,
    pub(super) address: SocketAddr,
}

/// A response: its status, its headers in lower case, and its body.
#[derive(Debug)]
pub(super) struct Answer {
    pub(super) status: u16,
    pub(super) head: String,
    pub(super) body: String,
}

/// A race of two policies with few clients.
pub(super) const RACE: &str = r#"{"policies":["socket.io","exponential base=1s spread=5s max-attempts=inf"],
    "settings":[["clients","500"],["capacity","100/s"],["down","2s"]],"seed":"1"}"#;

/// A race that takes days.
pub(super) const ENDLESS: &str = r#"{"policies":["constant base=1ms jitter=none max-attempts=inf"],
    "settings":[["clients","1M"],["down","1h"]]}"#;

impl Server {
    pub(super) fn start() -> Self {
        let mut running = Running::start(&mut stagger(["serve", "--no-open"]));
        let mut line = String::new();
        let stdout = running.child.stdout.take().expect("standard output is piped");
        BufReader::new(stdout).read_line(&mut line).expect("the address is printed");
        let address = line.trim().strip_prefix("http://").and_then(|rest| rest.strip_suffix('/'));
        let address = address.and_then(|address| address.parse().ok());
        Self { address: address.unwrap_or_else(|| panic!("{line:?} is not an address")), running }
    }

    pub(super) fn connect(&self) -> TcpStream {
        let stream = TcpStream::connect(self.address).expect("the server listens");
        stream.set_read_timeout(Some(PATIENCE)).expect("a time limit is set");
        stream
    }

    /// Sends these bytes and reads until the server closes the connection.
    pub(super) fn send(&self, bytes: &[u8]) -> Answer {
        let mut stream = self.connect();
        // The server may answer and close before it has read all.
        let _ = stream.write_all(bytes);
        read(stream)
    }

    /// Sends a request of the page.
    pub(super) fn request(&self, method: &str, path: &str, headers: &[&str], body: &str) -> Answer {
        self.send(&self.written(method, path, headers, body))
    }

    pub(super) fn written(&self, method: &str, path: &str, headers: &[&str], body: &str) -> Vec<u8> {
        let host = format!("host: {}", self.address);
        let host = if headers.iter().any(|header| header.starts_with("host:")) { "x-none: 1" } else { &host };
        let mut lines = vec![format!("{method} {path} HTTP/1.1"), host.to_owned(), "connection: close".to_owned()];
        lines.extend(headers.iter().map(|&header| header.to_owned()));
        if method == "POST" {
            lines.push(format!("content-length: {}", body.len()));
            if !headers.iter().any(|header| header.starts_with("content-type:")) {
                lines.push("content-type: application/json".to_owned());
            }
        }
        format!("{}\r\n\r\n{body}", lines.join("\r\n")).into_bytes()
    }

    pub(super) fn get(&self, path: &str) -> Answer {
        self.request("GET", path, &[], "")
    }

    pub(super) fn post(&self, path: &str, body: &str) -> Answer {
        self.request("POST", path, &[], body)
    }

    /// Returns the largest memory that the process has had, in MiB.
    #[cfg(target_os = "linux")]
    pub(super) fn peak_memory_mib(&self) -> u64 {
        let path = format!("/proc/{}/status", self.running.child.id());
        let status = std::fs::read_to_string(path).expect("the server runs");
        let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).expect("a peak");
        line.trim().trim_end_matches(" kB").parse::<u64>().expect("a number") / 1024
    }
}

pub(super) fn read(mut stream: TcpStream) -> Answer {
    let mut bytes = Vec::new();
    // A connection that is reset has sent its answer before.
    let _ = stream.read_to_end(&mut bytes);
    let text = String::from_utf8_lossy(&bytes);
    let (head, body) = text.split_once("\r\n\r\n").unwrap_or((&text, ""));
    let head = head.to_ascii_lowercase();
    let status = head.split(' ').nth(1).and_then(|status| status.parse().ok()).unwrap_or(0);
    let body = if head.contains("transfer-encoding: chunked") { unchunked(body) } else { body.to_owned() };
    Answer { status, head, body }
}

fn unchunked(mut body: &str) -> String {
    let mut out = String::new();
    while let Some((size, rest)) = body.split_once("\r\n") {
        let size = usize::from_str_radix(size, 16).unwrap_or(0);
        if size == 0 || rest.len() < size {
            break;
        }
        out.push_str(&rest[..size]);
        body = rest[size..].trim_start_matches("\r\n");
    }
    out
}

impl Answer {
    pub(super) fn json(&self) -> Value {
        serde_json::from_str(&self.body).unwrap_or_else(|error| panic!("{error}: {self:?}"))
    }

    /// Returns the error of an answer, which has this status.
    #[track_caller]
    pub(super) fn error(&self, status: u16) -> String {
        assert_eq!(self.status, status, "{self:?}");
        self.json()["error"].as_str().unwrap_or_else(|| panic!("no error: {self:?}")).to_owned()
    }

    /// Returns the server-sent events: their names, and their data.
    pub(super) fn events(&self) -> Vec<(String, Value)> {
        let events = self.body.split("\n\n").filter_map(|event| {
            let name = event.lines().find_map(|line| line.strip_prefix("event: "))?;
            let data = event.lines().find_map(|line| line.strip_prefix("data: "))?;
            Some((name.to_owned(), serde_json::from_str(data).expect("data in JSON")))
        });
        events.collect()
    }
}
