//! The processes that a command starts: which of them end with an attempt, and which do not.

use core::time::Duration;
use std::fs;
use std::os::unix::process::ExitStatusExt;
use std::time::Instant;

use rustix::process::{Pid, Signal, kill_process};

use crate::support::{Files, Running, eventually, run_script, see, state};

/// Returns a script that starts a process in a session of its own, which writes its PID, and then runs `rest`.
fn with_session(files: &Files, rest: &str) -> String {
    let pid = files.path("session");
    format!(
        "setsid sh -c 'echo $$ >> {0}; exec sleep 60' >/dev/null 2>&1 & while ! test -s {0}; do sleep 0.01; done; \
         {rest}",
        pid.display()
    )
}

/// Returns the PIDs that `n` attempts have written.
fn sessions(files: &Files, n: usize) -> Vec<Pid> {
    let lines = files.wait_for_lines("session", n);
    lines
        .iter()
        .map(|line| Pid::from_raw(line.parse().expect("a PID is a number")).expect("a PID is not zero"))
        .collect()
}

fn end(pids: &[Pid]) {
    for pid in pids {
        let _ = kill_process(*pid, Signal::KILL);
    }
}

#[track_caller]
fn are_gone(pids: &[Pid]) {
    let left: Vec<Pid> = pids.iter().copied().filter(|pid| state(*pid).is_some()).collect();
    end(&left);
    assert!(left.is_empty(), "still alive: {left:?}");
}

#[test]
fn a_process_in_its_own_session_ends_with_an_attempt_that_times_out() {
    for flags in [&["-n", "1", "-t", "1s"][..], &["-n", "1", "-t", "1s", "--foreground"]] {
        let files = Files::new();
        see(&mut run_script(flags, &with_session(&files, "sleep 60"))).exits(124);
        are_gone(&sessions(&files, 1));
    }
}

#[test]
fn a_process_in_its_own_session_ends_with_a_signal_to_stagger() {
    for (flags, signal) in [(&[][..], Signal::TERM), (&["--foreground"], Signal::HUP)] {
        let files = Files::new();
        let running = Running::start(&mut run_script(flags, &with_session(&files, "sleep 60")));
        let session = sessions(&files, 1);
        running.signal(signal);
        running.end().dies_of(signal);
        are_gone(&session);
    }
}

#[test]
fn a_daemon_whose_parents_have_exited_ends_with_the_attempt() {
    let files = Files::new();
    let daemon = format!(
        "(setsid sh -c 'trap \"\" TERM; echo $$ > {}; while :; do sleep 1; done' &)",
        files.path("pid").display()
    );
    let script = format!("{daemon}; while ! test -s {}; do sleep 0.01; done; sleep 60", files.path("pid").display());
    let flags = ["-n", "1", "-t", "1s", "--kill-after", "100ms"];
    see(&mut run_script(&flags, &script)).exits(124);
    are_gone(&[files.wait_for_pid("pid")]);
}

#[test]
fn what_a_failed_attempt_leaves_in_the_background_ends_before_the_next() {
    let files = Files::new();
    let file = files.path("server");
    // The second attempt finds out whether the server of the first still runs, as it would by "address in use".
    let script = format!(
        "test -s {0} && kill -0 \"$(cat {0})\" 2>/dev/null && exit 9; sleep 60 >/dev/null 2>&1 & echo $! > {0}; exit 1",
        file.display()
    );
    for flags in [&["-n", "3"][..], &["-n", "3", "--foreground"]] {
        // Another process may have the number of the former run's server by now.
        fs::write(&file, "").unwrap();
        let began = Instant::now();
        let seen = see(&mut run_script(flags, &script));
        seen.exits(1).is_silent_about("exit:9");
        // Told once, with the way out.
        assert_eq!(seen.stderr.matches("--keep-background").count(), 1, "{seen:#?}");
        assert!(began.elapsed() < Duration::from_secs(20));
        // The last attempt has failed as well.
        are_gone(&[files.wait_for_pid("server")]);
    }
}

#[test]
fn a_process_that_ends_by_itself_after_a_failed_attempt_is_not_signaled() {
    let files = Files::new();
    let script = format!(
        "(trap 'echo signaled >> {0}' TERM; sleep 0.02; echo ended >> {0}) & exit 1",
        files.path("late").display()
    );
    let seen = see(&mut run_script(&["-n", "2"], &script));
    seen.exits(1).is_silent_about("--keep-background");
    assert_eq!(files.wait_for_lines("late", 2), ["ended", "ended"]);
}

#[test]
fn keep_background_keeps_what_failed_attempts_leave() {
    let files = Files::new();
    let script = with_session(&files, "exit 1");
    let seen = see(&mut run_script(&["-n", "2", "--keep-background"], &script));
    seen.exits(1).is_silent_about("background");
    let left = sessions(&files, 2);
    let alive = left.iter().filter(|pid| state(**pid).is_some()).count();
    end(&left);
    assert_eq!(alive, 2);
}

#[test]
fn processes_that_are_not_of_the_attempt_are_left_alone() {
    let files = Files::new();
    // A process of the shell that became stagger, and one that the hook has started.
    let script = format!(
        "sleep 60 >/dev/null 2>&1 & echo $! > {}; exec {} run -d 5ms -n 2 -t 300ms \
         --on-retry 'sleep 60 >/dev/null 2>&1 & echo $! > {}' -- sleep 60",
        files.path("older").display(),
        env!("CARGO_BIN_EXE_stagger"),
        files.path("hook").display()
    );
    see(std::process::Command::new("sh").args(["-c", &script])).exits(124);
    let others = [files.wait_for_pid("older"), files.wait_for_pid("hook")];
    let alive = others.iter().filter(|pid| state(**pid).is_some()).count();
    end(&others);
    assert_eq!(alive, 2);
}

#[test]
fn a_signal_while_background_processes_end_ends_the_run() {
    let files = Files::new();
    let script = format!(
        "sh -c 'trap \"touch {1}\" TERM; echo $$ > {0}; while :; do sleep 0.01; done' >/dev/null 2>&1 & \
         while ! test -s {0}; do sleep 0.01; done; exit 1",
        files.path("pid").display(),
        files.path("asked").display()
    );
    let running = Running::start(&mut run_script(&["--kill-after", "60s"], &script));
    let deaf = files.wait_for_pid("pid");
    eventually("the background process was asked to end", || files.path("asked").exists());
    running.signal(Signal::TERM);
    running.signal(Signal::INT);
    let seen = running.end();
    assert!(seen.status.signal().is_some(), "{seen:#?}");
    seen.is_silent_about("attempt=2");
    are_gone(&[deaf]);
}
