use core::time::Duration;
use std::time::Instant;

use rustix::process::Pid;

use crate::support::{Files, living_in_group, run_script, see, state};

fn group(files: &Files) -> Pid {
    files.wait_for_pid("group")
}

#[test]
fn an_attempt_beyond_the_timeout_is_terminated_and_retried() {
    let seen = see(&mut run_script(&["-n", "2", "--timeout", "50ms"], "sleep 60"));
    seen.exits(124).says("attempt=1/2 result=timeout").says("attempt=2/2 result=timeout");
    let seen = see(&mut run_script(&["--timeout", "500ms"], r#"test "$STAGGER_ATTEMPT" = 2 || sleep 60"#));
    seen.exits(0).says("attempt=1/4 result=timeout").says("attempt=2/4 result=ok");
}

#[test]
fn a_timeout_outside_of_retry_on_is_not_retried() {
    see(&mut run_script(&["--timeout", "50ms", "--retry-on", "fail"], "sleep 60")).exits(124).says("attempt=1/4");
}

#[test]
fn the_hook_is_limited_by_the_timeout_of_an_attempt() {
    let seen = see(&mut run_script(&["-n", "2", "--timeout", "300ms", "--on-retry", "sleep 60"], "exit 5"));
    seen.exits(5)
        .says("warning: --on-retry command failed: timeout; retrying anyway")
        .says("attempt=2/2 result=exit:5");
}

#[test]
fn a_command_that_handles_sigterm_has_still_timed_out() {
    let script = "trap 'echo tidy; exit 0' TERM; while :; do sleep 0.01; done";
    see(&mut run_script(&["-n", "1", "--timeout", "500ms"], script)).exits(124).prints("tidy\n");
}

#[test]
fn the_timeout_signal_is_configurable() {
    let script = "trap 'echo by INT; exit 0' INT; while :; do sleep 0.01; done";
    see(&mut run_script(&["-n", "1", "--timeout", "500ms", "--signal", "INT"], script)).exits(124).prints("by INT\n");
}

#[test]
fn a_process_group_that_ignores_sigterm_is_killed() {
    let files = Files::new();
    let script =
        format!("trap '' TERM; sleep 60 & sleep 60 & echo $$ > {}; wait; sleep 60", files.path("group").display());
    let began = Instant::now();
    see(&mut run_script(&["-n", "1", "--timeout", "500ms", "--kill-after", "100ms"], &script)).exits(124);
    let took = began.elapsed();
    assert!(took >= Duration::from_millis(600) && took < Duration::from_secs(5), "{took:?}");
    assert_eq!(living_in_group(group(&files)), 0);
}

#[test]
fn descendants_that_outlive_the_group_leader_are_killed() {
    let files = Files::new();
    let script = format!(
        "sh -c 'trap \"\" TERM; echo $$ > {}; sleep 60; sleep 60' & echo $$ > {}; wait",
        files.path("orphan").display(),
        files.path("group").display()
    );
    see(&mut run_script(&["-n", "1", "--timeout", "500ms", "--kill-after", "100ms"], &script)).exits(124);
    assert_eq!(living_in_group(group(&files)), 0);
    assert_eq!(state(files.wait_for_pid("orphan")), None);
}

#[test]
fn kill_after_is_not_awaited_if_all_processes_are_gone() {
    let began = Instant::now();
    see(&mut run_script(&["-n", "1", "--timeout", "50ms", "--kill-after", "60s"], "sleep 60 & wait")).exits(124);
    assert!(began.elapsed() < Duration::from_secs(10));
}

#[test]
fn a_process_in_another_session_that_does_not_reap_delays_nothing() {
    let files = Files::new();
    // It leaves the group with a zombie in it that it never reaps, as PID 1 of a container without an init.
    let non_reaping = format!("echo $$ > {}; true & exec setsid sleep 60", files.path("non_reaping").display());
    let script = format!("sh -c '{non_reaping}' >/dev/null 2>&1 & wait");
    let began = Instant::now();
    see(&mut run_script(&["-n", "1", "--timeout", "500ms", "--kill-after", "60s"], &script)).exits(124);
    assert!(began.elapsed() < Duration::from_secs(10));
    assert_eq!(state(files.wait_for_pid("non_reaping")), None);
}

#[test]
fn a_background_process_outlives_a_success() {
    let files = Files::new();
    let script = format!("sleep 60 >/dev/null 2>&1 & echo $! > {}", files.path("daemon").display());
    see(&mut run_script(&[], &script)).exits(0);
    let daemon = files.wait_for_pid("daemon");
    assert!(state(daemon).is_some());
    rustix::process::kill_process(daemon, rustix::process::Signal::KILL).unwrap();
}
