//! Tests of `stagger drill --client`, with clients of Node's own WebSocket and of a shell.

use std::fs;
use std::process::Command;

use rustix::process::Signal;
use serde_json::{Value, json};

use crate::support::{Files, Running, Seen, eventually, see, stagger, state, unpacked};

/// Clients that reconnect half a second after a loss or a failed attempt, without jitter.
const CLIENTS: &str = "\
    const { STAGGER_DRILL_URL: url, STAGGER_DRILL_CLIENTS: clients } = process.env;\n\
    const connect = () => {\n\
      const socket = new WebSocket(url);\n\
      let over = false;\n\
      const again = () => {\n\
        if (!over) setTimeout(connect, 500);\n\
        over = true;\n\
      };\n\
      socket.onclose = again;\n\
      // Node does not report the end of a failed handshake in any other way.\n\
      socket.onerror = again;\n\
    };\n\
    for (let n = 0; n < Number(clients) + Number(process.argv[2] ?? 0); n += 1) connect();\n";

/// The policy that they have.
const POLICY: &str = "half: constant base=500ms jitter=none max-attempts=inf stable-after=0s";

fn node(files: &Files, arguments: &str) -> String {
    let script = files.write("clients.mjs", CLIENTS);
    format!("node --experimental-websocket --no-warnings {} {arguments}", script.display())
}

fn drill(client: &str, args: &[&str]) -> Command {
    let mut command = stagger(["drill", "--clients=60", "--capacity=1k/s", "--client", client, "--compare", POLICY]);
    command.args(args).env("COLUMNS", "120");
    command
}

/// Returns the measured run of a document of one policy.
#[track_caller]
fn measured(seen: &Seen) -> Value {
    let document: Value = serde_json::from_str(&seen.exits(0).stdout).expect("valid JSON");
    document["strategies"][0]["runs"][0].clone()
}

/// Checks the run of 60 clients that were all rejected or accepted once.
#[track_caller]
fn assert_reconnected_once(run: &Value) {
    assert_eq!((&run["connected"], &run["attempts"], &run["unfinished"]), (&60.into(), &60.into(), &0.into()), "{run}");
    let server = &run["measured"]["server"];
    assert_eq!((&server["arrived"], &server["active"]), (&60.into(), &60.into()), "{run}");
    let half = run["recovered_p50_s"].as_f64().expect("a time");
    assert!(half >= 0.5, "the clients wait for half a second: {half}");
}

#[test]
fn clients_of_a_command_are_measured_at_the_server_and_compared_with_their_policy() {
    needs!("node");
    let files = Files::new();
    let (markdown, page) = (files.path("drill.md"), files.path("drill.html"));
    let client = node(&files, "");
    let outputs = [format!("--md={}", markdown.display()), format!("-o{}", page.display()), "--json".to_owned()];
    let run = measured(&see(drill(&client, &["--processes=2"]).args(outputs)));
    assert_reconnected_once(&run);
    // What belongs to single clients is not known.
    assert_eq!((&run["attempts_p99"], &run["clients_by_attempts"]), (&Value::Null, &Value::Array(Vec::new())));
    assert_eq!(run["gave_up"], Value::Null, "a server does not tell which clients have given up");
    let about = &run["measured"];
    assert_eq!(about["client"], client.as_str());
    let agreement = &about["agreement"];
    assert_eq!((&agreement["simulations"], agreement["figures"].as_array().map(Vec::len)), (&8.into(), Some(5)));
    let is_reliable = about["warnings"].as_array().is_some_and(Vec::is_empty);
    let verdict =
        if is_reliable { agreement["agrees"].as_bool().expect("a verdict").to_string() } else { "null".to_owned() };
    assert_eq!(agreement["agrees"].to_string(), verdict);
    for text in [markdown, page].map(|path| fs::read_to_string(path).unwrap()) {
        assert!(text.contains("the largest difference is that of") && text.contains("clients.mjs"), "{text}");
    }
}

