//! A server that is killed and restarted.

#![expect(clippy::unwrap_used, reason = "helper functions of tests")]

use core::time::Duration;
use std::env;
use std::fs;
use std::io::{ErrorKind, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::path::Path;
use std::time::Instant;

use stagger_kit::{Ledger, Port, Program, Ready, Server, Signal, Stream, Tally};

const LONG: Duration = Duration::from_secs(10);

fn ledger_server(port: &Port, data: &Path) -> Program {
    let server = Program::this_test("serves_a_ledger_until_killed").unwrap();
    server.env("KIT_PORT", port.number().to_string()).env("KIT_DATA", data)
}

/// The child process: each connection sends one effect, and gets a response when the effect is synced to disk.
#[test]
#[ignore = "serves until it is killed; the tests below start it"]
fn serves_a_ledger_until_killed() {
    let (Ok(port), Some(data)) = (env::var("KIT_PORT"), env::var_os("KIT_DATA")) else {
        return;
    };
    let mut ledger = Ledger::open(data).unwrap();
    let listener = TcpListener::bind(("127.0.0.1", port.parse().unwrap())).unwrap();
    println!("serving");
    for stream in listener.incoming() {
        let mut stream = stream.unwrap();
        let mut effect = String::new();
        stream.read_to_string(&mut effect).unwrap();
        // A connection that only checks whether the port is open sends nothing.
        if effect.is_empty() {
            continue;
        }
        // Idempotent: a client without a response sends the same effect again.
        if !ledger.records().contains(&effect) {
            ledger.append(&effect).unwrap();
        }
        stream.write_all(b"done").unwrap();
    }
}

fn send(port: &Port, effect: &str) -> std::io::Result<()> {
    let mut stream = TcpStream::connect(port.address())?;
    stream.write_all(effect.as_bytes())?;
    stream.shutdown(std::net::Shutdown::Write)?;
    let mut answer = String::new();
    stream.read_to_string(&mut answer)?;
    if answer == "done" { Ok(()) } else { Err(ErrorKind::UnexpectedEof.into()) }
}

#[test]
fn a_killed_server_restarts_on_its_port_with_its_data() {
    let directory = tempfile::tempdir().unwrap();
    let data = directory.path().join("ledger");
    let port = Port::reserve().unwrap();
    let mut server = Server::start(ledger_server(&port, &data), Ready::Port(port.address()), LONG).unwrap();
    for round in 0..10 {
        send(&port, &format!("effect {round}")).unwrap();
        server.kill();
        assert_eq!(send(&port, "to no server").unwrap_err().kind(), ErrorKind::ConnectionRefused);
        server.restart().unwrap();
        send(&port, &format!("effect {round}")).unwrap();
    }
    let records = Ledger::read(&data).unwrap();
    Tally::from_effects(records).exactly_once((0..10).map(|round| format!("effect {round}"))).unwrap();
}

#[test]
fn parallel_servers_are_independent() {
    let directory = tempfile::tempdir().unwrap();
    let servers: Vec<_> = (0..8)
        .map(|number| {
            let (port, data) = (Port::reserve().unwrap(), directory.path().join(number.to_string()));
            let ready = Ready::Line(Stream::Stdout, "serving".into());
            (Server::start(ledger_server(&port, &data), ready, LONG).unwrap(), port, data)
        })
        .collect();
    for (number, (_, port, _)) in servers.iter().enumerate() {
        send(port, &format!("for {number}")).unwrap();
    }
    for (number, (_, _, data)) in servers.iter().enumerate() {
        assert_eq!(Ledger::read(data).unwrap(), [format!("for {number}")]);
    }
}

#[test]
fn dropping_a_server_kills_it() {
    let directory = tempfile::tempdir().unwrap();
    let port = Port::reserve().unwrap();
    let program = ledger_server(&port, &directory.path().join("ledger"));
    drop(Server::start(program, Ready::Port(port.address()), LONG).unwrap());
    assert_eq!(send(&port, "to no server").unwrap_err().kind(), ErrorKind::ConnectionRefused);
}

#[test]
fn a_server_that_exits_at_start_is_reported_immediately_with_its_output() {
    let port = Port::reserve().unwrap();
    let program = Program::find("sh").unwrap().args(["-c", "echo no such database >&2; exit 1"]);
    for ready in [Ready::Port(port.address()), Ready::Line(Stream::Stdout, "ready".into())] {
        let started = Instant::now();
        let error = Server::start(program.clone(), ready, LONG).unwrap_err();
        assert!(error.to_string().contains("no such database"), "{error}");
        assert!(started.elapsed() < LONG);
    }
}

#[test]
fn a_server_that_is_not_ready_within_the_limit_is_an_error() {
    let port = Port::reserve().unwrap();
    let program = Program::find("sleep").unwrap().arg("65");
    let error = Server::start(program, Ready::Port(port.address()), Duration::from_millis(50)).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::TimedOut);
    assert!(error.to_string().contains(&port.address().to_string()), "{error}");
}

#[test]
fn stop_ends_a_server_by_signal() {
    let directory = tempfile::tempdir().unwrap();
    let script = "trap 'echo bye > farewell; exit 0' TERM; echo ready; while :; do sleep 0.01; done";
    let program = Program::find("sh").unwrap().args(["-c", script]).directory(directory.path());
    let mut server = Server::start(program, Ready::Line(Stream::Stdout, "ready".into()), LONG).unwrap();
    assert!(server.running().unwrap().is_running());
    assert_eq!(server.stop(Signal::TERM, LONG).unwrap().code(), Some(0));
    assert_eq!(fs::read_to_string(directory.path().join("farewell")).unwrap(), "bye\n");
    assert_eq!(server.running().map(|_| ()).unwrap_err().kind(), ErrorKind::NotConnected);
}
