//! A server that replies by a script, and the policy and the guards of the clients that call it.

use core::net::SocketAddr;
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::sync::{Arc, Mutex};
use std::thread;

use stagger::breaker::CircuitBreaker;
use stagger::budget::Tokens;
use stagger::{Policy, Seed, policy};

/// Waits 1, 2, 4 and 8 s.
pub(super) const POLICY: Policy =
    policy!(exponential(secs(1), secs(60)).jitter(Jitter::None).max_attempts(5).hint_spread(Ratio::ZERO));

/// Returns a budget of this many tokens, of which a retry takes five.
pub(super) fn tokens(capacity: u32) -> Arc<Tokens> {
    Arc::new(Tokens::builder().capacity(capacity).build().unwrap())
}

/// Returns a breaker that opens at the second failure in a row.
pub(super) fn breaker() -> CircuitBreaker {
    CircuitBreaker::builder(Seed::new(7)).consecutive(2).build().unwrap()
}

/// Replies in this order, and with the last one from then on.
pub(super) fn script(replies: &'static [Reply]) -> Server {
    Server::start(|number| replies[number.min(replies.len() - 1)])
}

/// What the server does with a request, once it has read all of it.
#[derive(Clone, Copy, Debug)]
pub(super) enum Reply {
    /// Responds with this status, these header lines and this body.
    Response(u16, &'static str, &'static str),
    /// Closes the connection.
    Cut,
    /// Closes the connection amid the body of a success with these header lines, after this part of it.
    CutBody(&'static str, &'static str),
}

/// A server on loopback. It runs on threads of its own, outside of the test's virtual time.
#[derive(Debug)]
pub(super) struct Server {
    pub(super) address: SocketAddr,
    requests: Arc<Mutex<Vec<String>>>,
}

impl Server {
    /// Starts a server that replies by the number of the request, from 0.
    pub(super) fn start(reply: impl Fn(usize) -> Reply + Send + Sync + 'static) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let (requests, reply) = (Arc::default(), Arc::new(reply));
        let server = Self { address, requests: Arc::clone(&requests) };
        thread::spawn(move || {
            for connection in listener.incoming() {
                let (requests, reply) = (Arc::clone(&requests), Arc::clone(&reply));
                thread::spawn(move || serve(&connection.unwrap(), &requests, &*reply));
            }
        });
        server
    }

    pub(super) fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    /// Returns the heads of the requests so far.
    pub(super) fn requests(&self) -> Vec<String> {
        self.requests.lock().unwrap().clone()
    }
}

fn serve(connection: &TcpStream, requests: &Mutex<Vec<String>>, reply: &dyn Fn(usize) -> Reply) {
    let mut reader = BufReader::new(connection);
    while let Some(head) = read_head(&mut reader) {
        let length = header(&head, "content-length").map_or(0, |length| length.parse().unwrap());
        let mut body = vec![0; length];
        reader.read_exact(&mut body).unwrap();
        let number = {
            let mut requests = requests.lock().unwrap();
            requests.push(head);
            requests.len() - 1
        };
        let mut stream = connection;
        // A client may close its connection before it has read everything.
        let is_open = match reply(number) {
            Reply::Response(status, headers, body) => {
                let length = body.len();
                let text = format!("HTTP/1.1 {status} status\r\ncontent-length: {length}\r\n{headers}\r\n{body}");
                stream.write_all(text.as_bytes()).is_ok()
            }
            Reply::Cut => false,
            Reply::CutBody(headers, part) => {
                let length = part.len() + 1;
                let text = format!("HTTP/1.1 200 OK\r\ncontent-length: {length}\r\n{headers}\r\n{part}");
                stream.write_all(text.as_bytes()).unwrap();
                false
            }
        };
        if !is_open {
            return;
        }
    }
}

/// Returns the head of the next request, in lower case, or `None` at the end of the connection.
fn read_head(reader: &mut impl std::io::BufRead) -> Option<String> {
    let mut head = String::new();
    while !head.ends_with("\r\n\r\n") {
        if reader.by_ref().take(64 * 1024).read_line(&mut head).ok()? == 0 {
            return None;
        }
    }
    Some(head.to_lowercase())
}

/// Returns the value of a header.
pub(super) fn header<'h>(head: &'h str, name: &str) -> Option<&'h str> {
    head.lines().filter_map(|line| line.split_once(": ")).find(|(key, _)| *key == name).map(|(_, value)| value)
}
