//! What curl and programs that retry a command do, in the tables of `docs/guide/compared.md`: each program that is
//! installed is run.

use core::time::Duration;
use std::fs;
use std::io::{BufRead as _, BufReader, Write as _};
use std::os::unix::process::CommandExt;
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::time::Instant;

use rustix::process::{Pid, Signal, kill_process, kill_process_group};

use crate::origin::{Answer, OK, Origin};
use crate::support::{Files, Seen, eventually, ignore_no_signal, see, state};

const PAGE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/guide/compared.md");

/// A program, and the words before a command that is attempted at most twice, with the shortest delay that it accepts.
struct Tool {
    name: &'static str,
    program: &'static str,
    twice: &'static [&'static str],
}

const TOOLS: [Tool; 6] = [
    Tool {
        name: "stagger",
        program: env!("CARGO_BIN_EXE_stagger"),
        twice: &["run", "-q", "-n", "2", "-d", "1ms", "--stdin", "replay", "-O", "--"],
    },
    Tool { name: "retry", program: "retry", twice: &["-t", "2", "-d", "0", "--"] },
    Tool { name: "parallel", program: "parallel", twice: &["--will-cite", "--retries", "2", "-q", "-N0"] },
    // Its program is named `retry`, too; it is found if a link of this name is in PATH.
    Tool { name: "retry-cli", program: "retry-cli", twice: &["-n", "1", "-t", "1", "--"] },
    Tool { name: "eb", program: "eb", twice: EB },
    Tool { name: "attempt", program: "attempt", twice: ATTEMPT },
];
const EB: &[&str] = &["-x", "2"];
const ATTEMPT: &[&str] = &["fixed", "-a", "2", "-w", "0", "--"];

/// A situation, how to bring it about, and what each tool does in it, in the order of [`TOOLS`].
type Row = (&'static str, fn(&Trial<'_>) -> String, [&'static str; TOOLS.len()]);

const LEFT: &str = "it is left running";
const BOTH: &str = "both on standard output";

const ROWS: [Row; 9] = [
    ("a program that does not exist", missing, ["exit 127", "exit 1", "exit 1", "exit 1", "exit 101", "exit 1"]),
    ("the command exits with 77", exhausted, ["exit 77", "exit 77", "exit 1", "exit 1", "exit 0", "exit 3"]),
    ("it is killed by SIGKILL", killed, ["2 calls", "1 call", "2 calls", "2 calls", "1 call", "2 calls"]),
    ("it dies of ^C", interrupted, ["1 call", "1 call", "2 calls", "2 calls", "1 call", "2 calls"]),
    ("TERM while it runs", terminated, ["it is ended", LEFT, "it is ended", LEFT, LEFT, LEFT]),
    ("arguments with quotes, spaces and a newline", quoted, ["passed on exactly"; TOOLS.len()]),
    (
        "output of a failed attempt, then success",
        partial,
        ["only that of the success", "only that of the success", "only that of the success", BOTH, BOTH, BOTH],
    ),
    ("standard input for attempt 2", replayed, ["complete", "complete", "empty", "empty", "empty", "empty"]),
    ("output that is not UTF-8", binary, ["passed on exactly"; TOOLS.len()]),
];

/// A program in a situation, with a directory of its own.
struct Trial<'a> {
    tool: &'a Tool,
    files: Files,
}

struct Ended {
    code: String,
    stdout: Vec<u8>,
}

/// No situation takes longer, unless a program never ends.
const LIMIT: Duration = Duration::from_secs(60);

