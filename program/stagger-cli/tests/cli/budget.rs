//! `stagger run --budget`: one retry budget for all runs of a user on a machine.

use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Instant;

use rustix::process::{Signal, getuid};

use crate::support::{Files, Running, Seen, eventually, is_stopped, run_script, see};

/// Directories in place of the runtime directory of a user.
struct User {
    files: Files,
}

impl User {
    fn new() -> Self {
        Self { files: Files::new() }
    }

    /// Returns a run of a command that adds a line to the ledger and fails.
    fn failing(&self, flags: &[&str]) -> Command {
        self.run(flags, "echo called >> \"$LEDGER\"; exit 9")
    }

    /// Returns a run of a script with the budget `test`.
    fn run(&self, flags: &[&str], script: &str) -> Command {
        let mut command = run_script(&[&["--cap", "10ms", "--budget", "test"], flags].concat(), script);
        command.env("XDG_RUNTIME_DIR", self.files.path(".")).env("LEDGER", self.files.path("ledger"));
        command
    }

    fn calls(&self) -> usize {
        fs::read_to_string(self.files.path("ledger")).unwrap_or_default().lines().count()
    }

    fn file(&self) -> PathBuf {
        self.files.path("stagger/budget-test")
    }

    /// Returns how many retries the budget still grants.
    fn left(&self) -> u64 {
        attempts(see(&mut self.run(&["-n", "1000", "--log", "json"], "exit 9")).exits(9)) - 1
    }
}

/// Returns the number of attempts of a run with `--log json`.
fn attempts(seen: &Seen) -> u64 {
    let done: serde_json::Value = serde_json::from_str(seen.stderr.lines().last().expect("a line")).expect("JSON");
    done["attempts"].as_u64().expect("a number")
}

#[test]
fn a_hundred_runs_at_the_same_time_make_no_more_retries_than_the_budget_has() {
    let user = User::new();
    let flags = ["-n", "20", "--budget-size", "40", "-q"];
    let runs: Vec<_> = (0..100).map(|_| Running::start(&mut user.failing(&flags))).collect();
    for run in runs {
        assert_eq!(run.end().exits(9).stderr, "");
    }
    assert_eq!(user.calls(), 100 + 40);
}

#[test]
fn a_refill_returns_so_many_retries_in_a_time() {
    let user = User::new();
    let began = Instant::now();
    let flags = ["-n", "20", "--budget-size", "10", "--budget-refill", "50/s", "-q"];
    let runs: Vec<_> = (0..30).map(|_| Running::start(&mut user.failing(&flags))).collect();
    for run in runs {
        run.end().exits(9);
    }
    let most = 10.0 + 50.0 * began.elapsed().as_secs_f64();
    let retries = user.calls() - 30;
    assert!(retries >= 10 && retries as f64 <= most, "{retries} retries, at most {most}");
}

#[test]
fn a_refused_retry_ends_the_run_with_the_code_of_the_command_and_says_why() {
    let user = User::new();
    let flags = ["-n", "5", "--budget-size", "1"];
    see(&mut user.failing(&flags)).exits(9).says("attempt=2/5 result=exit:9").says("stop=budget");
    let seen = see(&mut user.failing(&[&flags[..], &["--log", "json"]].concat()));
    let lines: Vec<serde_json::Value> =
        seen.exits(9).stderr.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!(lines[0]["budget"], "test");
    let attempt = lines.iter().find(|line| line["event"] == "attempt").unwrap();
    assert_eq!((attempt["n"].as_u64(), attempt["stop"].as_str()), (Some(1), Some("budget")), "{attempt}");
    assert_eq!(lines.last().unwrap()["stop"], "budget");
}

#[test]
fn by_default_it_has_a_hundred_retries() {
    assert_eq!(User::new().left(), 100);
}

#[test]
fn a_success_returns_one_retry() {
    let user = User::new();
    let flags = ["--budget-size", "3", "-n", "9"];
    see(&mut user.failing(&flags)).exits(9);
    for _ in 0..2 {
        see(&mut user.run(&flags, "true")).exits(0);
    }
    assert_eq!(user.left(), 2);
    // A full budget stays full.
    for _ in 0..5 {
        see(&mut user.run(&flags, "true")).exits(0);
    }
    see(&mut user.failing(&flags)).exits(9);
    assert_eq!(user.left(), 0);
}

