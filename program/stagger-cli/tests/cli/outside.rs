//! Names and values that somebody else wrote never drive the terminal, never make a line of their own, and are shown
//! in part if they are long.

use core::fmt::Write as _;
use std::io::{Read, Write};
use std::net::TcpListener;
use std::process::Command;
use std::{fs, thread};

use crate::support::{Files, Seen, run_script, see, see_with_input, stagger};

/// What a terminal obeys: it sets the title, rings, clears the screen, returns to the start of the line, begins a line
/// that looks like one of ours, and reorders text.
const HOSTILE: &str = "x\u{1b}]0;t\u{7}\u{1b}[2J\u{9b}1m\rFORGED\nFORGED ok\u{202e}\u{2066}\u{85}";

/// The longest output of a command, in bytes, whatever the length of a name.
const BOUND: usize = 20_000;

/// Returns the name as JSON and TOML quote it.
fn quoted(name: &str) -> String {
    let mut out = String::from("\"");
    for unit in name.chars() {
        if unit.is_ascii_alphanumeric() || unit == ' ' {
            out.push(unit);
        } else {
            let _ = write!(out, "\\u{:04x}", u32::from(unit));
        }
    }
    out + "\""
}

/// Runs a command with a hostile name and with one of 400 kB.
#[track_caller]
fn is_shown_safely(what: &str, command: impl Fn(&str) -> Seen) {
    for name in [HOSTILE.to_owned(), "y".repeat(400_000)] {
        let seen = command(&name);
        let said = format!("{}{}", seen.stdout, seen.stderr);
        let start: String = said.chars().take(3_000).collect();
        assert!(said.len() < BOUND, "{what}: {} bytes: {start}", said.len());
        let obeyed = |c: char| (c.is_control() && c != '\n') || matches!(c, '\u{202e}' | '\u{2066}');
        assert!(!said.contains(obeyed), "{what}: {start:?}");
        assert!(!said.lines().any(|line| line.starts_with("FORGED")), "{what}: {start}");
        assert!(
            said.contains(r"x\u{1b}]") || said.contains("yyyy") || said.contains("FORGED"),
            "{what} shows no name: {start}"
        );
    }
}

#[test]
fn names_in_traces() {
    let trace = |name: &str| {
        let name = quoted(name);
        let span = |id: u32, parent: u32, start: u32| {
            format!(
                r#"{{"traceId":"1","spanId":"{id}","parentSpanId":"{parent}","name":{name},"kind":3,
                "startTimeUnixNano":"{start}000000","endTimeUnixNano":"{}000000","status":{{"code":2}},
                "attributes":[{{"key":"peer.service","value":{{"stringValue":{name}}}}}]}}"#,
                start + 5
            )
        };
        let spans: Vec<_> = (2..6).map(|id| span(id, 1, id * 100)).collect();
        format!(
            r#"{{"resourceSpans":[{{"resource":{{"attributes":[{{"key":"service.name","value":{{"stringValue":{name}}}}}]}},
            "scopeSpans":[{{"spans":[{}]}}]}}]}}"#,
            spans.join(",")
        )
        .replace('\n', " ")
    };
    is_shown_safely("check --traces", |name| {
        see_with_input(&mut stagger(["check", "--traces", "-"]), trace(name).as_bytes())
    });
}

#[test]
fn names_in_the_file_of_a_system() {
    let files = Files::new();
    let system = |name: &str| {
        let name = quoted(name);
        files.write(
            "system.toml",
            format!("[users]\nrate = \"50/s\"\n[tier.{name}]\nworkers = 2\n[[edge]]\nfrom = \"users\"\nto = {name}\n"),
        )
    };
    let key = |name: &str| {
        files.write(
            "system.toml",
            format!(
                "[users]\nrate = \"50/s\"\n{} = 1\n[tier.a]\n[[edge]]\nfrom = \"users\"\nto = \"a\"\n",
                quoted(name)
            ),
        )
    };
    let value = |name: &str| {
        files.write(
            "system.toml",
            format!("[users]\nrate = {}\n[tier.a]\n[[edge]]\nfrom = \"users\"\nto = \"a\"\n", quoted(name)),
        )
    };
    let policy = |name: &str| {
        let edge = format!("[[edge]]\nfrom = \"users\"\nto = \"a\"\npolicy = {}\n", quoted(name));
        files.write("system.toml", format!("[users]\nrate = \"50/s\"\n[tier.a]\n{edge}"))
    };
    let syntax = |name: &str| {
        files.write(
            "system.toml",
            format!("[users]\nrate = \"50/s\"\n{name} = = 1\n[tier.a]\n[[edge]]\nfrom = \"users\"\nto = \"a\"\n"),
        )
    };
    for (what, file) in [
        ("tier", &system as &dyn Fn(&str) -> std::path::PathBuf),
        ("key", &key),
        ("value", &value),
        ("policy", &policy),
    ] {
        is_shown_safely(&format!("simulate system, {what}"), |name| {
            see(stagger(["simulate", "system"]).arg(file(name)).arg("--seed=1"))
        });
        is_shown_safely(&format!("check of a system, {what}"), |name| see(stagger(["check"]).arg(file(name))));
    }
    // What is no TOML is shown as a position.
    for name in [HOSTILE.to_owned(), "y".repeat(400_000)] {
        is_shown_safely_as_it_is("syntax", &see(stagger(["simulate", "system"]).arg(syntax(&name))));
    }
}

