use std::ffi::OsStr;
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::PermissionsExt;
use std::time::Instant;

use crate::support::{Files, run, run_script, see};

#[test]
fn the_exit_code_of_the_command_is_passed_through() {
    for code in [0, 1, 2, 77, 125, 255] {
        see(&mut run_script(&["-n", "1"], &format!("exit {code}"))).exits(code);
    }
}

#[test]
fn a_command_is_retried_until_it_succeeds() {
    let seen = see(&mut run_script(&[], r#"echo "$STAGGER_ATTEMPT"; test "$STAGGER_ATTEMPT" = 3"#));
    seen.exits(0).prints("1\n2\n3\n");
}

#[test]
fn the_last_exit_code_is_used_after_max_attempts() {
    let seen = see(&mut run_script(&["-n", "3"], r#"echo; exit "$((STAGGER_ATTEMPT + 10))""#));
    seen.exits(13).prints("\n\n\n").says("attempt=3/3 result=exit:13").says("stop=attempts");
}

#[test]
fn max_attempts_1_does_not_retry() {
    see(&mut run_script(&["-n", "1"], "echo; exit 4")).exits(4).prints("\n").says("attempt=1/1");
}

#[test]
fn unlimited_attempts_end_with_a_success() {
    let seen = see(&mut run_script(&["-n", "inf", "--cap", "5ms"], r#"test "$STAGGER_ATTEMPT" = 12"#));
    seen.exits(0).says("attempt=12/inf result=ok");
}

#[test]
fn a_missing_command_exits_with_127_and_is_not_retried() {
    let seen = see(&mut run(["--", "no-such-command-anywhere"]));
    seen.exits(127)
        .says("cannot run `no-such-command-anywhere`")
        .says("check its spelling and PATH")
        .says("attempt=1/4");
    see(&mut run(["--retry-on", "any", "--", "/no/such/file"]))
        .exits(127)
        .says("attempt=1/4")
        .is_silent_about("attempt=2");
}

#[test]
fn a_missing_command_is_retried_if_127_is_listed() {
    let files = Files::new();
    let script = files.path("late");
    let late =
        format!("printf '#!/bin/sh\\necho made it\\n' > {0}.new; chmod +x {0}.new; mv {0}.new {0}", script.display());
    let seen = see(run(["--retry-on", "127", "--on-retry", &late, "--"]).arg(&script));
    seen.exits(0).prints("made it\n").says("result=not-run:127");
}

#[test]
fn a_command_line_in_one_word_suggests_shell() {
    see(&mut run(["echo hello"])).exits(127).says("add --shell");
    see(&mut run(["--shell", "--", "echo \"hello $1\"; exit 0", "you"])).exits(0).prints("hello you\n");
}

#[test]
fn a_file_that_cannot_be_executed_exits_with_126() {
    let files = Files::new();
    let plain = files.write("plain", "#!/bin/sh\n");
    see(run(["--"]).arg(&plain)).exits(126).says("chmod +x").is_silent_about("attempt=2");
    see(&mut run(["--", "/"])).exits(126).says("it is a directory");
    let orphan = files.write("orphan", "#!/no/such/interpreter\n");
    fs::set_permissions(&orphan, fs::Permissions::from_mode(0o755)).unwrap();
    see(run(["--"]).arg(&orphan)).exits(127).says("the interpreter in its `#!` line was not found");
}

#[test]
fn a_script_without_an_interpreter_line_is_run_by_the_shell() {
    let files = Files::new();
    let script = files.write("script", "echo \"<$1>\"\n");
    fs::set_permissions(&script, fs::Permissions::from_mode(0o755)).unwrap();
    see(run(["--"]).arg(&script).arg("a b")).exits(0).prints("<a b>\n");
}

#[test]
fn a_killed_command_exits_with_128_plus_the_signal_and_is_retried() {
    see(&mut run_script(&["-n", "2"], "kill -KILL $$")).exits(137).says("attempt=2/2 result=signal:SIGKILL");
    see(&mut run_script(&["--retry-on", "fail"], "kill -KILL $$"))
        .exits(137)
        .says("attempt=1/4")
        .says("reason=not-retry-on");
}

#[test]
fn a_command_killed_by_sigint_is_not_retried() {
    see(&mut run_script(&[], "kill -INT $$")).exits(130).says("attempt=1/4").says("reason=stop-on");
    see(&mut run_script(&["-n", "2", "--retry-on", "SIGINT"], "kill -INT $$")).exits(130).says("attempt=2/2");
}

#[test]
fn exit_codes_select_what_is_retried() {
    see(&mut run_script(&["--retry-on", "7,50-60"], "exit 8")).exits(8).says("attempt=1/4").says("reason=not-retry-on");
    see(&mut run_script(&["--retry-on", "7,50-60", "-n", "2"], "exit 55")).exits(55).says("attempt=2/2");
    see(&mut run_script(&["--stop-on", "9"], "exit 9")).exits(9).says("attempt=1/4").says("reason=stop-on");
    see(&mut run_script(&["--retry-on", "fail,!3"], "exit 3")).exits(3).says("attempt=1/4");
}

#[test]
fn until_fail_succeeds_at_the_first_failure() {
    see(&mut run_script(&["--until", "fail"], r#"test "$STAGGER_ATTEMPT" != 3"#)).exits(0).says("attempt=3/4");
    see(&mut run_script(&["--until", "4"], r#"exit "$((STAGGER_ATTEMPT + 1))""#)).exits(0).says("attempt=3/4");
}

#[test]
fn a_failed_run_never_exits_with_0() {
    see(&mut run_script(&["--until", "fail", "-n", "2"], "exit 0"))
        .exits(1)
        .says("attempt=2/2 result=ok")
        .says("stop=attempts");
}

#[test]
fn a_failure_resets_the_count_of_consecutive_successes() {
    let script = r#"test "$STAGGER_ATTEMPT" != 2"#;
    let seen = see(&mut run_script(&["--consecutive", "3", "-n", "9", "--cap", "5ms"], script));
    seen.exits(0).says("attempt=1/9 result=ok").says("attempt=2/9 result=exit:1").says("attempt=5/9 result=ok");
    seen.is_silent_about("attempt=6");
}

#[test]
fn output_patterns_select_what_is_retried() {
    let retry = ["--retry-if-stderr", "^timed out$"];
    see(&mut run_script(&retry, "echo denied >&2; exit 1")).exits(1).says("attempt=1/4").says("reason=not-retry-if");
    let seen = see(&mut run_script(&retry, r#"test "$STAGGER_ATTEMPT" = 3 || { echo timed out >&2; exit 1; }"#));
    seen.exits(0).says("attempt=3/4 result=ok").says("timed out\n");
    let stop = ["--stop-if-stdout", "fatal"];
    see(&mut run_script(&stop, "echo fatal; exit 1"))
        .exits(1)
        .prints("fatal\n")
        .says("reason=stop-if")
        .says("attempt=1/4");
}

#[test]
fn retry_if_overrides_exit_code_0() {
    let script = r#"test "$STAGGER_ATTEMPT" -gt 2 && echo ready || echo pending"#;
    see(&mut run_script(&["--retry-if-stdout", "pending"], script)).exits(0).prints("pending\npending\nready\n");
    see(&mut run_script(&["--retry-if-stdout", "pending", "-n", "2"], script)).exits(1);
}

#[test]
fn non_utf8_output_is_searched() {
    see(&mut run_script(&["--retry-if-stderr", "busy", "-n", "2"], r"printf '\377\376busy\200' >&2; exit 1"))
        .exits(1)
        .says("attempt=2/2");
}

#[test]
fn arguments_are_passed_unchanged() {
    for word in ["it's", "a \"b\" c", "$HOME `id` \\", "*", "", "--", "-n"] {
        see(&mut run(["--", "printf", "<%s>", word])).exits(0).prints(&format!("<{word}>"));
    }
    let odd = OsStr::from_bytes(b"\xff\xfe \xf0");
    let output = run(["--", "printf", "<%s>"]).arg(odd).output().unwrap();
    assert_eq!(output.stdout, b"<\xff\xfe \xf0>");
}

#[test]
fn the_environment_describes_the_attempt() {
    let script = r#"echo "$STAGGER_ATTEMPT/$STAGGER_MAX_ATTEMPTS ${STAGGER_LAST_EXIT-unset} $((STAGGER_ELAPSED_MS < 10000))"; exit 6"#;
    let seen = see(run_script(&["-n", "2"], script).env("STAGGER_LAST_EXIT", "99"));
    seen.exits(6).prints("1/2 unset 1\n2/2 6 1\n");
    see(&mut run_script(&["-n", "inf", "--stop-on", "6"], script)).prints("1/inf unset 1\n");
}

#[test]
fn advice_delays_the_next_attempt() {
    let began = Instant::now();
    let script = r#"test "$STAGGER_ATTEMPT" = 2 || { echo retry-after=150ms > "$STAGGER_ADVICE"; exit 1; }"#;
    see(&mut run_script(&[], script)).exits(0).says("retry_after=0.15s");
    assert!(began.elapsed().as_millis() >= 150, "{:?}", began.elapsed());
}

#[test]
fn advice_stops_the_run() {
    see(&mut run_script(&[], "echo stop > \"$STAGGER_ADVICE\"; exit 3"))
        .exits(3)
        .says("attempt=1/4")
        .says("reason=advice");
    see(&mut run_script(&[], "echo retry-after=1h > \"$STAGGER_ADVICE\"; exit 3"))
        .exits(3)
        .says("attempt=1/4")
        .says("stop=hint");
    see(&mut run_script(&["-n", "2"], "echo whatever > \"$STAGGER_ADVICE\"; exit 3"))
        .exits(3)
        .says("invalid advice `whatever`");
    see(&mut run_script(&[], "echo stop > \"$STAGGER_ADVICE\"")).exits(0);
}

#[test]
fn on_retry_runs_before_each_retry_and_may_fail() {
    let seen = see(&mut run_script(
        &["-n", "3", "--on-retry", "echo cleaning for $STAGGER_ATTEMPT after $STAGGER_LAST_EXIT"],
        "exit 5",
    ));
    seen.exits(5)
        .prints("")
        .says("cleaning for 2 after 5\n")
        .says("cleaning for 3 after 5\n")
        .is_silent_about("cleaning for 4");
    see(&mut run_script(&["-n", "2", "--on-retry", "exit 9"], "exit 5"))
        .exits(5)
        .says("warning: --on-retry command failed: exit 9; retrying anyway")
        .says("attempt=2/2");
}

#[test]
fn a_retry_beyond_max_elapsed_ends_the_run_immediately() {
    let began = Instant::now();
    let script = "echo retry-after=30 > \"$STAGGER_ADVICE\"; exit 4";
    see(&mut run_script(&["-T", "10s"], script)).exits(4).says("stop=elapsed").says("attempt=1/4");
    assert!(began.elapsed().as_secs() < 5, "{:?}", began.elapsed());
}

#[test]
fn max_elapsed_does_not_interrupt_an_attempt() {
    see(&mut run_script(&["-T", "20ms"], "sleep 0.1; echo done")).exits(0).prints("done\n");
}

#[test]
fn an_attempt_of_stable_after_resets_the_count() {
    let files = Files::new();
    let count = files.path("count");
    let script = format!("echo >> {0}; sleep 0.05; test $(wc -l < {0}) = 6", count.display());
    see(&mut run_script(&["-n", "2", "--stable-after", "20ms"], &script)).exits(0);
    fs::remove_file(&count).unwrap();
    see(&mut run_script(&["-n", "2", "--stable-after", "10s"], &script)).exits(1).says("attempt=2/2");
}

#[test]
fn a_seed_reproduces_the_delays() {
    let delays = |seed: &str| {
        let seen = see(&mut run_script(&["-n", "4", "--seed", seed], "exit 1"));
        let next: Vec<String> = seen
            .stderr
            .split(' ')
            .filter(|word| word.starts_with("next="))
            .map(|word| word.trim().to_owned())
            .collect();
        assert_eq!(next.len(), 3, "{seen:?}");
        next
    };
    assert_eq!(delays("7"), delays("7"));
    assert_ne!(delays("7"), delays("8"));
}