#[test]
fn a_retry_that_an_interrupted_run_has_not_made_is_returned() {
    let user = User::new();
    let mut command = user.failing(&["--cap", "1h", "-d", "1h", "-j", "none", "--budget-size", "3"]);
    let run = Running::start(&mut command);
    eventually("it waits for its first retry", || {
        fs::read_to_string(user.file()).is_ok_and(|text| text.contains(" 2000000 "))
    });
    run.signal(Signal::TERM);
    run.end().dies_of(Signal::TERM);
    assert_eq!(user.left(), 3);
}

#[test]
fn the_size_of_the_latest_run_is_in_force() {
    let user = User::new();
    see(&mut user.failing(&["-n", "2", "--budget-size", "50"])).exits(9);
    see(&mut user.failing(&["-n", "1000", "--budget-size", "5"])).exits(9);
    assert_eq!(user.calls(), 2 + 1 + 5);
    // A larger one does not fill it.
    see(&mut user.failing(&["-n", "1000", "--budget-size", "50"])).exits(9);
    assert_eq!(user.calls(), 2 + 1 + 5 + 1);
}

#[test]
fn runs_that_are_killed_leave_a_valid_budget() {
    let user = User::new();
    let flags = ["-n", "1000", "--budget-size", "60", "-q"];
    let runs: Vec<_> = (0..40).map(|_| Running::start(&mut user.failing(&flags))).collect();
    eventually("some retries", || user.calls() > 50);
    let (killed, rest): (Vec<_>, Vec<_>) = runs.into_iter().enumerate().partition(|(number, _)| number % 2 == 0);
    killed.iter().for_each(|(_, run)| run.signal(Signal::KILL));
    for (_, run) in rest {
        assert_eq!(run.end().exits(9).stderr, "");
    }
    drop(killed);
    // A killed run may have paid for a retry that it did not make, and its command may not have begun.
    let calls = user.calls();
    assert!((21..=100).contains(&calls), "{calls}");
    assert_eq!(user.left(), 0);
}

/// Starts a process that holds the lock of the budget.
fn hold(user: &User) -> Running {
    see(&mut user.run(&[], "true")).exits(0);
    let ready = user.files.path("held");
    let mut flock = Command::new("flock");
    flock.arg(user.file()).args(["sh", "-c", "echo $$ > \"$0\"; exec sleep 1000"]).arg(&ready).stdin(Stdio::null());
    let holder = Running::start(&mut flock);
    user.files.wait_for_lines("held", 1);
    holder
}

/// Returns whether a process has this file open.
fn has_open(process: &Running, file: &Path) -> bool {
    let descriptors = fs::read_dir(format!("/proc/{}/fd", process.pid().as_raw_nonzero()));
    descriptors.is_ok_and(|all| all.flatten().any(|one| fs::read_link(one.path()).is_ok_and(|open| open == file)))
}

#[test]
fn a_run_waits_for_the_holder_and_reads_what_that_has_written() {
    let user = User::new();
    let holder = hold(&user);
    let sleeper = user.files.wait_for_pid("held");
    let run = Running::start(&mut user.failing(&["-n", "1000", "--budget-size", "9"]));
    let file = user.file().canonicalize().unwrap();
    eventually("the run uses the budget", || has_open(&run, &file));
    let text = fs::read_to_string(&file).unwrap();
    let full = text.split_whitespace().nth(3).unwrap();
    // Two retries.
    let line = text.replace(full, "2000000");
    fs::write(&file, format!("{:<127}\n", line.trim_end())).unwrap();
    rustix::process::kill_process(sleeper, Signal::KILL).unwrap();
    run.end().exits(9).is_silent_about("warning").says("stop=budget");
    assert_eq!(user.calls(), 1 + 2);
    drop(holder);
}

