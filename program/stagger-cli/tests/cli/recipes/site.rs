//! A web server that fails first and then serves the files of a directory.

use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::net::TcpListener;
use std::path::PathBuf;
use std::sync::{Arc, Mutex};
use std::thread;

/// Its thread ends with the test process.
#[derive(Debug)]
pub(super) struct Site {
    pub(super) authority: String,
    requests: Arc<Mutex<Vec<String>>>,
}

impl Site {
    /// Starts a server whose first requests get these statuses.
    pub(super) fn start(root: PathBuf, first: &'static [&'static str]) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port is free");
        let authority = listener.local_addr().expect("the listener has an address").to_string();
        let requests = Arc::new(Mutex::new(Vec::new()));
        let seen = Arc::clone(&requests);
        thread::spawn(move || {
            let mut first = first.iter();
            for stream in listener.incoming().flatten() {
                let mut reader = BufReader::new(stream);
                let (mut request, mut line) = (String::new(), String::new());
                while reader.read_line(&mut line).is_ok_and(|n| n > 2) {
                    if request.is_empty() {
                        request.clone_from(&line);
                    }
                    line.clear();
                }
                let path = request.split(' ').nth(1).unwrap_or_default().split('?').next().unwrap_or_default();
                seen.lock().expect("no thread panics").push(path.to_owned());
                let file = fs::read(root.join(path.trim_start_matches(['/', '.'])));
                let (status, body) = match (first.next(), file) {
                    (Some(status), _) => (*status, Vec::new()),
                    (None, Ok(body)) => ("200 OK", body),
                    (None, Err(_)) => ("404 Not Found", Vec::new()),
                };
                let head = format!("HTTP/1.1 {status}\r\nContent-Length: {}\r\nConnection: close\r\n\r\n", body.len());
                let _ = reader.get_mut().write_all(&[head.as_bytes(), &body].concat());
            }
        });
        Self { authority, requests }
    }

    /// Returns the paths of the requests so far.
    pub(super) fn requests(&self) -> Vec<String> {
        self.requests.lock().expect("no thread panics").clone()
    }
}
