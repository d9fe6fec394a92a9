//! The table of `stagger_db::redis`, row by row.

use std::io;

use redis::{ConnectionLike, ErrorKind, RedisError, RedisResult, Value, make_extension_error};
use stagger::{FailureKind, Outcome};

/// Returns the error for a reply as the client reads it from the wire.
fn reply(line: &str) -> RedisError {
    let value = redis::parse_redis_value(format!("-{line}\r\n").as_bytes()).unwrap();
    value.extract_error().unwrap_err()
}

#[test]
fn an_error_reply_is_classified_by_its_first_word() {
    for (line, want) in [
        ("LOADING Redis is loading the dataset in memory", Outcome::TRANSIENT),
        ("READONLY You can't write against a read only replica.", Outcome::TRANSIENT),
        ("CLUSTERDOWN The cluster is down", Outcome::TRANSIENT),
        ("BUSY Redis is busy running a script.", Outcome::TRANSIENT),
        ("OOM command not allowed when used memory > 'maxmemory'.", Outcome::throttled(None)),
        ("ERR max number of clients reached", Outcome::throttled(None)),
        ("ERR unknown command 'FOO'", Outcome::Permanent),
        ("WRONGTYPE Operation against a key", Outcome::Permanent),
        ("NOSCRIPT No matching script.", Outcome::Permanent),
    ] {
        assert_eq!(stagger_db::redis(&reply(line)), want, "{line}");
    }
    assert_eq!(stagger_db::redis(&make_extension_error("NOREPLICAS".to_owned(), None)), Outcome::TRANSIENT);
}

/// A connection to a server that sends these replies to a pipeline.
struct Replies(&'static [&'static str]);

impl ConnectionLike for Replies {
    fn req_packed_command(&mut self, _: &[u8]) -> RedisResult<Value> {
        unreachable!("the test sends only pipelines")
    }

    fn req_packed_commands(&mut self, _: &[u8], _: usize, _: usize) -> RedisResult<Vec<Value>> {
        self.0.iter().map(|line| redis::parse_redis_value(format!("{line}\r\n").as_bytes())).collect()
    }

    fn get_db(&self) -> i64 {
        0
    }

    fn check_connection(&mut self) -> bool {
        true
    }

    fn is_open(&self) -> bool {
        true
    }
}

#[test]
fn the_worst_reply_of_a_pipeline_decides() {
    for (lines, want) in [
        (&["+OK", "-LOADING x", "-TRYAGAIN x"][..], Outcome::TRANSIENT),
        (&["-LOADING x", "-OOM x", "-TRYAGAIN x"], Outcome::throttled(None)),
        (&["-OOM x", "-WRONGTYPE x", "-LOADING x"], Outcome::Permanent),
    ] {
        let mut pipeline = redis::pipe();
        for _ in lines {
            pipeline.cmd("SET");
        }
        let error = pipeline.query::<()>(&mut Replies(lines)).unwrap_err();
        assert_eq!(stagger_db::redis(&error), want, "{error}");
    }
}

#[test]
fn lost_connections_are_transient_and_usage_errors_permanent() {
    let io = |kind: io::ErrorKind| RedisError::from(io::Error::from(kind));
    for (error, want) in [
        (io(io::ErrorKind::ConnectionRefused), Outcome::TRANSIENT),
        (io(io::ErrorKind::TimedOut), Outcome::TRANSIENT),
        (io(io::ErrorKind::NotConnected), Outcome::TRANSIENT),
        // A socket file that the server has not created yet.
        (io(io::ErrorKind::NotFound), Outcome::TRANSIENT),
        (io(io::ErrorKind::PermissionDenied), Outcome::Permanent),
        (io(io::ErrorKind::AddrNotAvailable), Outcome::Failed { kind: FailureKind::LocalExhaustion, hint: None }),
        ((ErrorKind::Io, "the handshake failed").into(), Outcome::TRANSIENT),
        ((ErrorKind::MasterNameNotFoundBySentinel, "no master").into(), Outcome::TRANSIENT),
        ((ErrorKind::AuthenticationFailed, "wrong password").into(), Outcome::Permanent),
        ((ErrorKind::UnexpectedReturnType, "not a number").into(), Outcome::Permanent),
        ((ErrorKind::Extension, "without a reply").into(), Outcome::Permanent),
    ] {
        assert_eq!(stagger_db::redis(&error), want, "{error}");
    }
}

#[test]
fn a_host_that_is_not_found_is_transient() {
    let real = redis::Client::open("redis://name.invalid/").unwrap().get_connection().map(drop).unwrap_err();
    for (error, want) in [
        (real, Outcome::TRANSIENT),
        // A lookup without an answer, as the two kinds of connections report it.
        ((ErrorKind::InvalidClientConfig, "could not resolve to any addresses").into(), Outcome::TRANSIENT),
        ((ErrorKind::InvalidClientConfig, "No address found for host").into(), Outcome::TRANSIENT),
        ((ErrorKind::InvalidClientConfig, "Redis URL did not parse").into(), Outcome::Permanent),
    ] {
        assert_eq!(stagger_db::redis(&error), want, "{error}");
    }
}
