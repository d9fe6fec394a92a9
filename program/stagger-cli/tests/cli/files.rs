//! The files of a run: what happens if they are not what they should be, or cannot be written.

use std::fs::{self, File};
use std::io::Read;
use std::os::unix::fs::PermissionsExt;
use std::process::Command;

use rustix::process::Signal;

use crate::support::{Files, Running, run, run_script, see, see_with_input};

fn fifo(files: &Files) -> std::path::PathBuf {
    let path = files.path("fifo");
    let made = Command::new("mkfifo").arg(&path).status();
    assert!(made.is_ok_and(|status| status.success()));
    path
}

#[test]
fn a_fifo_without_a_reader_is_rejected_as_log_file_and_report() {
    let files = Files::new();
    let fifo = fifo(&files);
    for flag in ["--log-file", "--report"] {
        let seen = see(run([flag]).arg(&fifo).args(["--", "true"]));
        seen.exits(125).says(flag).says("no process reads this FIFO; start its reader first");
    }
}

#[test]
fn a_fifo_with_a_reader_receives_the_log_and_the_report() {
    let files = Files::new();
    let fifo = fifo(&files);
    for (flag, text) in [("--log-file", "attempt=1/2"), ("--report", "stagger.run-report/1")] {
        // Opened for both, so that it opens without waiting, and its text stays when stagger has ended.
        let mut reader = File::options().read(true).write(true).open(&fifo).unwrap();
        see(run(["-n", "2", flag]).arg(&fifo).args(["--", "false"])).exits(1);
        let mut buffer = [0; 4096];
        let length = reader.read(&mut buffer).unwrap();
        let got = String::from_utf8_lossy(&buffer[..length]);
        assert!(got.contains(text), "{got}");
    }
}

#[test]
fn a_log_file_on_a_full_disk_is_told_once() {
    let seen = see(&mut run(["-n", "4", "--cap", "5ms", "--log-file", "/dev/full", "--", "false"]));
    seen.exits(1).says("warning: cannot write the log to /dev/full: No space left on device");
    assert_eq!(seen.stderr.matches("warning").count(), 1, "{seen:#?}");
}

#[test]
fn a_command_that_turns_the_advice_file_into_a_fifo_blocks_nothing() {
    let script = r#"rm -f "$STAGGER_ADVICE"; mkfifo "$STAGGER_ADVICE"; exit 7"#;
    see(&mut run_script(&["-n", "2"], script)).exits(7).says("attempt=2/2").says("the advice file is not a plain file");
    // The next attempt finds a plain file.
    let script = r#"test "$STAGGER_ATTEMPT" = 1 && { rm "$STAGGER_ADVICE"; mkfifo "$STAGGER_ADVICE"; exit 7; }; echo stop > "$STAGGER_ADVICE"; exit 8"#;
    see(&mut run_script(&["-n", "3"], script)).exits(8).says("attempt=2/3").says("reason=advice");
}

#[test]
fn signals_end_a_run_whose_advice_file_is_a_fifo() {
    for signal in [Signal::TERM, Signal::INT] {
        let files = Files::new();
        let script = format!(
            r#"rm -f "$STAGGER_ADVICE"; mkfifo "$STAGGER_ADVICE"; echo $$ >> {}; exit 7"#,
            files.path("pid").display()
        );
        let running = Running::start(&mut run_script(&["-n", "inf", "--cap", "5ms"], &script));
        files.wait_for_lines("pid", 3);
        running.signal(signal);
        running.end().dies_of(signal);
    }
}

#[test]
fn the_file_behind_a_link_in_place_of_the_advice_file_is_neither_read_nor_emptied() {
    for link in ["ln -s", "ln"] {
        let files = Files::new();
        let victim = files.write("victim", "stop\n");
        let script = format!(r#"rm -f "$STAGGER_ADVICE"; {link} {} "$STAGGER_ADVICE"; exit 7"#, victim.display());
        // Hard links do not reach another file system.
        let mut command = run_script(&["-n", "2"], &script);
        see(command.env("TMPDIR", files.path("."))).exits(7).says("attempt=2/2");
        assert_eq!(fs::read_to_string(victim).unwrap(), "stop\n", "{link}");
    }
}

#[test]
fn control_characters_of_advice_do_not_reach_the_terminal() {
    let script = r#"printf '\033[31mbad\033]0;title\007\n' > "$STAGGER_ADVICE"; exit 7"#;
    see(&mut run_script(&["-n", "1"], script))
        .exits(7)
        .says(r"`\u{1b}[31mbad\u{1b}]0;title\u{7}`")
        .is_silent_about("\u{1b}");
}

#[test]
fn a_missing_place_for_the_advice_file_is_told_only_on_request() {
    let nowhere = "/no/such/directory";
    let script =
        r#"test -z "$STAGGER_ADVICE" || { test -f "$STAGGER_ADVICE" && echo stop > "$STAGGER_ADVICE"; }; exit 7"#;
    let seen = see(run_script(&["-n", "2"], script).env("TMPDIR", nowhere));
    assert_eq!(seen.exits(7).stderr.matches("warning").count(), 0, "{seen:#?}");
    if cfg!(target_os = "linux") {
        seen.says("reason=advice");
    }
}

#[test]
fn a_temporary_directory_that_cannot_be_used_is_named_with_the_cure() {
    let nowhere = "/no/such/directory";
    let replay = see_with_input(run(["--stdin", "replay", "--", "cat"]).env("TMPDIR", nowhere), b"hello");
    replay.exits(125).says(nowhere).says("TMPDIR").says("--stdin replay").is_silent_about("cannot read");
    let held = see(run(["-O", "--", "head", "-c", "9000000", "/dev/zero"]).env("TMPDIR", nowhere));
    held.exits(125).says(nowhere).says("TMPDIR").says("cannot hold the command's output").is_silent_about("supervise");
}

#[test]
fn stdin_replay_is_bounded_by_a_limit_that_can_be_set() {
    let input = vec![b'x'; 3_000];
    let limited = ["--stdin", "replay", "--stdin-limit"];
    let seen = see_with_input(run(limited).args(["2k", "--", "wc", "-c"]), &input);
    seen.exits(125)
        .prints("")
        .says("standard input is longer than 2.0 kB, the --stdin-limit")
        .says("redirect it from a file");
    for limit in ["3k", "inf", "3000"] {
        see_with_input(run(limited).args([limit, "--", "wc", "-c"]), &input).exits(0).prints("3000\n");
    }
    see(&mut run(["--stdin-limit", "much", "--", "true"])).exits(125).says("--stdin-limit").says("much");
}

#[test]
fn a_script_without_an_interpreter_line_is_found_in_path() {
    let files = Files::new();
    let script = files.write("greet-without-line", "echo \"<$0 $1>\"\n");
    // A file of the same name that cannot be executed is passed over.
    let other = Files::new();
    other.write("greet-without-line", "echo wrong\n");
    fs::set_permissions(&script, fs::Permissions::from_mode(0o755)).unwrap();
    let old = std::env::var("PATH").unwrap();
    let path = format!("{}:{}:{old}", other.path("").display(), files.path("").display());
    let seen = see(run(["--", "greet-without-line", "a b"]).env("PATH", path));
    seen.exits(0);
    assert!(seen.stdout.ends_with("/greet-without-line a b>\n"), "{seen:#?}");
}
