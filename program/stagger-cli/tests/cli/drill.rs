//! Tests of `stagger drill`, run as a program with real clients and a server that is killed.

use core::time::Duration;
use std::collections::BTreeSet;
use std::io::{BufRead, BufReader};
use std::process::{Child, Command, Stdio};
use std::time::Instant;
use std::{fs, thread};

use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;
use stagger_sim::storm::{RunFigures, StormReport};

use crate::support::{Files, PATIENCE, Running, children, eventually, see, stagger, state};

/// A drill that takes two seconds.
const DRILL: [&str; 7] = ["drill", "--clients", "150", "--capacity", "300/s", "--backlog", "20"];

/// A policy that never gives up and retries quickly.
const EAGER: &str = "eager: exponential base=200ms cap=500ms max-attempts=inf";

fn drill(args: &[&str]) -> Command {
    let mut command = stagger(DRILL);
    command.args(args).env("COLUMNS", "120");
    command
}

/// Runs a drill; returns its document, parsed and as JSON.
#[track_caller]
fn storm(command: &mut Command) -> (StormReport, Value) {
    let seen = see(command.arg("--json"));
    let document: Value = serde_json::from_str(&seen.exits(0).stdout).expect("valid JSON");
    (serde_json::from_value(document.clone()).expect("a storm document"), document)
}

#[test]
fn all_clients_reconnect_after_a_kill_and_the_server_counts_the_same_connections() {
    let (storm, document) = storm(&mut drill(&["--compare", EAGER]));
    assert_eq!(
        serde_json::to_value(&storm).unwrap(),
        document,
        "the document has fields that the schema does not have"
    );
    let names: Vec<&str> = storm.strategies.iter().map(|strategy| &*strategy.name).collect();
    assert_eq!(names, ["eager, measured", "eager, simulated"]);
    let [real, simulated] = [&storm.strategies[0].runs[0], &storm.strategies[1].runs[0]];
    let RunFigures::Reconnect(figures) = &real.figures else { panic!("{:?}", real.figures) };
    assert_eq!((figures.clients, figures.connected, figures.gave_up, figures.unfinished), (150, 150, Some(0), 0));
    assert_eq!(figures.connects.iter().sum::<u32>(), 150);
    // No client has two attempts in flight.
    assert!(figures.peak_in_flight <= 150, "{}", figures.peak_in_flight);

    let measured = real.measured.as_ref().expect("measurements");
    let server = measured.server.as_ref().expect("counts of the server");
    assert_eq!((server.accepted, server.active), (150, 150));
    assert_eq!(server.arrived, server.accepted + server.rejected);
    // The kernel rejected attempts while no server was listening.
    assert!(server.arrived <= figures.attempts && server.rejected > 0, "{server:?}, {} attempts", figures.attempts);
    assert!(server.peak_backlog <= 21, "{server:?}");
    assert!(measured.down_s.is_some_and(|down| down > 0.0) && measured.disconnect_window_s > 0.0, "{measured:?}");
    assert!(measured.listen_drops.is_some() || !cfg!(target_os = "linux"), "{measured:?}");
    let agreement = measured.agreement.as_ref().expect("a comparison");
    assert_eq!((agreement.simulations, agreement.figures.len()), (8, 5));
    let agrees = agreement.figures.iter().all(|compared| compared.agrees);
    assert_eq!(agreement.agrees, measured.warnings.is_empty().then_some(agrees), "{measured:?}");
    assert_eq!(simulated.measured, None);
}

/// Both rows use the same policy and the same delays, so only the machine can make a difference. If it was busy, the
/// run has warnings and is repeated.
#[test]
fn measured_and_simulated_figures_agree_unless_the_run_has_warnings() {
    for _ in 0..3 {
        let (storm, _) = storm(&mut drill(&["--compare", EAGER]));
        let figures = storm.strategies.iter().map(|strategy| match &strategy.runs[0].figures {
            RunFigures::Reconnect(figures) => {
                (figures.attempts_per_client, figures.t99_s.expect("99 % of the clients recovered"))
            }
            other => panic!("{other:?}"),
        });
        let figures: Vec<(f64, f64)> = figures.collect();
        let ((attempts, t99), (wanted_attempts, wanted_t99)) = (figures[0], figures[1]);
        let is_near =
            (attempts / wanted_attempts - 1.0).abs() < 0.25 && (t99 - wanted_t99).abs() < 0.1 + 0.25 * wanted_t99;
        if is_near {
            return;
        }
        let warnings = &storm.strategies[0].runs[0].measured.as_ref().expect("measurements").warnings;
        assert!(!warnings.is_empty(), "no warnings for (measured, simulated) {figures:?}");
    }
}

