//! What people wait for: each line runs against the real thing, and beside the tool that is known for it.

use core::time::Duration;
use std::io::{BufReader, Read};
use std::process::{Command, Stdio};
use std::time::Instant;
use std::{env, thread};

use super::scenes::{self, Scene, read_until};
use crate::support::{Files, Running, eventually, has, ignore_no_signal};

struct Use {
    what: &'static str,
    /// The line with stagger.
    ours: &'static str,
    /// The line with the tool that is known for it.
    theirs: &'static str,
    scene: fn(&Files) -> Scene,
}

const USES: [Use; 21] = [
    Use {
        what: "a port, then a command",
        ours: "stagger wait localhost:$PORT -- echo up",
        theirs: "wait-for-it localhost:$PORT -- echo up",
        scene: scenes::port,
    },
    Use {
        what: "several ports",
        ours: "stagger wait localhost:$PORT localhost:$PORT2",
        theirs: "dockerize -wait tcp://localhost:$PORT -wait tcp://localhost:$PORT2",
        scene: scenes::two_ports,
    },
    Use {
        what: "either of two ports",
        ours: "stagger wait --any localhost:$PORT localhost:$PORT2",
        theirs: "until nc -z localhost $PORT || nc -z localhost $PORT2; do sleep 1; done",
        scene: scenes::the_second_of_two_ports,
    },
    Use {
        what: "a service, in an init container",
        ours: "stagger wait -t inf localhost:$PORT",
        theirs: "until nc -z localhost $PORT; do sleep 2; done",
        scene: scenes::port,
    },
    Use {
        what: "a port that closes",
        ours: "stagger wait --gone localhost:$PORT",
        theirs: "wait-on --reverse tcp:localhost:$PORT",
        scene: scenes::a_port_that_closes,
    },
    Use {
        what: "PostgreSQL, as `depends_on` with a health check",
        ours: "stagger wait --command 'pg_isready -q -h localhost -p '$PORT",
        theirs: "until pg_isready -q -h localhost -p $PORT; do sleep 1; done",
        scene: scenes::postgres,
    },
    Use {
        what: "Redis",
        ours: "stagger wait --command 'redis-cli -p '$PORT' ping'",
        theirs: "until redis-cli -p $PORT ping >/dev/null 2>&1; do sleep 1; done",
        scene: scenes::redis,
    },
    Use {
        what: "nginx",
        ours: "stagger wait http://localhost:$PORT/",
        theirs: "wait-on http-get://localhost:$PORT/",
        scene: scenes::nginx,
    },
    Use {
        what: "a server that is starting",
        ours: "stagger wait http://localhost:$PORT/",
        theirs: "curl --retry 30 --retry-connrefused --retry-delay 1 -fsSo /dev/null http://localhost:$PORT/",
        scene: scenes::nginx,
    },
    Use {
        what: "503 with `Retry-After: 1`",
        ours: "stagger wait http://localhost:$PORT/",
        theirs: "curl --retry 30 -fsSo /dev/null http://localhost:$PORT/",
        scene: scenes::unavailable_with_retry_after,
    },
    Use {
        what: "a page that needs a login",
        ours: "stagger wait --status 2xx,401 http://localhost:$PORT/",
        theirs: "wait4x http http://localhost:$PORT/ --expect-status-code 401 --timeout 60s",
        scene: scenes::a_login_page,
    },
    Use {
        what: "the text of a page",
        ours: "stagger wait --body '\"status\": *\"up\"' http://localhost:$PORT/",
        theirs: "until curl -fsS http://localhost:$PORT/ 2>&1 | grep -q '\"status\": *\"up\"'; do sleep 1; done",
        scene: scenes::a_body_that_changes,
    },
    Use {
        what: "the page behind a redirect",
        ours: "stagger wait -L http://localhost:$PORT/",
        theirs: "curl -L --retry 30 --retry-connrefused --retry-delay 1 -fsSo /dev/null http://localhost:$PORT/",
        scene: scenes::a_redirect,
    },
    Use {
        what: "a virtual host",
        ours: "stagger wait -H 'Host: app.example' http://localhost:$PORT/",
        theirs: "dockerize -wait-http-header 'Host: app.example' -wait http://localhost:$PORT/",
        scene: scenes::a_virtual_host,
    },
    Use {
        what: "HTTPS with a CA of your own",
        ours: "stagger wait --cacert $DIR/ca.pem https://localhost:$PORT/",
        theirs: "curl --cacert $DIR/ca.pem --retry 30 --retry-connrefused --retry-delay 1 -fsSo /dev/null https://localhost:$PORT/",
        scene: scenes::https,
    },
    Use {
        what: "a service behind a proxy",
        ours: "http_proxy=http://localhost:$PORT stagger wait http://service.invalid/",
        theirs: "http_proxy=http://localhost:$PORT curl --retry 30 --retry-connrefused --retry-delay 1 -fsSo /dev/null http://service.invalid/",
        scene: scenes::a_service_behind_a_proxy,
    },
    Use {
        what: "a Unix socket",
        ours: "stagger wait unix:$DIR/socket",
        theirs: "until [ -S $DIR/socket ]; do sleep 1; done",
        scene: scenes::socket,
    },
    Use {
        what: "a file",
        ours: "stagger wait file:$DIR/ready",
        theirs: "inotifywait -qq -e create $DIR",
        scene: scenes::file,
    },
    Use {
        what: "a file that nothing writes to any more",
        ours: "stagger wait --stable 750ms --non-empty file:$DIR/ready",
        theirs: "wait-on $DIR/ready",
        scene: scenes::file,
    },
    Use {
        what: "a lock file that is removed",
        ours: "stagger wait --gone file:$DIR/lock",
        theirs: "while [ -e $DIR/lock ]; do sleep 1; done",
        scene: scenes::lock,
    },
    Use {
        what: "the end of a process",
        ours: "stagger wait pid:$PID",
        theirs: "tail --pid=$PID -f /dev/null",
        scene: scenes::process,
    },
];

