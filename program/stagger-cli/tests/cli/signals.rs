use core::time::Duration;
use std::process::Command;
use std::time::Instant;

use rustix::process::{Pid, Signal, kill_process};

use crate::support::{
    Files, Running, Seen, eventually, is_stopped, living_in_group, run, run_script, see, stagger, state,
};

/// Signals that end a run.
const END: [Signal; 4] = [Signal::TERM, Signal::INT, Signal::HUP, Signal::QUIT];

/// Returns a script with three processes; the first writes its PID, which is also its process group ID.
fn busy(files: &Files) -> String {
    format!("sleep 60 & sleep 60 & echo $$ > {}; wait", files.path("group").display())
}

#[track_caller]
fn is_gone(group: Pid) {
    assert_eq!(living_in_group(group), 0, "processes of the command are still alive");
}

#[test]
fn a_signal_ends_the_process_group_of_the_command_and_then_stagger() {
    for signal in END {
        let files = Files::new();
        // A shell makes its background commands ignore SIGINT and SIGQUIT, so these wait for --kill-after.
        let stagger = Running::start(&mut run_script(&["--kill-after", "100ms"], &busy(&files)));
        let group = files.wait_for_pid("group");
        eventually("all three processes run", || living_in_group(group) == 3);
        stagger.signal(signal);
        stagger.end().dies_of(signal).says("stop=cancelled").is_silent_about("attempt=2");
        is_gone(group);
    }
}

#[test]
fn a_signal_during_a_wait_ends_stagger_immediately() {
    for signal in END {
        let files = Files::new();
        let path = files.path("group");
        let stagger = Running::start(&mut run([
            "--base",
            "60s",
            "--cap",
            "60s",
            "--jitter",
            "none",
            "--",
            "sh",
            "-c",
            &format!("echo $$ > {}; exit 1", path.display()),
        ]));
        let group = files.wait_for_pid("group");
        eventually("the command is reaped", || state(group).is_none());
        let began = Instant::now();
        stagger.signal(signal);
        stagger.end().dies_of(signal).is_silent_about("attempt=2/4 result");
        assert!(began.elapsed() < Duration::from_secs(5));
    }
}

#[test]
fn a_command_that_handles_the_signal_is_not_retried() {
    let files = Files::new();
    let script = format!("trap 'exit 1' TERM; echo $$ > {}; while :; do sleep 0.02; done", files.path("pid").display());
    let stagger = Running::start(&mut run_script(&[], &script));
    files.wait_for_pid("pid");
    stagger.signal(Signal::TERM);
    stagger.end().dies_of(Signal::TERM).says("attempt=1/4 result=exit:1").is_silent_about("attempt=2");
}

#[test]
fn a_process_group_that_ignores_sigterm_is_killed_after_kill_after() {
    let files = Files::new();
    let stagger =
        Running::start(&mut run_script(&["--kill-after", "80ms"], &format!("trap '' TERM; {}", busy(&files))));
    let group = files.wait_for_pid("group");
    let began = Instant::now();
    stagger.signal(Signal::TERM);
    stagger.end().dies_of(Signal::TERM);
    assert!(began.elapsed() >= Duration::from_millis(80));
    is_gone(group);
}

#[test]
fn a_second_signal_kills_immediately() {
    let files = Files::new();
    let stagger =
        Running::start(&mut run_script(&["--kill-after", "60s"], &format!("trap '' TERM INT; {}", busy(&files))));
    let group = files.wait_for_pid("group");
    stagger.signal(Signal::TERM);
    // Signals sent at the same time would be coalesced.
    std::thread::sleep(Duration::from_millis(50));
    assert_ne!(living_in_group(group), 0);
    stagger.signal(Signal::INT);
    stagger.end().dies_of(Signal::INT);
    is_gone(group);
}

#[test]
fn descendants_that_outlive_the_group_leader_are_killed() {
    let files = Files::new();
    let orphan = files.path("orphan");
    let script = format!(
        "sh -c 'trap \"\" TERM; echo $$ > {}; sleep 60; sleep 60' & echo $$ > {}; wait",
        orphan.display(),
        files.path("group").display()
    );
    let stagger = Running::start(&mut run_script(&["--kill-after", "80ms"], &script));
    let (group, orphan) = (files.wait_for_pid("group"), files.wait_for_pid("orphan"));
    stagger.signal(Signal::TERM);
    stagger.end().dies_of(Signal::TERM);
    is_gone(group);
    assert_eq!(state(orphan), None);
}

#[test]
fn sigusr1_and_sigusr2_are_forwarded() {
    for (signal, name) in [(Signal::USR1, "USR1"), (Signal::USR2, "USR2")] {
        let files = Files::new();
        let script = format!(
            "trap 'echo got {name}; exit 0' {name}; echo $$ > {}; while :; do sleep 0.02; done",
            files.path("pid").display()
        );
        let stagger = Running::start(&mut run_script(&[], &script));
        files.wait_for_pid("pid");
        stagger.signal(signal);
        stagger.end().exits(0).prints(&format!("got {name}\n"));
    }
}