/// Lays out `clients/js` and its driver as in the repository, with the client bundled to one module, and returns the
/// driver's command.
fn ours(files: &Files) -> String {
    let clients = concat!(env!("CARGO_MANIFEST_DIR"), "/../../clients");
    let module = format!("--outfile={}", files.path("js/dist/index.js").display());
    let mut bundler = Command::new(unpacked("esbuild"));
    let bundler =
        bundler.arg(format!("{clients}/js/src/index.ts")).args(["--bundle", "--format=esm", "--target=es2022"]);
    see(bundler.args([module.as_str(), "--log-level=warning"])).exits(0);
    files.write("package.json", r#"{ "type": "module" }"#);
    fs::create_dir(files.path("drill")).expect("an empty directory");
    for name in ["drill.mjs", "ours.mjs"] {
        fs::copy(format!("{clients}/drill/{name}"), files.path("drill").join(name)).expect("a driver");
    }
    format!("node --experimental-websocket --no-warnings {}", files.path("drill/ours.mjs").display())
}

/// If the machine was busy, there is no verdict, and the run is repeated.
#[test]
fn our_client_in_javascript_spreads_its_attempts_as_its_policy_says() {
    needs!("esbuild", "node");
    let files = Files::new();
    let client = ours(&files);
    let policy = "ours: exponential base=200ms cap=1s spread=1500ms max-attempts=inf stable-after=0s";
    for _ in 0..3 {
        let mut command =
            stagger(["drill", "--clients=50", "--capacity=1k/s", "--client", &client, "--compare", policy]);
        let run = measured(&see(command.arg("--json")));
        let agreement = &run["measured"]["agreement"];
        let burst = &agreement["figures"][0];
        assert_eq!(burst["figure"], "burst_100ms");
        let number = |value: &Value| value.as_f64().expect("a number");
        // All 50 clients come within 100 ms if they have no spread.
        assert!(number(&burst["measured"]) <= 1.5 * number(&burst["simulated_max"]) + 3.0, "{run:#}");
        assert_eq!((&run["connected"], &run["attempts"]), (&50.into(), &50.into()), "{run:#}");
        if agreement["agrees"] == true {
            return;
        }
        assert!(agreement["agrees"].is_null(), "{run:#}");
    }
}

#[test]
fn clients_of_another_server_are_killed_and_counted_at_a_relay() {
    needs!("node");
    let files = Files::new();
    // Its standard input stays open.
    let server = format!(
        "sh -c 'sleep 1000 | {} drill-server --listen-backlog=128 --address=127.0.0.1:$PORT'",
        env!("CARGO_BIN_EXE_stagger")
    );
    let run = measured(&see(drill(&node(&files, ""), &["--server", &server]).arg("--json")));
    assert_reconnected_once(&run);
}

#[test]
fn rejected_clients_are_counted_and_retry() {
    needs!("node");
    let files = Files::new();
    let limits = ["--capacity=40/s", "--backlog=10", "--json"];
    let run = measured(&see(&mut drill(&node(&files, ""), &limits)));
    let (server, attempts) = (&run["measured"]["server"], run["attempts"].as_u64().expect("a count"));
    assert_eq!((&run["connected"], &server["accepted"]), (&60.into(), &60.into()), "{run}");
    assert_eq!(server["rejected"].as_u64(), Some(attempts - 60), "{run}");
    assert!(attempts > 60, "{run}");
}

#[test]
fn a_command_that_does_not_do_what_it_should_is_named_with_its_output() {
    needs!("node");
    let files = Files::new();
    let more = node(&files, "5");
    for (client, messages) in [
        (
            "no-such-program-anywhere x",
            &["exit status: 127", "cannot start `no-such-program-anywhere`: No such file"][..],
        ),
        ("sh -c 'echo one; echo two >&2; exit 3'", &["ended with exit status: 3", "0 of 60 clients", "one | two"]),
        ("sh -c 'kill -9 $$'", &["exit status: 137", "it wrote nothing"]),
        ("true", &["ended with exit status: 0", "0 of 60 clients had connected, with 0 attempts"]),
        (&more, &["connections at once, and 60 were asked for"]),
    ] {
        let seen = see(&mut drill(client, &[]));
        messages.iter().fold(seen.exits(2), |seen, message| seen.says(message)).says("--client: `");
    }
    let seen = see(&mut drill("true", &["--server", "sh -c 'echo port $PORT is taken; exit 4'"]));
    seen.exits(2).says("--server: `").says("ended with exit status: 4 before it listened on port").says("is taken");
}

#[test]
fn how_many_clients_gave_up_is_unknown_also_if_none_reconnects() {
    needs!("node");
    let files = Files::new();
    let script =
        files.write("clients.mjs", CLIENTS.replace("setTimeout(connect, 500)", "setTimeout(() => {}, 3_600_000)"));
    let client = format!("node --experimental-websocket --no-warnings {}", script.display());
    let run = measured(&see(&mut drill(&client, &["--horizon=2s", "--json"])));
    assert_eq!((&run["connected"], &run["attempts"], &run["gave_up"]), (&0.into(), &0.into(), &Value::Null), "{run}");
    // A run that a busy machine has shaped has no verdict.
    let (agrees, warnings) = (&run["measured"]["agreement"]["agrees"], &run["measured"]["warnings"]);
    assert!(*agrees == false || agrees.is_null() && *warnings != json!([]), "{run}");
}

#[test]
fn invalid_combinations_are_rejected_with_a_remedy() {
    for (args, message) in [
        (&["--client", "node x.mjs"][..], "--policy socket.io"),
        (&["--client", "node 'x.mjs", "--policy", "socket.io"], "a quote in `node 'x.mjs` is not closed"),
        (&["--client", "", "--policy", "socket.io"], "the command is empty"),
        (&["--client", "x", "--policy", "socket.io", "--processes", "0"], "--processes"),
        (&["--client", "x", "--url", "ws://127.0.0.1:1/"], "cannot be used with"),
        (&["--assert", "agree=yes"], "unknown metric `agree`"),
        (&["--server", "x"], "--client"),
        (&["outage", "--client", "x"], "--client is of the other scenario"),
    ] {
        see(stagger(["drill"]).args(args)).exits(2).says(message);
    }
}

#[test]
fn no_process_of_the_clients_outlives_the_drill() {
    for (signal, code) in [(Signal::KILL, None), (Signal::INT, Some(130)), (Signal::TERM, Some(143))] {
        let files = Files::new();
        let path = files.path("pid");
        let client = format!("sh -c 'sleep 1000 & echo $! > {}; wait'", path.display());
        let running = Running::start(&mut drill(&client, &[]));
        let background = files.wait_for_pid("pid");
        running.signal(signal);
        let seen = running.end();
        if let Some(code) = code {
            seen.exits(code);
        }
        eventually("the clients end", || state(background).is_none());
    }
}
