use core::time::Duration;
use std::process::Command;
use std::time::Instant;

use rustix::process::{Pid, Signal, kill_process};

use crate::support::{
    Files, Running, Seen, eventually, is_stopped, living_in_group, run, run_script, see, stagger, state,
};

/// Signals that end a run.
const END: [Signal; 4] = [Signal::TERM, Signal::INT, Signal::HUP, Signal::QUIT];

/// A command of three processes; the first writes its number, which is also that of its group.
fn busy(files: &Files) -> String {
    format!("sleep 60 & sleep 60 & echo $$ > {}; wait", files.path("group").display())
}

#[track_caller]
fn is_gone(group: Pid) {
    assert_eq!(living_in_group(group), 0, "processes of the command are left");
}

#[test]
fn a_signal_while_the_command_runs_ends_all_of_it_and_then_stagger() {
    for signal in END {
        let files = Files::new();
        // A shell has its background commands ignore ^C and ^\, so these wait for the grace.
        let stagger = Running::start(&mut run_script(&["--kill-after", "100ms"], &busy(&files)));
        let group = files.wait_for_pid("group");
        eventually("all three run", || living_in_group(group) == 3);
        stagger.signal(signal);
        stagger.end().dies_of(signal).says("stop=cancelled").is_silent_about("attempt=2");
        is_gone(group);
    }
}

#[test]
fn a_signal_while_stagger_sleeps_ends_it_at_once() {
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
        eventually("the command is collected", || state(group).is_none());
        let began = Instant::now();
        stagger.signal(signal);
        stagger.end().dies_of(signal).is_silent_about("attempt=2/5 result");
        assert!(began.elapsed() < Duration::from_secs(5));
    }
}

#[test]
fn a_command_that_ends_its_own_way_after_a_signal_is_not_retried() {
    let files = Files::new();
    let script = format!("trap 'exit 1' TERM; echo $$ > {}; while :; do sleep 0.02; done", files.path("pid").display());
    let stagger = Running::start(&mut run_script(&[], &script));
    files.wait_for_pid("pid");
    stagger.signal(Signal::TERM);
    stagger.end().dies_of(Signal::TERM).says("attempt=1/5 result=exit:1").is_silent_about("attempt=2");
}

#[test]
fn a_tree_that_ignores_term_is_killed_after_the_grace() {
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
fn a_second_signal_kills_without_waiting_for_the_grace() {
    let files = Files::new();
    let stagger =
        Running::start(&mut run_script(&["--kill-after", "60s"], &format!("trap '' TERM INT; {}", busy(&files))));
    let group = files.wait_for_pid("group");
    stagger.signal(Signal::TERM);
    // Both at once would be one.
    std::thread::sleep(Duration::from_millis(50));
    assert_ne!(living_in_group(group), 0);
    stagger.signal(Signal::INT);
    stagger.end().dies_of(Signal::INT);
    is_gone(group);
}

#[test]
fn what_the_leader_leaves_behind_after_a_signal_is_killed() {
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
fn signals_that_are_the_command_s_business_reach_it() {
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
fn a_stop_stops_the_command_too_and_a_continue_continues_both() {
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
fn a_stop_while_stagger_sleeps_is_obeyed_and_continued() {
    let files = Files::new();
    let path = files.path("pid");
    let script = format!("test -e {0} && exit 0; echo $$ > {0}; exit 1", path.display());
    let stagger = Running::start(&mut run(["--base", "300ms", "--jitter", "none", "--", "sh", "-c", &script]));
    files.wait_for_pid("pid");
    stagger.signal(Signal::TSTP);
    eventually("stagger is stopped", || is_stopped(stagger.pid()));
    stagger.signal(Signal::CONT);
    stagger.end().exits(0).says("attempt=2/5 result=ok");
}

#[test]
fn the_time_in_which_an_attempt_was_stopped_is_not_its_own() {
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
fn a_command_has_a_group_of_its_own_unless_the_foreground_is_asked_for() {
    const GROUPS: &str = "cut -d' ' -f5 /proc/$$/stat /proc/$PPID/stat | uniq | wc -l";
    see(&mut run_script(&[], GROUPS)).exits(0).prints("2\n");
    see(&mut run_script(&["--foreground"], GROUPS)).exits(0).prints("1\n");
}

/// `env` of GNU coreutils, which starts a command with signals blocked or ignored.
fn under_env(flag: &str, script: &str) -> Running {
    let plain = run_script(&["-n", "2"], script);
    let mut command = Command::new("env");
    command.arg(flag).arg(plain.get_program()).args(plain.get_args()).env("LANG", "C.UTF-8");
    Running::start(&mut command)
}

#[test]
fn a_signal_that_stagger_was_started_to_ignore_stays_ignored() {
    let files = Files::new();
    let script = format!("echo $$ > {}; sleep 0.2; echo done", files.path("pid").display());
    let stagger = under_env("--ignore-signal=HUP", &script);
    files.wait_for_pid("pid");
    stagger.signal(Signal::HUP);
    stagger.end().exits(0).prints("done\n");
}

#[test]
fn signals_that_stagger_was_started_with_blocked_are_heard() {
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
fn a_signal_while_standard_input_is_read_ends_stagger() {
    let mut command = stagger(["run", "--stdin", "replay", "--", "cat"]);
    let running = Running::start(command.stdin(std::process::Stdio::piped()));
    eventually("stagger waits for input", || state(running.pid()) == Some('S'));
    std::thread::sleep(Duration::from_millis(50));
    running.signal(Signal::TERM);
    running.end().dies_of(Signal::TERM).prints("");
}

#[test]
fn a_signal_ends_a_hook_and_the_run() {
    let files = Files::new();
    let hook = format!("echo $$ > {}; sleep 60", files.path("group").display());
    let stagger = Running::start(&mut run_script(&["--on-retry", &hook], "exit 1"));
    let group = files.wait_for_pid("group");
    stagger.signal(Signal::TERM);
    let seen: Seen = stagger.end();
    seen.dies_of(Signal::TERM).is_silent_about("attempt=2/5 result");
    is_gone(group);
}

#[test]
fn a_stopped_command_is_ended_by_a_signal_too() {
    let files = Files::new();
    let stagger = Running::start(&mut run_script(&["--kill-after", "60s"], &busy(&files)));
    let group = files.wait_for_pid("group");
    kill_process(group, Signal::STOP).unwrap();
    eventually("it is stopped", || is_stopped(group));
    stagger.signal(Signal::TERM);
    stagger.end().dies_of(Signal::TERM);
    is_gone(group);
}