#[test]
fn sigtstp_stops_and_sigcont_continues_stagger_and_the_command() {
    let files = Files::new();
    let script = format!(
        "echo $$ > {0}; i=0; while [ $i -lt 10 ]; do i=$((i+1)); sleep 0.01; done; echo done",
        files.path("group").display()
    );
    let stagger = Running::start(&mut run_script(&["--timeout", "60s"], &script));
    let (pid, group) = (stagger.pid(), files.wait_for_pid("group"));
    stagger.signal(Signal::TSTP);
    eventually("both are stopped", || is_stopped(pid) && is_stopped(group));
    stagger.signal(Signal::CONT);
    stagger.end().exits(0).prints("done\n");
}

#[test]
fn sigtstp_during_a_wait_stops_stagger() {
    let files = Files::new();
    let path = files.path("pid");
    let script = format!("test -e {0} && exit 0; echo $$ > {0}; exit 1", path.display());
    let stagger = Running::start(&mut run(["--base", "300ms", "--jitter", "none", "--", "sh", "-c", &script]));
    files.wait_for_pid("pid");
    stagger.signal(Signal::TSTP);
    eventually("stagger is stopped", || is_stopped(stagger.pid()));
    stagger.signal(Signal::CONT);
    stagger.end().exits(0).says("attempt=2/4 result=ok");
}

#[test]
fn time_spent_stopped_does_not_count_towards_the_timeout() {
    let files = Files::new();
    let script = format!("echo $$ > {}; sleep 0.1; echo done", files.path("group").display());
    let stagger = Running::start(&mut run_script(&["-n", "1", "--timeout", "800ms"], &script));
    let group = files.wait_for_pid("group");
    stagger.signal(Signal::TSTP);
    eventually("both are stopped", || is_stopped(stagger.pid()) && is_stopped(group));
    std::thread::sleep(Duration::from_millis(900));
    stagger.signal(Signal::CONT);
    stagger.end().exits(0).prints("done\n");
}

#[test]
fn a_command_has_its_own_process_group_without_foreground() {
    const GROUPS: &str = "cut -d' ' -f5 /proc/$$/stat /proc/$PPID/stat | uniq | wc -l";
    see(&mut run_script(&[], GROUPS)).exits(0).prints("2\n");
    see(&mut run_script(&["--foreground"], GROUPS)).exits(0).prints("1\n");
}

/// Starts stagger with `env` of GNU coreutils, which can block or ignore signals.
fn under_env(flag: &str, script: &str) -> Running {
    let plain = run_script(&["-n", "2"], script);
    let mut command = Command::new("env");
    command.arg(flag).arg(plain.get_program()).args(plain.get_args()).env("LANG", "C.UTF-8");
    Running::start(&mut command)
}

#[test]
fn an_inherited_ignored_signal_stays_ignored() {
    let files = Files::new();
    let script = format!("echo $$ > {}; sleep 0.2; echo done", files.path("pid").display());
    let stagger = under_env("--ignore-signal=HUP", &script);
    files.wait_for_pid("pid");
    stagger.signal(Signal::HUP);
    stagger.end().exits(0).prints("done\n");
}

#[test]
fn inherited_blocked_signals_are_unblocked() {
    let files = Files::new();
    under_env("--block-signal=CHLD", "exit 3").end().exits(3);
    let script = format!("echo $$ > {}; sleep 60", files.path("group").display());
    let stagger = under_env("--block-signal=TERM", &script);
    let group = files.wait_for_pid("group");
    stagger.signal(Signal::TERM);
    stagger.end().dies_of(Signal::TERM);
    is_gone(group);
}

#[test]
fn a_signal_while_reading_standard_input_ends_stagger() {
    let mut command = stagger(["run", "--stdin", "replay", "--", "cat"]);
    let running = Running::start(command.stdin(std::process::Stdio::piped()));
    eventually("stagger waits for input", || state(running.pid()) == Some('S'));
    std::thread::sleep(Duration::from_millis(50));
    running.signal(Signal::TERM);
    running.end().dies_of(Signal::TERM).prints("");
}

#[test]
fn a_signal_ends_on_retry_and_the_run() {
    let files = Files::new();
    let hook = format!("echo $$ > {}; sleep 60", files.path("group").display());
    let stagger = Running::start(&mut run_script(&["--on-retry", &hook], "exit 1"));
    let group = files.wait_for_pid("group");
    stagger.signal(Signal::TERM);
    let seen: Seen = stagger.end();
    seen.dies_of(Signal::TERM).is_silent_about("attempt=2/4 result");
    is_gone(group);
}

#[test]
fn a_signal_ends_a_stopped_command() {
    let files = Files::new();
    let stagger = Running::start(&mut run_script(&["--kill-after", "60s"], &busy(&files)));
    let group = files.wait_for_pid("group");
    kill_process(group, Signal::STOP).unwrap();
    eventually("the command is stopped", || is_stopped(group));
    stagger.signal(Signal::TERM);
    stagger.end().dies_of(Signal::TERM);
    is_gone(group);
}