#[test]
fn a_holder_that_is_killed_releases_the_budget() {
    let user = User::new();
    let holder = hold(&user);
    holder.signal(Signal::KILL);
    let sleeper = user.files.wait_for_pid("held");
    rustix::process::kill_process(sleeper, Signal::KILL).unwrap();
    see(&mut user.failing(&["-n", "1000", "--budget-size", "3"])).exits(9).is_silent_about("warning");
    assert_eq!(user.calls(), 4);
}

#[test]
fn a_holder_that_is_stopped_delays_a_run_once_and_does_not_stop_it() {
    let user = User::new();
    let holder = hold(&user);
    let sleeper = user.files.wait_for_pid("held");
    rustix::process::kill_process(sleeper, Signal::STOP).unwrap();
    eventually("it is stopped", || is_stopped(sleeper));
    let seen = see(&mut user.failing(&["-n", "4", "--budget-size", "1"]));
    // As without a budget, which is told once.
    seen.exits(9).says("attempt=4/4 result=exit:9").says("stop=attempts");
    assert_eq!(seen.stderr.matches("warning").count(), 1, "{seen:?}");
    assert!(seen.stderr.contains("another process holds"), "{seen:?}");
    rustix::process::kill_process(sleeper, Signal::KILL).unwrap();
    drop(holder);
}

#[test]
fn a_damaged_file_is_replaced_and_told() {
    let user = User::new();
    see(&mut user.run(&[], "true")).exits(0);
    let valid = fs::read(user.file()).unwrap();
    for damaged in
        [&b"\n"[..], b"nothing that stagger has written\n", &valid[..50], &valid.repeat(9), &[0; 128], &[0xff; 128]]
    {
        fs::write(user.file(), damaged).unwrap();
        let seen = see(&mut user.failing(&["-n", "1000", "--budget-size", "2"]));
        seen.exits(9).says("warning").says("budget-test").says("stop=budget");
        assert_eq!(seen.stderr.matches("attempt=").count(), 1 + 2, "{seen:?}");
        assert_eq!(seen.stderr.matches("warning").count(), 1, "{seen:?}");
        assert_eq!(fs::read(user.file()).unwrap().len(), valid.len());
    }
}

#[test]
fn a_clock_that_steps_back_earns_nothing_and_a_restart_of_the_machine_fills_the_budget() {
    let user = User::new();
    let flags = ["-n", "1000", "--budget-size", "5", "--budget-refill", "1/h"];
    see(&mut user.failing(&flags)).exits(9);
    let text = fs::read_to_string(user.file()).unwrap();
    let fields: Vec<_> = text.split_whitespace().map(str::to_owned).collect();
    let write = |boot: &str, refilled: u64| {
        let line = format!("{} {} {boot} {} {refilled}", fields[0], fields[1], fields[3]);
        fs::write(user.file(), format!("{line:<width$}\n", width = text.len() - 1)).unwrap();
    };
    let refilled: u64 = fields[4].parse().unwrap();
    // From the time of a later clock: nothing is earned, now and until that time comes.
    write(&fields[2], refilled + 100 * 3_600 * 1_000_000_000);
    let before = user.calls();
    see(&mut user.failing(&flags)).exits(9).is_silent_about("warning");
    assert_eq!(user.calls() - before, 1);
    let kept = fs::read_to_string(user.file()).unwrap();
    let kept: u64 = kept.split_whitespace().nth(4).unwrap().parse().unwrap();
    assert!(kept < refilled + 3_600 * 1_000_000_000, "it goes on with its own clock: {kept}");
    // From before a restart.
    write("00000000-0000-0000-0000-000000000000", refilled);
    let before = user.calls();
    see(&mut user.failing(&flags)).exits(9).is_silent_about("warning");
    assert_eq!(user.calls() - before, 6);
}

#[test]
fn users_and_names_have_budgets_of_their_own() {
    let (one, other) = (User::new(), User::new());
    see(&mut one.failing(&["-n", "1000", "--budget-size", "3"])).exits(9);
    see(&mut other.failing(&["-n", "1000", "--budget-size", "3"])).exits(9);
    see(&mut one.failing(&["-n", "1000", "--budget-size", "3", "--budget", "second"])).exits(9);
    assert_eq!((one.calls(), other.calls()), (8, 4));
}