impl Trial<'_> {
    fn command(&self, words: &[&str]) -> Command {
        ignore_no_signal();
        let mut command = Command::new(self.tool.program);
        command.args(self.tool.twice).args(words).current_dir(self.files.path("")).process_group(0);
        // parallel runs the command once for each of these words and, with -N0, does not add them.
        if self.tool.program == "parallel" {
            command.args([":::", "once"]);
        }
        command.env("LANG", "C.UTF-8").stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::null());
        command
    }

    /// Runs a command to its end, or ends it after the limit.
    fn run(&self, words: &[&str], input: &[u8]) -> Ended {
        let mut child = self.command(words).stdin(Stdio::piped()).spawn().expect("the program starts");
        // A program that reads no input closes the pipe.
        let _ = child.stdin.take().expect("stdin is piped").write_all(input);
        let group = Pid::from_child(&child);
        let reader = std::thread::spawn(move || child.wait_with_output());
        let began = Instant::now();
        while !reader.is_finished() && began.elapsed() < LIMIT {
            std::thread::sleep(Duration::from_millis(5));
        }
        if !reader.is_finished() {
            let _ = kill_process_group(group, Signal::KILL);
            return Ended { code: "never ends".to_owned(), stdout: Vec::new() };
        }
        let output = reader.join().expect("the reader does not panic").expect("the output is read");
        let code = match output.status.code() {
            Some(code) => format!("exit {code}"),
            None => "dies of a signal".to_owned(),
        };
        Ended { code, stdout: output.stdout }
    }

    /// Runs a shell script that records each of its calls.
    fn script(&self, script: &str, input: &[u8]) -> Ended {
        self.run(&["sh", "-c", &format!("echo >>calls; {script}")], input)
    }

    fn calls(&self) -> String {
        match fs::read_to_string(self.files.path("calls")).unwrap_or_default().lines().count() {
            1 => "1 call".to_owned(),
            calls => format!("{calls} calls"),
        }
    }
}

fn missing(trial: &Trial<'_>) -> String {
    trial.run(&["no-such-command"], b"").code
}

fn exhausted(trial: &Trial<'_>) -> String {
    trial.script("exit 77", b"").code
}

fn killed(trial: &Trial<'_>) -> String {
    trial.script("kill -KILL $$", b"");
    trial.calls()
}

fn interrupted(trial: &Trial<'_>) -> String {
    trial.script("kill -INT $$", b"");
    trial.calls()
}

fn terminated(trial: &Trial<'_>) -> String {
    let mut child = trial
        .command(&["sh", "-c", "echo $$ >pid.new; mv pid.new pid; exec sleep 60"])
        .spawn()
        .expect("the program starts");
    let pid = trial.files.wait_for_pid("pid");
    kill_process(Pid::from_child(&child), Signal::TERM).expect("the program runs");
    let began = Instant::now();
    while state(pid).is_some() && began.elapsed() < Duration::from_secs(1) {
        std::thread::sleep(Duration::from_millis(5));
    }
    let survives = state(pid).is_some();
    let _ = kill_process(pid, Signal::KILL);
    eventually("the command has ended", || state(pid).is_none());
    let _ = kill_process_group(Pid::from_child(&child), Signal::KILL);
    child.wait().expect("the status is read");
    if survives { LEFT } else { "it is ended" }.to_owned()
}

fn quoted(trial: &Trial<'_>) -> String {
    let words = ["it's", "two  spaces", "a\nb", "$HOME", "*"];
    let ended = trial.run(&[&["printf", "%s|"][..], &words].concat(), b"");
    exactly(&ended.stdout, (words.join("|") + "|").as_bytes())
}

fn partial(trial: &Trial<'_>) -> String {
    let ended = trial.script("test -e failed && { echo good; exit 0; }; touch failed; echo partial; exit 1", b"");
    match (&*String::from_utf8_lossy(&ended.stdout), &*ended.code) {
        ("good\n", _) => "only that of the success".to_owned(),
        ("partial\ngood\n", _) => BOTH.to_owned(),
        (other, code) => format!("{:?}, {code}", other.trim()),
    }
}

fn replayed(trial: &Trial<'_>) -> String {
    trial.script("cat >seen; test -e failed && exit 0; touch failed; exit 1", b"input\n");
    match &*fs::read_to_string(trial.files.path("seen")).unwrap_or_default() {
        "input\n" if trial.calls() == "2 calls" => "complete".to_owned(),
        "" => "empty".to_owned(),
        other => format!("{other:?}, {}", trial.calls()),
    }
}

