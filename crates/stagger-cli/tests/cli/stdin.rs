use std::fs::{self, File};
use std::io::{Seek, SeekFrom};
use std::process::Command;

use crate::support::{Files, run, run_script, see, see_with_input};

/// Every byte there is, with line ends of all kinds and no newline at its end.
fn binary() -> Vec<u8> {
    (0..200_000_u32).map(|n| (n.wrapping_mul(2_654_435_761) >> 24) as u8).collect()
}

/// A command that fails once after reading everything, and then prints what it reads.
const ON_THE_SECOND: &str = r#"if test "$STAGGER_ATTEMPT" = 1; then cat >/dev/null; exit 1; else cat; fi"#;

#[test]
fn a_file_is_rewound_to_where_it_stood() {
    let files = Files::new();
    let mut file = File::open(files.write("input", binary())).unwrap();
    file.seek(SeekFrom::Start(1_000)).unwrap();
    let output = run_script(&[], ON_THE_SECOND).stdin(file).output().unwrap();
    assert_eq!(output.status.code(), Some(0), "{output:?}");
    assert!(output.stdout == binary()[1_000..]);
}

#[test]
fn a_pipe_is_replayed_on_request() {
    let files = Files::new();
    let out = files.path("out");
    // Into a file: what the test reads itself it takes for text.
    let stagger = env!("CARGO_BIN_EXE_stagger");
    let script = format!("{stagger} run -d 5ms --stdin replay -- sh -c '{ON_THE_SECOND}' > {}", out.display());
    see_with_input(Command::new("sh").args(["-c", &script]), &binary()).exits(0);
    assert!(fs::read(out).unwrap() == binary());
}

#[test]
fn a_pipe_that_was_read_before_is_pointed_out() {
    let seen = see_with_input(&mut run_script(&["-n", "3"], ON_THE_SECOND), b"hello");
    seen.exits(0).prints("").says("standard input is exhausted").says("--stdin replay");
    assert_eq!(seen.stderr.matches("is exhausted").count(), 1);
    see_with_input(&mut run_script(&["-n", "2"], "exit 1"), b"hello").is_silent_about("is exhausted");
}

#[test]
fn an_attempt_reads_on_where_the_one_before_left_a_pipe() {
    let script = r#"read -r line; echo "$line"; test "$line" = two"#;
    see_with_input(&mut run_script(&[], script), b"one\ntwo\nthree\n").exits(0).prints("one\ntwo\n");
}

#[test]
fn null_is_empty() {
    see_with_input(&mut run(["--stdin", "null", "--", "cat"]), b"hello").exits(0).prints("");
}

#[test]
fn inherit_rewinds_nothing() {
    let files = Files::new();
    let file = File::open(files.write("input", "hello")).unwrap();
    see(run_script(&["--stdin", "inherit"], ON_THE_SECOND).stdin(file)).exits(0).prints("");
}