#[test]
fn without_a_runtime_directory_of_the_user_it_is_in_a_private_directory() {
    let user = User::new();
    let private = user.files.path(&format!("stagger-{}", getuid().as_raw()));
    let run = |runtime: &str| {
        let mut command = user.run(&["-n", "2"], "exit 9");
        see(command.env("TMPDIR", user.files.path(".")).env("XDG_RUNTIME_DIR", runtime)).exits(9);
        assert!(private.join("budget-test").is_file(), "{runtime:?}");
        assert_eq!(fs::metadata(&private).unwrap().permissions().mode() & 0o777, 0o700);
        fs::remove_dir_all(&private).unwrap();
    };
    run("");
    run("relative");
    run("/nonexistent");
}

#[test]
fn a_directory_that_others_control_is_refused_before_the_first_attempt() {
    let user = User::new();
    let directory = user.files.path("stagger");
    fs::create_dir(user.files.path("elsewhere")).unwrap();
    symlink(user.files.path("elsewhere"), &directory).unwrap();
    see(&mut user.failing(&[])).exits(125).says("is not a directory");
    fs::remove_file(&directory).unwrap();
    fs::write(&directory, "").unwrap();
    see(&mut user.failing(&[])).exits(125).says("is not a directory");
    fs::remove_file(&directory).unwrap();
    fs::create_dir(&directory).unwrap();
    fs::set_permissions(&directory, fs::Permissions::from_mode(0o755)).unwrap();
    see(&mut user.failing(&[])).exits(125).says("chmod 700");
    fs::set_permissions(&directory, fs::Permissions::from_mode(0o700)).unwrap();
    if getuid().is_root() {
        std::os::unix::fs::chown(&directory, Some(65_534), None).unwrap();
        see(&mut user.failing(&[])).exits(125).says("belongs to user 65534");
    }
    assert_eq!(user.calls(), 0);
}

#[test]
fn a_file_that_cannot_be_used_does_not_fail_the_run() {
    let user = User::new();
    see(&mut user.run(&[], "true")).exits(0);
    fs::remove_file(user.file()).unwrap();
    symlink(user.files.path("target"), user.file()).unwrap();
    let seen = see(&mut user.failing(&["-n", "3", "--budget-size", "1"]));
    seen.exits(9).says("stop=attempts");
    assert_eq!(seen.stderr.matches("warning").count(), 1, "{seen:?}");
    fs::remove_file(user.file()).unwrap();
    fs::create_dir(user.file()).unwrap();
    see(&mut user.failing(&["-n", "3", "--budget-size", "1"])).exits(9).says("stop=attempts");
    assert!(!user.files.path("target").exists());
}

#[test]
fn a_wrong_name_or_size_is_told_with_the_way_out() {
    let user = User::new();
    for (flags, message) in [
        (&["--budget", "a/b"][..], "`a/b` is not a name"),
        (&["--budget", ".."], "`..` is not a name"),
        (&["--budget", ""], "`` is not a name"),
        (&["--budget", "redis://localhost/sync"], "needs --budget-processes N"),
        (&["--budget", "redis://localhost", "--budget-processes", "8"], "has no name"),
        (&["--budget", "redis://:secret@localhost/0", "--budget-processes", "8"], "is a database"),
        (&["--budget-processes", "8"], "leave it out"),
        (&["--budget-size", "0"], "at least 1"),
        (&["--budget-refill", "many"], "like 500/s"),
    ] {
        see(&mut user.failing(flags)).exits(125).says(message);
    }
    for address in
        ["redis://u:secret@h:1", "redis://:secret@localhost/0", "redis://u:se/cret@h/jobs", "redis://a:secret@"]
    {
        let seen = see(&mut user.failing(&["--budget", address, "--budget-processes", "8"]));
        seen.exits(125).says("--budget").is_silent_about("cret");
    }
    let long = "x".repeat(65);
    see(&mut user.failing(&["--budget", &long])).exits(125).says("is not a name");
    see(&mut user.failing(&["--budget", &long[1..], "-n", "1"])).exits(9);
    see(&mut run_script(&["--budget-size", "3"], "true")).exits(125).says("--budget");
    assert_eq!(user.calls(), 1);
}