fn binary(trial: &Trial<'_>) -> String {
    exactly(&trial.script(r"printf '\377\376\000x'", b"").stdout, b"\xff\xfe\0x")
}

fn exactly(seen: &[u8], want: &[u8]) -> String {
    if seen == want { "passed on exactly" } else { "changed" }.to_owned()
}

fn is_in_path(program: &str) -> bool {
    let directories = std::env::var_os("PATH").unwrap_or_default();
    let found = std::env::split_paths(&directories).any(|directory: PathBuf| directory.join(program).is_file());
    program.contains('/') || found
}

/// Returns the rows of the table whose header begins like this, each with its cells.
fn rows_behind(page: &str, header: &str) -> Vec<Vec<String>> {
    let table = page.lines().skip_while(|line| !line.starts_with(header)).skip(2);
    let row = |line: &str| line.trim_matches('|').split('|').map(|cell| cell.trim().to_owned()).collect();
    table.take_while(|line| line.starts_with('|')).map(row).collect()
}

#[test]
fn programs_that_retry_a_command_do_what_the_guide_says() {
    // The programs run at the same time, because some of them are slow, and one row waits for what survives.
    std::thread::scope(|scope| {
        for (at, tool) in TOOLS.iter().enumerate() {
            if !is_in_path(tool.program) {
                eprintln!("SKIPPED: {} is not installed, so its column is not checked", tool.name);
                continue;
            }
            scope.spawn(move || {
                for (situation, observe, cells) in &ROWS {
                    assert_eq!(observe(&Trial { tool, files: Files::new() }), cells[at], "{situation}: {}", tool.name);
                }
            });
        }
    });
}

/// Returns what the other tools do that differs from stagger, such as `parallel, eb: exit 1; attempt: exit 3`.
fn others(cells: &[&str]) -> String {
    let mut groups: Vec<(&str, Vec<&str>)> = Vec::new();
    for (cell, tool) in cells.iter().zip(&TOOLS).filter(|(cell, _)| **cell != cells[0]) {
        match groups.iter_mut().find(|(of, _)| of == cell) {
            Some((_, names)) => names.push(tool.name),
            None => groups.push((cell, vec![tool.name])),
        }
    }
    groups.iter().map(|(cell, names)| format!("{}: {cell}", names.join(", "))).collect::<Vec<_>>().join("; ")
}

#[test]
fn the_guide_has_the_situations_in_which_they_differ() {
    let page = fs::read_to_string(PAGE).expect("the page exists");
    let wanted: Vec<_> = ROWS
        .iter()
        .map(|(situation, _, cells)| [(*situation).to_owned(), cells[0].to_owned(), others(cells)])
        .filter(|row| !row[2].is_empty())
        .collect();
    assert_eq!(rows_behind(&page, "| situation"), wanted);
}

/// A response, the answers of the server, the options of curl, and what each of [`COMMANDS`] does.
struct Exchange {
    response: &'static str,
    answers: &'static [Answer],
    curl: &'static [&'static str],
    cells: [&'static str; COMMANDS.len()],
}

const BUSY: Answer = Answer::Head(&["HTTP/1.1 503 Service Unavailable"]);
const LATER: Answer = Answer::Head(&["HTTP/1.1 503 Service Unavailable", "Retry-After: 30"]);

