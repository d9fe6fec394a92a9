//! The built-in classification of errors that the operating system returns.

use core::cell::RefCell;
use core::time::Duration;
use std::fs::File;
use std::io::{self, ErrorKind, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::thread;

use stagger::testing::NoSleep;
use stagger::{FailureKind, Outcome, Policy, blocking, classify, policy};
use stagger_kit::{Port, Program};

use super::support::ms;

const POLICY: Policy = policy!(constant(ms(1)).jitter(Jitter::None).max_attempts(3));
const LOCAL_EXHAUSTION: Outcome = Outcome::Failed { kind: FailureKind::LocalExhaustion, hint: None };

/// Retries the operation and returns each error with its outcome, and the final result.
fn retried<T>(mut operation: impl FnMut() -> io::Result<T>) -> (Vec<(ErrorKind, Outcome)>, io::Result<T>) {
    let seen = RefCell::new(Vec::new());
    let result = blocking::retry(&POLICY, || {
        operation().inspect_err(|error| seen.borrow_mut().push((error.kind(), classify::io(error))))
    })
    .timer(NoSleep)
    .run();
    (seen.into_inner(), result)
}

#[test]
fn a_refused_connection_is_retried() {
    // The kit keeps the port bound, so no other process can listen on it.
    let port = Port::reserve().unwrap();
    let (seen, result) = retried(|| TcpStream::connect(port.address()));
    assert_eq!(seen, [(ErrorKind::ConnectionRefused, Outcome::TRANSIENT); 3]);
    assert_eq!(result.unwrap_err().kind(), ErrorKind::ConnectionRefused);
}

/// Runs a server that disconnects two clients with `disconnect` and answers the third.
fn served(disconnect: impl Fn(TcpStream) + Send + 'static) -> (Vec<(ErrorKind, Outcome)>, io::Result<[u8; 2]>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    let server = thread::spawn(move || {
        for _ in 0..2 {
            disconnect(listener.accept().unwrap().0);
        }
        listener.accept().unwrap().0.write_all(b"ok").unwrap();
    });
    let seen = retried(|| {
        let mut stream = TcpStream::connect(address)?;
        stream.write_all(b"hello")?;
        let mut answer = [0; 2];
        stream.read_exact(&mut answer)?;
        Ok(answer)
    });
    server.join().unwrap();
    seen
}

#[test]
fn a_reset_connection_is_retried() {
    // Closing a socket with unread data makes the system send a reset.
    let (seen, result) = served(|stream| {
        stream.peek(&mut [0]).unwrap();
    });
    let transient = |(kind, outcome)| {
        matches!(kind, ErrorKind::ConnectionReset | ErrorKind::BrokenPipe) && outcome == Outcome::TRANSIENT
    };
    assert!(seen.len() == 2 && seen.iter().copied().all(transient), "{seen:?}");
    assert_eq!(&result.unwrap(), b"ok");
}

#[test]
fn a_truncated_response_is_retried() {
    let (seen, result) = served(|mut stream| {
        stream.read_exact(&mut [0; 5]).unwrap();
        stream.write_all(b"o").unwrap();
    });
    assert_eq!(seen, [(ErrorKind::UnexpectedEof, Outcome::TRANSIENT); 2]);
    assert_eq!(&result.unwrap(), b"ok");
}

/// Unix reports the timeout as `WouldBlock`.
#[test]
fn a_read_that_times_out_is_retried() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let stream = RefCell::new(TcpStream::connect(listener.local_addr().unwrap()).unwrap());
    stream.borrow().set_read_timeout(Some(ms(2))).unwrap();
    let (seen, result) = retried(|| stream.borrow_mut().read(&mut [0]));
    assert_eq!(seen.len(), 3, "{seen:?}: {result:?}");
    assert!(seen.iter().all(|(_, outcome)| *outcome == Outcome::TRANSIENT), "{seen:?}");
}

#[test]
fn permanent_system_errors_are_not_retried() {
    let (seen, _) = retried(|| File::open("/no/such/file"));
    assert_eq!(seen, [(ErrorKind::NotFound, Outcome::Permanent)]);
    // An address that is not available may be local exhaustion or a mistake; one that is in use is a mistake.
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let (seen, _) = retried(|| TcpListener::bind(listener.local_addr().unwrap()));
    assert_eq!(seen, [(ErrorKind::AddrInUse, Outcome::Permanent)]);
}

#[test]
fn running_out_of_descriptors_is_local_exhaustion() {
    let exe = std::env::current_exe().unwrap();
    let child = Program::find("sh").unwrap().args(["-c", "ulimit -n 24 && exec \"$0\" \"$@\""]).arg(exe);
    let child = child.args(["--ignored", "--exact", "--nocapture", "--test-threads=1"]);
    let child = child.arg("suite::sockets::child_that_runs_out_of_descriptors").env("FEW_DESCRIPTORS", "1");
    let done = child.run(Duration::from_secs(20)).unwrap();
    assert!(done.status.success(), "{done}");
    assert!(done.stdout_text().contains("ran out and recovered"), "{done}");
}

#[test]
#[ignore = "the child of another test"]
fn child_that_runs_out_of_descriptors() {
    if std::env::var_os("FEW_DESCRIPTORS").is_none() {
        return;
    }
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let mut open = Vec::new();
    while let Ok(file) = File::open("/dev/null") {
        open.push(file);
    }
    let (seen, result) = retried(|| {
        let stream = TcpStream::connect(listener.local_addr()?);
        // Another part of the process closes a descriptor before the retry.
        open.pop();
        stream
    });
    assert!(result.is_ok(), "{seen:?}: {result:?}");
    assert_eq!(seen.iter().map(|(_, outcome)| *outcome).collect::<Vec<_>>(), [LOCAL_EXHAUSTION]);
    println!("ran out and recovered");
}