/// Starts a line of the table in a shell, with the directories of `peers`, each followed by a colon, and the program
/// under test in `PATH`.
fn start(line: &str, variables: &[(&'static str, String)], files: &Files, peers: &str) -> Running {
    ignore_no_signal();
    let program = std::path::Path::new(env!("CARGO_BIN_EXE_stagger"));
    let path = env::var("PATH").unwrap_or_default();
    let path = format!("{peers}{}:{path}", program.parent().expect("the line runs").display());
    let mut shell = Command::new("sh");
    for name in
        ["http_proxy", "https_proxy", "all_proxy", "no_proxy", "HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "NO_PROXY"]
    {
        shell.env_remove(name);
    }
    // The shell gives way to the line, if it is one command, so that it is killed with it.
    shell.args(["-c", line]).env("PATH", path).env("DIR", files.path(".")).envs(variables.iter().cloned());
    Running::start(shell.stdin(Stdio::null()))
}

/// Each line is started while its target is not ready, which becomes ready after the first failed attempt.
fn check(number: usize) {
    let wanted = &USES[number];
    let programs = [("pg_isready", "pg_isready"), ("redis-cli", "redis-server")];
    if programs.iter().any(|(word, program)| wanted.ours.contains(word) && !has(&[*program])) {
        return;
    }
    let files = Files::new();
    let scene = (wanted.scene)(&files);
    let line = wanted.ours.replace("stagger wait", "stagger wait --verbose");
    let mut running = start(&line, &scene.variables, &files, "");
    let mut stderr = BufReader::new(running.child.stderr.take().expect("the line runs"));
    read_until(&mut stderr, "attempt 1: ");
    let guard = (scene.begin)();
    let mut rest = String::new();
    stderr.read_to_string(&mut rest).expect("the line runs");
    let seen = running.end();
    assert!(seen.status.success(), "{}: {line}: {seen:?} {rest}", wanted.what);
    assert!(rest.contains("ready after "), "{}: {rest}", wanted.what);
    drop(guard);
}

/// A test for each line of the table.
macro_rules! lines {
    ($($name:ident = $number:literal;)*) => {
        $(#[test]
        fn $name() {
            check($number);
        })*

        #[test]
        fn every_line_has_a_test() {
            assert_eq!([$($number),*], core::array::from_fn::<usize, { USES.len() }, _>(|index| index));
        }
    };
}

lines! {
    a_port_then_a_command = 0;
    several_ports = 1;
    either_of_two_ports = 2;
    a_service_in_an_init_container = 3;
    a_port_that_closes = 4;
    postgresql = 5;
    redis = 6;
    nginx = 7;
    a_server_that_is_starting = 8;
    unavailable_with_retry_after = 9;
    a_page_that_needs_a_login = 10;
    the_text_of_a_page = 11;
    the_page_behind_a_redirect = 12;
    a_virtual_host = 13;
    https_with_a_ca_of_ones_own = 14;
    a_service_behind_a_proxy = 15;
    a_unix_socket = 16;
    a_file = 17;
    a_file_that_nothing_writes_to = 18;
    a_lock_file_that_is_removed = 19;
    the_end_of_a_process = 20;
}

/// Returns a line as it is written in a table.
fn cell(line: &str) -> String {
    line.replace('|', "\\|")
}

/// Measures every line beside its peer, and prints the rows of a table:
/// `STAGGER_PEERS=DIR cargo test -p stagger-cli --test cli -- --ignored --nocapture beside_their_peers`, where DIR has
/// the peers that are not in `PATH`, and a release build of stagger. `STAGGER_USE=HTTPS` selects lines.
#[test]
#[ignore = "measures for some minutes, and needs the peers"]
fn lines_beside_their_peers() {
    let peers = env::var("STAGGER_PEERS").map(|directory| directory + ":").unwrap_or_default();
    let only = env::var("STAGGER_USE").unwrap_or_default();
    for wanted in USES.iter().filter(|wanted| wanted.what.contains(&only)) {
        let [ours, theirs] = [wanted.ours, wanted.theirs].map(|line| median(line, wanted.scene, &peers));
        let (what, one, other) = (wanted.what, cell(wanted.ours), cell(wanted.theirs));
        println!("| {what} | `{one}` | `{other}` | {ours} | {theirs} |");
    }
}

/// Times between the start of a line and the moment its target becomes ready: in different phases of an interval of a
/// second.
const PHASES: [u64; 5] = [1_350, 1_550, 1_750, 1_950, 2_150];

/// Returns the median of the time from readiness to the end of the line, in milliseconds.
fn median(line: &str, scene: fn(&Files) -> Scene, peers: &str) -> String {
    let mut late = Vec::new();
    for phase in PHASES {
        let files = Files::new();
        let scene = scene(&files);
        let mut running = start(line, &scene.variables, &files, peers);
        thread::sleep(Duration::from_millis(phase));
        if let Some(status) = running.child.try_wait().expect("the line runs") {
            return format!("ended with {}", status.code().unwrap_or(-1));
        }
        let guard = (scene.begin)();
        let ready = Instant::now();
        let mut status = None;
        eventually(line, || {
            status = running.child.try_wait().expect("the line runs");
            status.is_some()
        });
        if !status.is_some_and(|status| status.success()) {
            return format!("{status:?}");
        }
        late.push(ready.elapsed().as_millis());
        drop(guard);
    }
    late.sort_unstable();
    format!("{} ms", late[late.len() / 2])
}