const EXCHANGES: [Exchange; 8] = [
    Exchange { response: "503, then 200", answers: &[BUSY, OK], curl: &["-f"], cells: ["2 requests, exit 0"; 3] },
    Exchange { response: "503 each time", answers: &[BUSY], curl: &["-f"], cells: ["2 requests, exit 22"; 3] },
    Exchange {
        response: "503 each time, `curl` without `-f`",
        answers: &[BUSY],
        curl: &[],
        cells: ["2 requests, exit 0", "1 request, exit 0", "2 requests, exit 22"],
    },
    Exchange {
        response: "503 with `Retry-After: 30`",
        answers: &[LATER],
        curl: &["-f"],
        cells: ["waits for it", "does not wait", "waits for it"],
    },
    Exchange {
        response: "503 each time, to a POST",
        answers: &[BUSY],
        curl: &["-f", "-d", "order"],
        cells: ["2 requests, exit 22", "2 requests, exit 22", "1 request, exit 22"],
    },
    Exchange {
        response: "404",
        answers: &[Answer::Head(&["HTTP/1.1 404 Not Found"])],
        curl: &["-f"],
        cells: ["1 request, exit 22", "2 requests, exit 22", "1 request, exit 22"],
    },
    Exchange {
        response: "200, and half of the body",
        answers: &[Answer::HalfBody(&["HTTP/1.1 200 OK"])],
        curl: &["-f"],
        cells: ["1 request, exit 18", "2 requests, exit 18", "2 requests, exit 18"],
    },
    Exchange {
        response: "none: the server closes the connection",
        answers: &[Answer::Nothing],
        curl: &["-f"],
        cells: ["1 request, exit 52", "2 requests, exit 52", "2 requests, exit 52"],
    },
];

/// The words before the options of curl, in the order of the columns. The first is to be found in `PATH`.
const COMMANDS: [&[&str]; 3] = [
    &["curl", "--retry", "1"],
    &["retry", "-t", "2", "-d", "0", "--", "curl"],
    &[env!("CARGO_BIN_EXE_stagger"), "run", "--http", "-n", "2", "-d", "1ms", "--", "curl"],
];

impl Exchange {
    /// Returns what the command does, or `None` if it is not installed.
    fn observe(&self, command: &[&str]) -> Option<String> {
        if ![command[0], "curl"].into_iter().all(is_in_path) {
            eprintln!("SKIPPED: {} or curl is not installed, so its column is not checked", command[0]);
            return None;
        }
        let origin = Origin::start(self.answers);
        let mut started = plain(command[0]);
        // Without -s, curl says how long it waits.
        let says_wait = command[0] == "curl" && self.response.contains("Retry-After");
        started.args(&command[1..]).arg(if says_wait { "-q" } else { "-qsS" }).args(self.curl).arg(origin.url());
        if self.response.contains("Retry-After") {
            let line = line_with(started, &["30 second", " next=", " returned 22"]);
            let next = line.split(" next=").nth(1).and_then(|rest| rest.split('s').next()?.parse::<f64>().ok());
            let waits = line.contains("30 second") || next.is_some_and(|next| next >= 30.0);
            return Some(if waits { "waits for it" } else { "does not wait" }.to_owned());
        }
        let code = see(&mut started).status.code().unwrap_or(-1);
        Some(match origin.requests().len() {
            1 => format!("1 request, exit {code}"),
            requests => format!("{requests} requests, exit {code}"),
        })
    }
}

/// Returns a command without proxies and translations.
fn plain(program: &str) -> Command {
    ignore_no_signal();
    let mut command = Command::new(program);
    for name in ["http_proxy", "all_proxy", "HTTP_PROXY", "ALL_PROXY", "STAGGER_RETRIED_BY"] {
        command.env_remove(name);
    }
    command.env("LANG", "C.UTF-8").stdin(Stdio::null());
    command
}

#[test]
fn the_table_of_responses_in_the_guide_is_what_the_programs_do() {
    let page = fs::read_to_string(PAGE).expect("the page exists");
    let rows = rows_behind(&page, "| response ");
    assert!(rows.len() >= 5, "{rows:?}");
    for row in rows {
        let exchange = EXCHANGES.iter().find(|exchange| row[0] == exchange.response);
        assert!(exchange.is_some_and(|exchange| exchange.cells[..] == row[1..]), "{row:?}");
    }
    // They run at the same time, because curl waits for a second at least.
    std::thread::scope(|scope| {
        for exchange in &EXCHANGES {
            for (command, cell) in COMMANDS.iter().zip(exchange.cells) {
                scope.spawn(move || {
                    if let Some(seen) = exchange.observe(command) {
                        assert_eq!(seen, cell, "{}: {command:?}", exchange.response);
                    }
                });
            }
        }
    });
}

