//! `stagger drill` as a user meets it: real clients, and a server that is really killed.

use core::time::Duration;
use std::collections::BTreeSet;
use std::io::{BufRead, BufReader};
use std::process::{Child, Command, Stdio};
use std::{fs, thread};

use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;
use stagger_sim::storm::{RunFigures, StormReport};

use crate::support::{Files, PATIENCE, Running, eventually, see, stagger, state};

/// A drill that is over in two seconds.
const DRILL: [&str; 7] = ["drill", "--clients", "150", "--capacity", "300/s", "--backlog", "20"];

/// What one client does who never gives up and is never far.
const EAGER: &str = "eager: exponential base=200ms cap=500ms max-attempts=inf";

fn drill(args: &[&str]) -> Command {
    let mut command = stagger(DRILL);
    command.args(args).env("COLUMNS", "120");
    command
}

/// The document of a drill that went well, and how it was written.
#[track_caller]
fn storm(command: &mut Command) -> (StormReport, Value) {
    let seen = see(command.arg("--json"));
    let document: Value = serde_json::from_str(&seen.exits(0).stdout).expect("it is JSON");
    (serde_json::from_value(document.clone()).expect("it is a storm"), document)
}

/// The processes that another one has started, and that live.
fn children(of: Pid) -> Vec<Pid> {
    let of = of.as_raw_nonzero().to_string();
    let entries = fs::read_dir("/proc").expect("there is a /proc").flatten();
    let is_child = |name: &str| {
        let stat = fs::read_to_string(format!("/proc/{name}/stat")).ok()?;
        let parent = stat.rsplit_once(')')?.1.split_ascii_whitespace().nth(1)?.to_owned();
        (parent == of).then_some(())
    };
    let pids = entries.filter_map(|entry| {
        let name = entry.file_name().into_string().ok()?;
        let pid = Pid::from_raw(name.parse().ok()?)?;
        is_child(&name).map(|()| pid)
    });
    pids.filter(|pid| state(*pid).is_some()).collect()
}

#[test]
fn everyone_comes_back_after_a_real_kill_and_clients_and_server_count_the_same() {
    let (storm, document) = storm(&mut drill(&["--compare", EAGER]));
    assert_eq!(serde_json::to_value(&storm).unwrap(), document, "nothing stands in it that the schema does not have");
    let names: Vec<&str> = storm.strategies.iter().map(|strategy| &*strategy.name).collect();
    assert_eq!(names, ["eager, measured", "eager, simulated"]);
    let [made, simulated] = [&storm.strategies[0].runs[0], &storm.strategies[1].runs[0]];
    let RunFigures::Reconnect(figures) = &made.figures else { panic!("{:?}", made.figures) };
    assert_eq!((figures.clients, figures.connected, figures.gave_up, figures.unfinished), (150, 150, 0, 0));
    assert_eq!(figures.connects.iter().sum::<u32>(), 150);
    // Nobody has two attempts underway.
    assert!(figures.peak_in_flight <= 150, "{}", figures.peak_in_flight);

    let measured = made.measured.as_ref().expect("it was made");
    let server = measured.server.as_ref().expect("the server said what it had seen");
    assert_eq!((server.accepted, server.active), (150, 150));
    assert_eq!(server.arrived, server.accepted + server.rejected);
    // Those that came while nobody listened were refused by the kernel.
    assert!(server.arrived <= figures.attempts && server.rejected > 0, "{server:?}, {} attempts", figures.attempts);
    assert!(server.peak_backlog <= 21, "{server:?}");
    assert!(measured.down_s.is_some_and(|down| down > 0.0) && measured.disconnect_window_s > 0.0, "{measured:?}");
    assert!(measured.listen_drops.is_some() || !cfg!(target_os = "linux"), "{measured:?}");
    assert_eq!(simulated.measured, None);
}

