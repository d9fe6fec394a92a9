//! `--time-limit`: the limit of the whole run.

use core::time::Duration;
use std::process::Stdio;
use std::time::Instant;

use crate::support::{Files, Running, living_in_group, run, run_script, see, stagger};

#[test]
fn the_time_limit_ends_a_running_attempt_with_124() {
    let files = Files::new();
    let script = format!("echo $$ > {}; sleep 60", files.path("group").display());
    for flag in ["--time-limit", "--deadline"] {
        let began = Instant::now();
        let seen = see(&mut run_script(&["-n", "inf", flag, "500ms"], &script));
        seen.exits(124).says("attempt=1/inf result=timeout").says("stop=deadline").is_silent_about("attempt=2");
        assert!((Duration::from_millis(500)..Duration::from_secs(10)).contains(&began.elapsed()));
        assert_eq!(living_in_group(files.wait_for_pid("group")), 0);
    }
}

#[test]
fn max_elapsed_does_not_end_a_running_attempt() {
    see(&mut run_script(&["-T", "50ms"], "sleep 0.2")).exits(0);
}

#[test]
fn a_delay_beyond_the_time_limit_ends_the_run_at_once_with_124() {
    let began = Instant::now();
    let flags = ["run", "-d", "120s", "--cap", "120s", "-j", "none", "--time-limit", "60s", "--", "sh", "-c", "exit 7"];
    see(&mut stagger(flags)).exits(124).says("attempt=1/4 result=exit:7").says("stop=deadline");
    assert!(began.elapsed() < Duration::from_secs(30));
}

#[test]
fn the_earlier_of_timeout_and_time_limit_ends_an_attempt() {
    let seen = see(&mut run_script(&["-n", "2", "-t", "50ms", "--time-limit", "60s"], "sleep 60"));
    seen.exits(124).says("attempt=2/2 result=timeout").says("stop=attempts");
    let seen = see(&mut run_script(&["-n", "2", "-t", "60s", "--time-limit", "100ms"], "sleep 60"));
    seen.exits(124).says("attempt=1/2 result=timeout").says("stop=deadline");
}

#[test]
fn a_healthy_attempt_does_not_renew_the_time_limit() {
    let flags = ["-n", "2", "--cap", "5ms", "--stable-after", "10ms", "--time-limit", "400ms"];
    see(&mut run_script(&flags, "sleep 0.05; exit 1")).exits(124).says("attempt=1/2").is_silent_about("stop=attempts");
}

#[test]
fn an_attempt_ended_by_the_time_limit_is_no_success() {
    see(&mut run_script(&["--until", "timeout", "--time-limit", "100ms"], "sleep 60")).exits(124).says("stop=deadline");
    see(&mut run_script(&["--retry-on", "fail", "--time-limit", "100ms"], "sleep 60")).exits(124).says("stop=deadline");
}

#[test]
fn a_command_that_ignores_the_signal_is_killed_after_the_time_limit() {
    let began = Instant::now();
    let flags = ["--time-limit", "300ms", "--kill-after", "100ms"];
    see(&mut run_script(&flags, "trap '' TERM; sleep 60; sleep 60")).exits(124);
    assert!((Duration::from_millis(400)..Duration::from_secs(10)).contains(&began.elapsed()));
}

#[test]
fn the_time_limit_ends_the_hook() {
    let seen = see(&mut run_script(&["--time-limit", "1s", "--on-retry", "sleep 60"], "exit 7"));
    seen.exits(124).says("giving up before attempt 2/4: --time-limit 1").is_silent_about("attempt=2/4 result");
}

#[test]
fn the_time_limit_ends_the_reading_of_standard_input() {
    let mut command = run(["--stdin", "replay", "--time-limit", "200ms", "--", "cat"]);
    let mut running = Running::start(command.stdin(Stdio::piped()));
    let input = running.child.stdin.take();
    running.end().exits(124).says("--time-limit 200ms").prints("");
    drop(input);
}

#[test]
fn a_time_limit_of_zero_is_rejected_and_inf_is_none() {
    for flag in ["--time-limit", "-t"] {
        see(&mut run([flag, "0", "--", "true"])).exits(125).says("or inf for no limit");
        see(&mut run([flag, "inf", "--", "true"])).exits(0);
    }
}
