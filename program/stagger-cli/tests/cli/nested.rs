//! `stagger run` in a command that another `stagger run` retries.

use std::fs;

use crate::support::{Files, Seen, run, run_script, see};

const STAGGER: &str = env!("CARGO_BIN_EXE_stagger");

/// Returns a script that counts its calls in a file and fails.
fn counting(files: &Files) -> String {
    format!("echo call >> {}; exit 7", files.path("calls").display())
}

/// Returns the words of a nested run of `command`.
fn nested<'a>(flags: &[&'a str], command: &[&'a str]) -> Vec<&'a str> {
    [&[STAGGER, "run", "-d", "1ms", "-n", "3"], flags, &["--"], command].concat()
}

fn calls(files: &Files) -> usize {
    fs::read_to_string(files.path("calls")).unwrap_or_default().lines().count()
}

/// Runs `command` in a run with these flags, and returns what it printed and the number of calls.
#[track_caller]
fn outer(files: &Files, flags: &[&str], command: &[&str]) -> (Seen, usize) {
    let seen = see(run(flags).arg("--").args(command));
    (seen, calls(files))
}

#[test]
fn three_layers_with_three_attempts_make_three_calls() {
    let files = Files::new();
    let script = counting(&files);
    let inner = nested(&[], &["sh", "-c", &script]);
    let middle = nested(&[], &inner);
    let (seen, calls) = outer(&files, &["-n", "3"], &middle);
    // The exit code of the command comes through, so that the outer run knows what to retry.
    seen.exits(7).says("attempt=3/3 result=exit:7");
    assert_eq!(calls, 3, "{seen:#?}");
}

#[test]
fn standing_down_prints_one_line_if_the_attempt_fails() {
    let files = Files::new();
    let script = counting(&files);
    let told = |flags: &[&str], script: &str| {
        let inner = nested(flags, &["sh", "-c", script]);
        let seen =
            see(run(["-n", "1", "-q"]).env("STAGGER_RETRIED_BY", std::process::id().to_string()).arg("--").args(inner));
        (seen.stderr.matches("--nested allow").count(), seen.stderr.matches("attempt=2").count())
    };
    assert_eq!(told(&[], &script), (1, 0));
    assert_eq!(told(&[], "exit 0"), (0, 0));
    assert_eq!(told(&["-q"], &script), (0, 0));
    assert_eq!(calls(&files), 2);
}

#[test]
fn nested_allow_retries_under_an_outer_run() {
    let files = Files::new();
    let script = counting(&files);
    let inner = nested(&["--nested", "allow"], &["sh", "-c", &script]);
    let (seen, calls) = outer(&files, &["-n", "2"], &inner);
    seen.exits(7);
    assert_eq!(calls, 6, "{seen:#?}");
}

#[test]
fn runs_that_supervise_or_poll_do_not_make_their_children_stand_down() {
    for flags in [
        &["-n", "inf", "--stop-on", "7"][..],
        &["-n", "2", "--stable-after", "1h", "--stop-on", "7"],
        &["-n", "1"],
        &["-n", "2", "--until", "7"],
    ] {
        let files = Files::new();
        let script = counting(&files);
        let (seen, calls) = outer(&files, flags, &nested(&[], &["sh", "-c", &script]));
        assert_eq!(calls, 3, "{flags:?}: {seen:#?}");
    }
}

#[test]
fn a_run_that_supervises_or_polls_does_not_stand_down() {
    for flags in [&["-n", "inf", "--stop-on", "8"][..], &["--stable-after", "1h"], &["--until", "success"]] {
        let files = Files::new();
        let script =
            format!("echo call >> {0}; test $(wc -l < {0}) = 3 && exit 8; exit 7", files.path("calls").display());
        let (seen, calls) = outer(&files, &["-n", "2", "--stop-on", "8"], &nested(flags, &["sh", "-c", &script]));
        seen.exits(8);
        assert_eq!(calls, 3, "{flags:?}: {seen:#?}");
    }
}

#[test]
fn a_retrying_run_in_a_supervised_one_in_a_retrying_one_retries() {
    let files = Files::new();
    let script = counting(&files);
    let inner = nested(&[], &["sh", "-c", &script]);
    let supervisor = nested(&["-n", "inf", "--stop-on", "7"], &inner);
    let (seen, calls) = outer(&files, &["-n", "2"], &supervisor);
    seen.exits(7);
    assert_eq!(calls, 6, "{seen:#?}");
}

#[test]
fn a_variable_left_over_from_a_run_that_is_no_ancestor_is_ignored() {
    let files = Files::new();
    let other = std::process::Command::new("sleep").arg("60").spawn();
    let mut other = other.expect("sleep starts");
    for pid in [other.id().to_string(), "0".to_owned(), "x".to_owned(), "999999999".to_owned()] {
        let seen = see(run_script(&["-n", "3"], &counting(&files)).env("STAGGER_RETRIED_BY", &pid));
        seen.exits(7).says("attempt=3/3");
    }
    let _ = other.kill();
    let _ = other.wait();
    assert_eq!(calls(&files), 12);
}

#[test]
fn advice_of_a_nested_command_reaches_the_outer_run() {
    let files = Files::new();
    let script = format!("{}; ", counting(&files).replace("; exit 7", "")) + "echo stop > \"$STAGGER_ADVICE\"; exit 7";
    let (seen, calls) = outer(&files, &["-n", "3"], &nested(&[], &["sh", "-c", &script]));
    seen.exits(7).says("reason=advice");
    assert_eq!(calls, 1, "{seen:#?}");
}