/// Same policy, same waits of every client: what differs is the machine. One that is busy with something else may shape the
/// curve, which the run then says itself; it is tried again.
#[test]
fn what_is_measured_is_near_what_is_simulated_unless_the_run_is_doubtful() {
    for _ in 0..3 {
        let (storm, _) = storm(&mut drill(&["--compare", EAGER]));
        let figures = storm.strategies.iter().map(|strategy| match &strategy.runs[0].figures {
            RunFigures::Reconnect(figures) => (figures.attempts_per_client, figures.t99_s.expect("everyone is back")),
            other => panic!("{other:?}"),
        });
        let figures: Vec<(f64, f64)> = figures.collect();
        let ((attempts, t99), (wanted_attempts, wanted_t99)) = (figures[0], figures[1]);
        let is_near =
            (attempts / wanted_attempts - 1.0).abs() < 0.25 && (t99 - wanted_t99).abs() < 0.1 + 0.25 * wanted_t99;
        if is_near {
            return;
        }
        let doubts = &storm.strategies[0].runs[0].measured.as_ref().expect("it was made").warnings;
        assert!(!doubts.is_empty(), "nothing speaks against (measured, simulated) {figures:?}");
    }
}

#[test]
fn policies_are_tried_one_after_the_other_and_people_read_what_came_of_each() {
    let files = Files::new();
    let (html, svg) = (files.path("drill.html"), files.path("svg"));
    let mut command =
        drill(&["--clients=60", "--compare", EAGER, "--compare", "patient: exponential base=100ms spread=300ms"]);
    let seen = see(command.arg("-o").arg(&html).arg("--svg").arg(&svg));
    let text = &seen.exits(0).stdout;
    for part in ["eager, measured", "eager, simulated", "patient, measured", "the server saw", "timers up to"] {
        assert!(text.contains(part), "{part} is not in {text}");
    }
    let page = fs::read_to_string(html).unwrap();
    assert!(
        page.contains("A retry storm, measured and simulated") && page.contains("patient, measured: connections lost")
    );
    assert!(fs::read_to_string(svg.join("arrivals.svg")).unwrap().contains("patient, measured"));
}

#[test]
fn an_assertion_is_about_what_was_measured() {
    let seen = see(&mut drill(&["--clients=50", "--compare", EAGER, "--assert", "connected>=50,attempts<1"]));
    seen.exits(1).says("failed: attempts<1 does not hold for eager, measured with seed 1");
    seen.is_silent_about("simulated").is_silent_about("connected>=50");
}

#[test]
fn what_cannot_be_drilled_is_refused_with_the_way_out() {
    for (args, told) in [
        (&["--url", "ws://192.0.2.1:9/"][..], "--capacity 500/s"),
        (&["--url", "ws://192.0.2.1:9/", "--capacity", "9/s"], "--i-own-this-server"),
        (&["--url", "wss://127.0.0.1:9/", "--capacity", "9/s"], "a drill has no TLS"),
        (&["--url", "http://127.0.0.1:9/", "--capacity", "9/s"], "has to begin with ws://"),
        (&["--url", "ws://127.0.0.1:9/", "--down", "1s"], "cannot be used with"),
        (&["--restart-cmd", "true"], "--url"),
        (&["--clients", "0"], "--clients"),
        (&["--clients", "70m"], "--clients"),
        (&["--assert", "peek<=6"], "--assert: `peek` is not a figure"),
        (&["--listen-backlog", "4000000000"], "net.core.somaxconn"),
        (&["--compare", "no-such-policy"], "--compare"),
    ] {
        see(stagger(["drill"]).args(args)).exits(2).says(told);
    }
    see(&mut stagger(["drill", "--url", "ws://127.0.0.1:1/", "--capacity", "9/s"]))
        .exits(125)
        .says("start your server first");
}

/// `stagger drill` where a process may open few files.
fn limited(files: &str, args: &[&str]) -> Command {
    let mut command = Command::new("sh");
    command.args(["-c", &format!("ulimit {files}; exec \"$0\" drill \"$@\""), env!("CARGO_BIN_EXE_stagger")]);
    command.args(args).env("COLUMNS", "120").stdin(Stdio::null());
    command
}

#[test]
fn too_few_descriptors_are_told_before_anything_begins() {
    let seen = see(&mut limited("-n 300", &["--clients", "1000"]));
    seen.exits(2).says("lower --clients to 100, or for more, raise it as root: ulimit -Hn 1200");
    // Nobody asked for a number: then fewer will do.
    let seen = see(&mut limited("-n 300", &["--capacity=1k/s", "--compare", EAGER]));
    seen.exits(0).says("there are 100 clients instead of 3,000");
    // A soft limit is raised without a word.
    let seen = see(&mut limited("-Sn 64", &["--clients=100", "--capacity=1k/s", "--compare", EAGER]));
    seen.exits(0).is_silent_about("files");
}