#[test]
fn names_of_files() {
    for name in [HOSTILE.replace('/', "-"), "y".repeat(200)] {
        let files = Files::new();
        fs::create_dir(files.path("in")).unwrap();
        let inside = files.path("in").join(format!("{name}.yaml"));
        for text in ["a: [", "retries:\n  attempts: 3\n", "apiVersion: networking.istio.io/v1\nkind: VirtualService\n"]
        {
            fs::write(&inside, text).unwrap();
            is_shown_safely_as_it_is("check DIR", &see(stagger(["check"]).arg(files.path("in"))));
            is_shown_safely_as_it_is("check FILE", &see(stagger(["check"]).arg(&inside)));
        }
        for command in [["check", "--traces"], ["simulate", "system"], ["control", "show"]] {
            is_shown_safely_as_it_is(command[1], &see(stagger(command).arg(files.path("missing").join(&name))));
        }
        is_shown_safely_as_it_is("an argument", &see(&mut stagger(["check", &format!("--{name}")])));
        is_shown_safely_as_it_is("a command", &see(&mut stagger([&name])));
        is_shown_safely_as_it_is("a policy", &see(&mut stagger(["plan", "-p", &name])));
    }
}

#[track_caller]
fn is_shown_safely_as_it_is(what: &str, seen: &Seen) {
    let said = format!("{}{}", seen.stdout, seen.stderr);
    let obeyed = |c: char| (c.is_control() && c != '\n') || matches!(c, '\u{202e}' | '\u{2066}');
    assert!(!said.contains(obeyed) && !said.lines().any(|line| line.starts_with("FORGED")), "{what}: {said:?}");
    assert!(said.len() < BOUND, "{what}: {said}");
}

#[test]
fn values_of_configurations_logs_and_controls() {
    let files = Files::new();
    let written = |name: &str, text: String| files.write(name, text);
    let configuration = |name: &str| {
        let name = quoted(name);
        format!(
            "apiVersion: networking.istio.io/v1\nkind: VirtualService\nmetadata: {{name: {name}}}\nspec:\n  http:\n  - \
             retries: {{attempts: 3, retryOn: {name}, perTryTimeout: {name}}}\n"
        )
    };
    is_shown_safely("check, istio", |name| see(stagger(["check"]).arg(written("vs.yaml", configuration(name)))));
    is_shown_safely("check, a line of a log", |name| {
        see_with_input(&mut stagger(["check", "--log", "-"]), format!("{name} a 1\n").as_bytes())
    });
    is_shown_safely("control", |name| {
        see(stagger(["control", "show"]).arg(written("controls", format!("{name}=25%\n"))))
    });
}

/// Starts a server that answers whatever it reads with `answer`.
fn answering(answer: String) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port is free");
    let address = listener.local_addr().expect("the port is known").to_string();
    thread::spawn(move || {
        for stream in listener.incoming() {
            let (mut stream, answer) = (stream.expect("a connection"), answer.clone());
            thread::spawn(move || {
                let mut request = [0; 4_096];
                while stream.read(&mut request).is_ok_and(|n| n > 0) && stream.write_all(answer.as_bytes()).is_ok() {}
            });
        }
    });
    address
}

#[test]
fn replies_of_servers() {
    let in_line = |name: &str| name.replace(['\r', '\n'], " ");
    // It says that the store does not answer, and not what it answers.
    for name in [HOSTILE.to_owned(), "y".repeat(400_000)] {
        let name = &name;
        let store = format!("redis://{}/b", answering(format!("-ERR {} FORGED\r\n", in_line(name))));
        let mut command: Command =
            run_script(&["-v", "-n", "2", "--budget", &store, "--budget-processes", "2"], "exit 7");
        is_shown_safely_as_it_is("run --budget", &see(&mut command));
    }
    for name in [HOSTILE.to_owned(), "y".repeat(400_000)] {
        let name = &name;
        let store = format!("redis://{}/c", answering(format!("-ERR {} FORGED\r\n", in_line(name))));
        is_shown_safely_as_it_is("control", &see(&mut stagger(["control", "show", &store])));
    }
    // It shows the status alone.
    for name in [HOSTILE.to_owned(), "y".repeat(400_000)] {
        let server = answering(format!("HTTP/1.1 503 {} FORGED\r\ncontent-length: 0\r\n\r\n", in_line(&name)));
        let seen = see(&mut stagger(["wait", &format!("http://{server}/"), "--timeout", "100ms"]));
        is_shown_safely_as_it_is("wait", &seen);
    }
    for name in [HOSTILE.to_owned(), "y".repeat(400_000)] {
        let name = in_line(&name);
        let server =
            answering(format!("HTTP/1.1 503 {name} FORGED\r\nretry-after: {name}\r\ncontent-length: 0\r\n\r\n"));
        let run = [
            "run",
            "-v",
            "-n",
            "2",
            "-d",
            "1ms",
            "--http",
            "--",
            "curl",
            "-sS",
            "--fail",
            &format!("http://{server}/"),
        ];
        is_shown_safely_as_it_is("run --http", &see(&mut stagger(run)));
    }
}