#[test]
fn policies_run_one_after_another_and_each_is_in_the_reports() {
    let files = Files::new();
    let (html, svg) = (files.path("drill.html"), files.path("svg"));
    let mut command =
        drill(&["--clients=60", "--compare", EAGER, "--compare", "patient: exponential base=100ms spread=300ms"]);
    let seen = see(command.arg("-o").arg(&html).arg("--svg").arg(&svg));
    let text = &seen.exits(0).stdout;
    for part in [
        "eager, measured",
        "eager, simulated",
        "patient, measured",
        "attempts reached the server",
        "timers up to",
        "the largest difference is that of",
    ] {
        assert!(text.contains(part), "{part} is not in {text}");
    }
    let page = fs::read_to_string(html).unwrap();
    assert!(
        page.contains("Retry storm, measured and simulated") && page.contains("patient, measured: connections lost")
    );
    let arrivals = fs::read_to_string(svg.join("arrivals.svg")).unwrap();
    for part in ["patient", "measured", "simulated"] {
        assert!(arrivals.contains(&format!(">{part}<")), "{part}: {arrivals}");
    }
}

#[test]
fn assertions_apply_to_the_measured_rows() {
    let seen = see(&mut drill(&["--clients=50", "--compare", EAGER, "--assert", "connected>=50,attempts<1"]));
    seen.exits(1).says("assertion failed: attempts<1: attempts is").says("for eager, measured with seed 1");
    seen.is_silent_about("simulated").is_silent_about("connected>=50");
}

#[test]
fn invalid_input_is_rejected_with_a_remedy() {
    for (args, message) in [
        (&["--url", "ws://192.0.2.1:9/"][..], "--capacity 500/s"),
        (&["--url", "ws://192.0.2.1:9/", "--capacity", "9/s"], "--i-own-this-server"),
        (&["--url", "wss://127.0.0.1:9/", "--capacity", "9/s"], "TLS is not supported"),
        (&["--url", "http://127.0.0.1:9/", "--capacity", "9/s"], "must start with ws://"),
        (&["--url", "ws://127.0.0.1:9/", "--down", "1s"], "cannot be used with"),
        (&["--restart-cmd", "true"], "--url"),
        (&["--clients", "0"], "--clients"),
        (&["--clients", "70m"], "--clients"),
        (&["--assert", "peek<=6"], "--assert: unknown metric `peek`"),
        (&["--listen-backlog", "4000000000"], "net.core.somaxconn"),
        (&["--compare", "no-such-policy"], "--compare"),
    ] {
        see(stagger(["drill"]).args(args)).exits(2).says(message);
    }
    see(&mut stagger(["drill", "--url", "ws://127.0.0.1:1/", "--capacity", "9/s"]))
        .exits(125)
        .says("start your server first");
}

/// Creates a `stagger drill` command with a limit set by `ulimit`.
fn limited(files: &str, args: &[&str]) -> Command {
    let mut command = Command::new("sh");
    command.args(["-c", &format!("ulimit {files}; exec \"$0\" drill \"$@\""), env!("CARGO_BIN_EXE_stagger")]);
    command.args(args).env("COLUMNS", "120").stdin(Stdio::null());
    command
}

#[test]
fn too_few_descriptors_are_reported_before_the_drill() {
    let seen = see(&mut limited("-n 300", &["--clients", "1000"]));
    seen.exits(2).says("lower --clients to 100, or raise the limit as root: ulimit -Hn 1200");
    // Without --clients, the drill uses fewer clients.
    let seen = see(&mut limited("-n 300", &["--capacity=1k/s", "--compare", EAGER]));
    seen.exits(0).says("allows 100 clients instead of 3,000");
    // Below the files that a drill needs for itself, no number of clients would do.
    let seen = see(&mut limited("-n 64", &["--clients=50"]));
    seen.exits(2).says("the hard limit is 64; raise the limit as root").is_silent_about("lower --clients");
    // A soft limit is raised silently.
    let seen = see(&mut limited("-Sn 64", &["--clients=100", "--capacity=1k/s", "--compare", EAGER]));
    seen.exits(0).is_silent_about("files");
}

#[test]
fn the_server_does_not_outlive_a_killed_drill() {
    let running = Running::start(&mut drill(&["--compare", "late: constant base=30s spread=30s"]));
    let mut servers = Vec::new();
    eventually("the server starts", || {
        servers = children(running.pid());
        !servers.is_empty()
    });
    running.signal(Signal::KILL);
    eventually("the server ends", || servers.iter().all(|server| state(*server).is_none()));
}