#[test]
fn the_server_never_outlives_a_drill_that_is_killed() {
    let running = Running::start(&mut drill(&["--compare", "late: constant base=30s spread=30s"]));
    let mut servers = Vec::new();
    eventually("a server", || {
        servers = children(running.pid());
        !servers.is_empty()
    });
    running.signal(Signal::KILL);
    eventually("its end", || servers.iter().all(|server| state(*server).is_none()));
}

#[test]
fn an_interrupted_drill_keeps_what_is_finished_and_leaves_no_half_of_a_file() {
    let files = Files::new();
    let path = files.path("drill.json");
    let late = "late: constant base=30s spread=30s max-attempts=inf";
    let mut command = drill(&["--clients=40", "--compare", EAGER, "--compare", late]);
    let running = Running::start(command.arg(format!("--json={}", path.display())));
    // Two servers a run.
    let mut servers = BTreeSet::new();
    eventually("the second run", || {
        servers.extend(children(running.pid()).iter().map(|pid| pid.as_raw_nonzero()));
        servers.len() > 2
    });
    assert!(!path.exists());
    running.signal(Signal::INT);
    let seen = running.end();
    seen.exits(130).says("interrupted: 1 of 2 runs are finished");
    let storm: StormReport = serde_json::from_str(&fs::read_to_string(&path).unwrap()).unwrap();
    assert_eq!(storm.strategies.len(), 2, "measured and simulated");
    let is_gone = |pid: &core::num::NonZeroI32| Pid::from_raw(pid.get()).is_none_or(|pid| state(pid).is_none());
    eventually("the servers' end", || servers.iter().all(is_gone));
}

/// A server of the user's own, at an address.
fn server(address: &str) -> (Child, String) {
    let mut command = stagger(["drill-server", "--listen-backlog=128", "--address", address]);
    let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().expect("it can be started");
    let mut line = String::new();
    let said = child.stdout.take().expect("it is a pipe");
    BufReader::new(said).read_line(&mut line).expect("it says where it listens");
    (child, line.trim().to_owned())
}

#[test]
fn a_server_of_ones_own_is_watched_while_a_command_restarts_it() {
    let files = Files::new();
    let asked = files.path("asked");
    let (mut first, address) = server("127.0.0.1:0");
    let restart = format!("echo now > {}", asked.display());
    let url = format!("ws://{address}/feed");
    let drilled = thread::spawn(move || {
        let args =
            ["drill", "--clients=40", "--capacity=500/s", "--compare", EAGER, "--url", &url, "--restart-cmd", &restart];
        storm(&mut stagger(args))
    });
    files.wait_for_lines("asked", 1);
    first.kill().expect("it is there");
    first.wait().expect("it ends");
    thread::sleep(Duration::from_millis(300));
    let (mut second, _) = server(&address);
    let (storm, _) = drilled.join().expect("the drill went well");
    let run = &storm.strategies[0].runs[0];
    let RunFigures::Reconnect(figures) = &run.figures else { panic!("{:?}", run.figures) };
    assert_eq!((figures.clients, figures.connected), (40, 40));
    let measured = run.measured.as_ref().expect("it was made");
    assert_eq!(measured.server, None, "nobody can ask it");
    let down = measured.down_s.expect("it was down as long as nobody was back");
    assert!((0.2..PATIENCE.as_secs_f64()).contains(&down), "{down}");
    second.kill().expect("it is there");
    second.wait().expect("it ends");
}

#[test]
fn a_server_that_goes_on_without_its_drill_ends_with_its_input() {
    let (mut child, _) = server("127.0.0.1:0");
    let pid = Pid::from_child(&child);
    assert!(state(pid).is_some());
    drop(child.stdin.take());
    let ended = child.wait().expect("it ends");
    assert!(ended.success(), "{ended}");
    assert!(kill_process(pid, Signal::TERM).is_err());
}
