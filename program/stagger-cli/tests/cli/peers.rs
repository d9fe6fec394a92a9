//! Known defects of programs that retry a command: what each program that is installed does, in the table of the guide.

use core::time::Duration;
use std::fs;
use std::io::Write as _;
use std::os::unix::process::CommandExt;
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::time::Instant;

use rustix::process::{Pid, Signal, kill_process, kill_process_group};

use crate::support::{Files, eventually, ignore_no_signal, state};

const PAGE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/guide/run.md");

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
    Tool { name: "retry 1.0.5", program: "retry", twice: &["-t", "2", "-d", "0", "--"] },
    Tool { name: "GNU parallel", program: "parallel", twice: &["--will-cite", "--retries", "2", "-q", "-N0"] },
    // Its program is named `retry`, too; it is found if a link of this name is in PATH.
    Tool { name: "retry-cli 0.7.0", program: "retry-cli", twice: &["-n", "1", "-t", "1", "--"] },
    Tool { name: "eb", program: "eb", twice: EB },
    Tool { name: "attempt", program: "attempt", twice: ATTEMPT },
];
const EB: &[&str] = &["-x", "2"];
const ATTEMPT: &[&str] = &["fixed", "-a", "2", "-w", "0", "--"];

/// A situation, how to bring it about, and the cell of a program that behaves.
const ROWS: [(&str, fn(&Trial<'_>) -> String, &str); 9] = [
    ("a program that does not exist", missing, "exit 127"),
    ("the command exits with 77 each time", exhausted, "2 calls, exit 77"),
    ("the command is killed by SIGKILL", killed, "2 calls, exit 137"),
    ("the command dies of its own ^C", interrupted, "1 call"),
    ("TERM while the command runs", terminated, "the command is ended"),
    ("arguments with quotes, spaces and a newline", quoted, "passed on exactly"),
    ("output of a failed attempt, then success", partial, "only that of the success"),
    ("standard input for the second attempt", replayed, "complete"),
    ("output that is not UTF-8", binary, "passed on exactly"),
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
const LIMIT: Duration = Duration::from_secs(20);

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
    let code = trial.script("exit 77", b"").code;
    format!("{}, {code}", trial.calls())
}

fn killed(trial: &Trial<'_>) -> String {
    let code = trial.script("kill -KILL $$", b"").code;
    format!("{}, {code}", trial.calls())
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
    if survives { "the command is left running" } else { "the command is ended" }.to_owned()
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
        ("partial\ngood\n", _) => "both on standard output".to_owned(),
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

fn is_installed(tool: &Tool) -> bool {
    let directories = std::env::var_os("PATH").unwrap_or_default();
    let found = std::env::split_paths(&directories).any(|directory: PathBuf| directory.join(tool.program).is_file());
    tool.program.contains('/') || found
}

/// Returns the cells of the table on the page: a line per row, and in it a cell per tool.
fn cells(page: &str) -> Vec<Vec<String>> {
    let table = page.lines().skip_while(|line| !line.starts_with("| situation")).skip(2);
    let row = |line: &str| line.trim_matches('|').split('|').skip(1).map(|cell| cell.trim().to_owned()).collect();
    table.take_while(|line| line.starts_with('|')).map(row).collect()
}

/// The cells of programs that are not installed stay as they are on the page.
///
/// After a change: `STAGGER_BLESS=1 cargo test -p stagger-cli peers`.
#[test]
fn the_table_of_defects_in_the_guide_is_what_the_programs_do() {
    let page = fs::read_to_string(PAGE).expect("the page exists");
    let known = cells(&page);
    // The programs run at the same time, because some of them are slow, and one row waits for what survives.
    let columns: Vec<Option<Vec<String>>> = std::thread::scope(|scope| {
        let observed = TOOLS.iter().map(|tool| {
            scope.spawn(move || {
                if !is_installed(tool) {
                    eprintln!("SKIPPED: {} is not installed, so its column is not checked", tool.name);
                    return None;
                }
                Some(ROWS.iter().map(|(_, observe, _)| observe(&Trial { tool, files: Files::new() })).collect())
            })
        });
        let observed: Vec<_> = observed.collect();
        observed.into_iter().map(|column| column.join().expect("the program is observed")).collect()
    });
    let mut now = known.clone();
    now.resize(ROWS.len(), Vec::new());
    for (at, column) in columns.into_iter().enumerate() {
        for ((cell, (situation, _, good)), cells) in column.into_iter().flatten().zip(&ROWS).zip(&mut now) {
            if at == 0 {
                assert_eq!(cell, *good, "{situation}");
            }
            cells.resize(TOOLS.len(), "not run".to_owned());
            cells[at] = if cell == *good { cell } else { format!("**{cell}**") };
        }
    }
    let names: Vec<_> = TOOLS.iter().map(|tool| tool.name).collect();
    let mut table = format!("| situation | {} |\n|{}\n", names.join(" | "), "---|".repeat(TOOLS.len() + 1));
    for ((situation, ..), cells) in ROWS.iter().zip(&now) {
        table += &format!("| {situation} | {} |\n", cells.join(" | "));
    }
    let (before, rest) = page.split_once("| situation").expect("the page has the table");
    let (_, after) = rest.split_once("\n\n").expect("a paragraph follows the table");
    let text = format!("{before}{table}\n{after}");
    if std::env::var_os("STAGGER_BLESS").is_some() {
        fs::write(PAGE, &text).expect("the page is written");
    } else {
        assert_eq!(now, known);
    }
}