#[test]
fn an_interrupted_drill_reports_the_finished_runs_and_leaves_no_partial_file() {
    let files = Files::new();
    let path = files.path("drill.json");
    let late = "late: constant base=30s spread=30s max-attempts=inf";
    let mut command = drill(&["--clients=40", "--compare", EAGER, "--compare", late]);
    let running = Running::start(command.arg(format!("--json={}", path.display())));
    // Each run starts two servers.
    let mut servers = BTreeSet::new();
    eventually("the second run starts", || {
        servers.extend(children(running.pid()).iter().map(|pid| pid.as_raw_nonzero()));
        servers.len() > 2
    });
    assert!(!path.exists());
    running.signal(Signal::INT);
    let seen = running.end();
    seen.exits(130).says("interrupted: 1 of 2 runs finished");
    let storm: StormReport = serde_json::from_str(&fs::read_to_string(&path).unwrap()).unwrap();
    assert_eq!(storm.strategies.len(), 2, "measured and simulated");
    let is_gone = |pid: &core::num::NonZeroI32| Pid::from_raw(pid.get()).is_none_or(|pid| state(pid).is_none());
    eventually("the servers end", || servers.iter().all(is_gone));
}

/// Starts an external server; returns the process and its address.
fn server(address: &str) -> (Child, String) {
    let mut command = stagger(["drill-server", "--listen-backlog=128", "--address", address]);
    let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().expect("the server starts");
    let mut line = String::new();
    let stdout = child.stdout.take().expect("a pipe");
    BufReader::new(stdout).read_line(&mut line).expect("the server prints its address");
    (child, line.trim().to_owned())
}

#[test]
fn an_external_server_is_restarted_by_a_command() {
    let files = Files::new();
    let restarts = files.path("restarts");
    let (mut first, address) = server("127.0.0.1:0");
    let restart = format!("echo now > {}", restarts.display());
    let url = format!("ws://{address}/feed");
    let drilled = thread::spawn(move || {
        let args =
            ["drill", "--clients=40", "--capacity=500/s", "--compare", EAGER, "--url", &url, "--restart-cmd", &restart];
        storm(&mut stagger(args))
    });
    files.wait_for_lines("restarts", 1);
    first.kill().expect("a running server");
    first.wait().expect("the server ends");
    thread::sleep(Duration::from_millis(300));
    let (mut second, _) = server(&address);
    let (storm, _) = drilled.join().expect("a successful drill");
    let run = &storm.strategies[0].runs[0];
    let RunFigures::Reconnect(figures) = &run.figures else { panic!("{:?}", run.figures) };
    assert_eq!((figures.clients, figures.connected), (40, 40));
    let measured = run.measured.as_ref().expect("measurements");
    assert_eq!(measured.server, None, "an external server has no counts");
    let down = measured.down_s.expect("the time until the first client reconnected");
    assert!((0.2..PATIENCE.as_secs_f64()).contains(&down), "{down}");
    second.kill().expect("a running server");
    second.wait().expect("the server ends");
}

#[test]
fn a_restart_command_that_fails_ends_the_drill_at_once() {
    let (mut external, address) = server("127.0.0.1:0");
    let url = format!("ws://{address}/feed");
    let restart = "echo restart refused >&2; exit 3";
    let args =
        ["drill", "--clients=20", "--capacity=500/s", "--compare", EAGER, "--url", &url, "--restart-cmd", restart];
    let began = Instant::now();
    let seen = see(&mut stagger(args));
    seen.exits(2).says("restart refused").says("--restart-cmd failed: exit status: 3");
    assert!(began.elapsed() < Duration::from_secs(30), "{:?}", began.elapsed());
    external.kill().expect("a running server");
    external.wait().expect("the server ends");
}

#[test]
fn a_signal_ends_a_drill_with_128_plus_the_signal() {
    for (signal, code) in [(Signal::TERM, 143), (Signal::INT, 130)] {
        let running = Running::start(&mut drill(&["--clients=40", "--compare", "late: constant base=30s spread=30s"]));
        // Its handlers are installed before it starts a server.
        eventually("the drill has started", || !children(running.pid()).is_empty());
        running.signal(signal);
        running.end().exits(code).says("interrupted before any run finished");
    }
}

#[test]
fn the_server_ends_when_its_standard_input_is_closed() {
    let (mut child, _) = server("127.0.0.1:0");
    let pid = Pid::from_child(&child);
    assert!(state(pid).is_some());
    drop(child.stdin.take());
    let ended = child.wait().expect("the server ends");
    assert!(ended.success(), "{ended}");
    assert!(kill_process(pid, Signal::TERM).is_err());
}