/// Starts a command, and kills it after the first line on its standard error with one of these parts, which is
/// returned; an empty one if there is none.
fn line_with(mut command: Command, parts: &[&str]) -> String {
    command.process_group(0).stdout(Stdio::null()).stderr(Stdio::piped());
    let mut child = command.spawn().expect("it starts");
    let mut lines = BufReader::new(child.stderr.take().expect("stderr is piped")).lines().map_while(Result::ok);
    let line = lines.find(|line| parts.iter().any(|part| line.contains(part)));
    let _ = kill_process_group(Pid::from_child(&child), Signal::KILL);
    child.wait().expect("the status is read");
    line.unwrap_or_default()
}

fn first_line(words: &[&str]) -> String {
    let mut command = plain(words[0]);
    command.args(&words[1..]);
    line_with(command, &[""])
}

fn finished(words: &[&str]) -> Seen {
    see(plain(words[0]).args(&words[1..]))
}

/// The rows of the table of bare lines that are marked **run**.
#[test]
fn bare_lines_do_what_the_guide_says() {
    let page = fs::read_to_string(PAGE).expect("the page exists");
    let rows = rows_behind(&page, "| line ");
    let cells = |line: &str| {
        let row = rows.iter().find(|row| row[0] == format!("`{line}`")).unwrap_or_else(|| panic!("no row for {line}"));
        assert_eq!(row[5], "**run**");
        [row[1].as_str(), row[2].as_str(), row[4].as_str()]
    };

    assert_eq!(cells("stagger run -- CMD"), ["4", "up to 0.1, 0.2, 0.4 s", "the status of the command"]);
    let seen = finished(&[env!("CARGO_BIN_EXE_stagger"), "run", "--", "sh", "-c", "exit 3"]);
    assert_eq!(seen.exits(3).stderr.matches("result=exit:3").count(), 4, "{seen:?}");
    let total: f64 = seen
        .stderr
        .split(" next=")
        .skip(1)
        .map(|rest| rest.split('s').next().unwrap_or_default().parse::<f64>().expect("seconds"))
        .sum();
    assert!(total <= 0.7, "{seen:?}");

    if is_in_path("curl") {
        let busy = Origin::start(&[BUSY]);
        finished(&["curl", "-qs", &busy.url()]).exits(0);
        assert_eq!(busy.requests().len(), 1);

        assert_eq!(cells("curl --retry 3 URL"), ["4", "1, 2, 4 s; 10 min at most", "0, for a last 503 too"]);
        let warning = first_line(&["curl", "-q", "--no-progress-meter", "--retry", "3", &busy.url()]);
        // Newer versions say "Retrying in 1 second".
        if warning.contains("Will retry") {
            assert!(warning.contains("Will retry in 1 seconds. 3 retries left."), "{warning}");
        }
        let silent = finished(&["curl", "-qsS", "--retry", "1", &busy.url()]);
        assert_eq!((silent.exits(0).stderr.as_str(), busy.requests().len()), ("", 1 + 1 + 2));
    }
    if is_in_path("retry") {
        assert_eq!(cells("retry CMD"), ["no limit", "10 s", "the status of the command"]);
        let line = "retry: false returned 1, backing off for 10 seconds and trying again...";
        assert_eq!(first_line(&["retry", "false"]), line);
    }
    if is_in_path("timeout") {
        finished(&["timeout", "0.05", "sleep", "60"]).exits(124);
        finished(&["timeout", "10", "sh", "-c", "exit 3"]).exits(3);
    }
}
