//! A web server that answers as a script says, for tests with real clients.

use core::net::SocketAddr;
use std::io::{self, BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::{Arc, Mutex};
use std::thread;

/// Its thread ends with the test process.
#[derive(Debug)]
pub(crate) struct Origin {
    address: SocketAddr,
    requests: Arc<Mutex<Vec<Request>>>,
}

#[derive(Clone, Debug, Default)]
struct Request {
    line: String,
    body: String,
}

/// What the server does with one connection.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Answer {
    /// Reads the request, writes these lines with CRLF, an empty line and a short body, and closes the connection.
    Head(&'static [&'static str]),
    /// Answers with 200 and this body.
    Body(&'static str),
    /// Like `Head`, without the empty line and the body.
    HalfHead(&'static [&'static str]),
    /// Like `Head`, but closes the connection in the middle of the body.
    HalfBody(&'static [&'static str]),
    /// Reads the request and closes the connection.
    Nothing,
    /// Closes the connection without reading anything.
    Hangup,
    /// Reads the request and keeps the connection open.
    Silence,
}

pub(crate) const OK: Answer = Answer::Head(&["HTTP/1.1 200 OK"]);

const BODY: &str = "hello\n";

impl Origin {
    /// Starts a server whose first connections get these answers, and all others the last one.
    pub(crate) fn start(answers: &[Answer]) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port is free");
        let address = listener.local_addr().expect("the listener has an address");
        let requests = Arc::new(Mutex::new(Vec::new()));
        let (seen, answers) = (Arc::clone(&requests), answers.to_vec());
        thread::spawn(move || {
            let mut open = Vec::new();
            for stream in listener.incoming().flatten() {
                let mut seen = seen.lock().expect("no thread panics");
                let answer = answers.get(seen.len()).or(answers.last()).copied().unwrap_or(OK);
                if matches!(answer, Answer::Hangup) {
                    continue;
                }
                // A client that ends early is no fault of the server.
                if let Ok(request) = read_request(&stream) {
                    seen.push(request);
                    let _ = answer.write(&stream);
                }
                if matches!(answer, Answer::Silence) {
                    open.push(stream);
                }
            }
        });
        Self { address, requests }
    }

    /// Returns the address of a port on which nothing listens.
    pub(crate) fn nowhere() -> String {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port is free");
        format!("http://{}/", listener.local_addr().expect("the listener has an address"))
    }

    pub(crate) fn url(&self) -> String {
        format!("http://{}/", self.address)
    }

    pub(crate) fn https_url(&self) -> String {
        format!("https://{}/", self.address)
    }

    /// Returns the request lines so far.
    pub(crate) fn requests(&self) -> Vec<String> {
        self.requests.lock().expect("no thread panics").iter().map(|request| request.line.clone()).collect()
    }

    /// Returns the bodies of the requests so far.
    pub(crate) fn bodies(&self) -> Vec<String> {
        self.requests.lock().expect("no thread panics").iter().map(|request| request.body.clone()).collect()
    }
}

/// Reads a request with its body, so that closing the connection does not reset it.
fn read_request(stream: &TcpStream) -> io::Result<Request> {
    let mut reader = BufReader::new(stream);
    let mut request = Request::default();
    let mut length = 0;
    loop {
        let mut line = String::new();
        reader.read_line(&mut line)?;
        let line = line.trim_end();
        if line.is_empty() {
            break;
        }
        if let Some((name, value)) = line.split_once(':')
            && name.eq_ignore_ascii_case("content-length")
        {
            length = value.trim().parse().unwrap_or(0);
        }
        if request.line.is_empty() {
            line.clone_into(&mut request.line);
        }
    }
    reader.take(length).read_to_string(&mut request.body)?;
    Ok(request)
}

impl Answer {
    fn write(self, mut stream: &TcpStream) -> io::Result<()> {
        let (lines, body, end) = match self {
            Self::Head(lines) => (lines, Some(BODY.len()), BODY),
            Self::Body(body) => (&["HTTP/1.1 200 OK"][..], Some(body.len()), body),
            Self::HalfHead(lines) => (lines, None, ""),
            Self::HalfBody(lines) => (lines, Some(1_000_000), BODY),
            Self::Nothing | Self::Hangup | Self::Silence => return Ok(()),
        };
        let mut text: String = lines.iter().map(|line| format!("{line}\r\n")).collect();
        if let Some(length) = body {
            text += &format!("Content-Length: {length}\r\nConnection: close\r\n\r\n{end}");
        }
        stream.write_all(text.as_bytes())
    }
}
