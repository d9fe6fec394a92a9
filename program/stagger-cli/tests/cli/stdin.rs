use std::fs::{self, File};
use std::io::{Seek, SeekFrom};
use std::process::Command;

use crate::support::{Files, run, run_script, see, see_with_input};

/// Returns binary data with all byte values and no final newline.
fn binary() -> Vec<u8> {
    (0..200_000_u32).map(|n| (n.wrapping_mul(2_654_435_761) >> 24) as u8).collect()
}

/// A script that reads all input and fails on the first attempt, and prints its input on the second.
const ON_THE_SECOND: &str = r#"if test "$STAGGER_ATTEMPT" = 1; then cat >/dev/null; exit 1; else cat; fi"#;

#[test]
fn a_file_is_rewound_to_its_initial_offset() {
    let files = Files::new();
    let mut file = File::open(files.write("input", binary())).unwrap();
    file.seek(SeekFrom::Start(1_000)).unwrap();
    let output = run_script(&[], ON_THE_SECOND).stdin(file).output().unwrap();
    assert_eq!(output.status.code(), Some(0), "{output:?}");
    assert!(output.stdout == binary()[1_000..]);
}

#[test]
fn stdin_replay_replays_a_pipe() {
    let files = Files::new();
    let out = files.path("out");
    // Written to a file, because the test harness decodes output as text.
    let stagger = env!("CARGO_BIN_EXE_stagger");
    let script = format!("{stagger} run -d 5ms --stdin replay -- sh -c '{ON_THE_SECOND}' > {}", out.display());
    see_with_input(Command::new("sh").args(["-c", &script]), &binary()).exits(0);
    assert!(fs::read(out).unwrap() == binary());
}

#[test]
fn an_exhausted_pipe_is_noted_once() {
    let seen = see_with_input(&mut run_script(&["-n", "3"], ON_THE_SECOND), b"hello");
    seen.exits(0).prints("").says("standard input is exhausted").says("--stdin replay");
    assert_eq!(seen.stderr.matches("is exhausted").count(), 1);
    see_with_input(&mut run_script(&["-n", "2"], "exit 1"), b"hello").is_silent_about("is exhausted");
}

#[test]
fn attempts_share_an_inherited_pipe() {
    let script = r#"read -r line; echo "$line"; test "$line" = two"#;
    see_with_input(&mut run_script(&[], script), b"one\ntwo\nthree\n").exits(0).prints("one\ntwo\n");
}

#[test]
fn stdin_null_is_empty() {
    see_with_input(&mut run(["--stdin", "null", "--", "cat"]), b"hello").exits(0).prints("");
}

#[test]
fn stdin_inherit_does_not_rewind() {
    let files = Files::new();
    let file = File::open(files.write("input", "hello")).unwrap();
    see(run_script(&["--stdin", "inherit"], ON_THE_SECOND).stdin(file)).exits(0).prints("");
}
