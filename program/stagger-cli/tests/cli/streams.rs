use core::time::Duration;
use std::fs::{self, File};
use std::io::Read;
use std::process::Stdio;
use std::time::Instant;

use rustix::process::Signal;

use crate::support::{Files, Running, eventually, run, run_script, see};

const MEGABYTE: usize = 1_000_000;

#[test]
fn output_is_streamed() {
    let files = Files::new();
    let script = format!("echo early; while ! test -e {}; do sleep 0.01; done", files.path("go").display());
    let mut running = Running::start(&mut run_script(&[], &script));
    let mut early = [0; 6];
    running.child.stdout.as_mut().unwrap().read_exact(&mut early).unwrap();
    assert_eq!(&early, b"early\n");
    files.write("go", "");
    running.end().exits(0);
}

#[test]
fn hold_stdout_prints_only_the_successful_attempt() {
    let script = r#"echo "out $STAGGER_ATTEMPT"; echo "err $STAGGER_ATTEMPT" >&2; test "$STAGGER_ATTEMPT" = 2"#;
    let seen = see(&mut run_script(&["-O"], script));
    seen.exits(0).prints("out 2\n").says("out 1\n").says("err 1\n").says("err 2\n").is_silent_about("out 2");
}

#[test]
fn hold_stdout_of_a_failed_run_prints_nothing_to_standard_output() {
    see(&mut run_script(&["-O", "-n", "2"], "echo partial; exit 3")).exits(3).prints("").says("partial\n");
    see(&mut run_script(&["--hold-stdout", "--timeout", "500ms", "-n", "1"], "echo partial; sleep 60"))
        .exits(124)
        .prints("")
        .says("partial\n");
}

#[test]
fn hold_stderr_prints_errors_after_the_attempt() {
    let seen = see(&mut run_script(&["-E", "-n", "2"], r#"echo "err $STAGGER_ATTEMPT" >&2; exit 1"#));
    let order: Vec<usize> =
        ["err 1", "attempt=1/2", "err 2", "attempt=2/2"].map(|text| seen.stderr.find(text).unwrap()).to_vec();
    assert!(order.is_sorted(), "{seen:#?}");
    see(&mut run_script(&["-OE"], "echo out; echo err >&2")).exits(0).prints("out\n").says("err\n");
}

#[test]
fn a_redirection_to_dev_stdout_does_not_truncate() {
    see(&mut run_script(&["-OE"], "echo one; echo two > /dev/stdout; echo three")).exits(0).prints("one\ntwo\nthree\n");
}

/// Returns the peak resident memory of a process in kB.
#[track_caller]
fn peak_resident(pid: u32) -> u64 {
    let status = fs::read_to_string(format!("/proc/{pid}/status")).expect("the process exists");
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).expect("Linux reports VmHWM");
    line.trim().trim_end_matches(" kB").parse().expect("VmHWM is a number")
}

#[test]
fn buffering_100_mb_needs_at_most_32_mb_of_memory() {
    const LENGTH: usize = 100 * MEGABYTE;
    let mut running = Running::start(&mut run(["-O", "--", "head", "-c", &LENGTH.to_string(), "/dev/zero"]));
    let mut stdout = running.child.stdout.take().unwrap();
    let mut buffer = vec![1; MEGABYTE];
    // The last megabyte is not read yet, so that stagger is still running when its memory is measured.
    for _ in 0..LENGTH / MEGABYTE - 1 {
        stdout.read_exact(&mut buffer).unwrap();
        assert!(buffer.iter().all(|&byte| byte == 0));
    }
    let peak = peak_resident(running.child.id());
    assert!(peak <= 32 * 1024, "{peak} kB");
    let mut rest = Vec::new();
    stdout.read_to_end(&mut rest).unwrap();
    assert_eq!(rest.len(), MEGABYTE);
    running.end().exits(0);
}

#[test]
fn a_closed_pipe_ends_stagger_by_sigpipe() {
    let mut running = Running::start(&mut run(["-O", "--", "head", "-c", "1000000", "/dev/zero"]));
    drop(running.child.stdout.take());
    running.end().dies_of(Signal::PIPE).is_silent_about("panicked").is_silent_about("error");
}

#[test]
fn a_command_killed_by_a_closed_pipe_is_not_retried() {
    for flags in [&[][..], &["--retry-if-stderr", "x"]] {
        let mut running = Running::start(&mut run_script(flags, "exec yes"));
        let mut some = [0; 100];
        let mut stdout = running.child.stdout.take().unwrap();
        stdout.read_exact(&mut some).unwrap();
        drop(stdout);
        running.end().exits(128 + Signal::PIPE.as_raw()).says("attempt=1/4").says("reason=reader-gone");
    }
}

#[test]
fn a_run_without_a_reader_of_its_output_ends_after_the_next_failed_attempt() {
    for (flags, script, code) in [
        // The shell outlives the command that SIGPIPE has killed.
        (&[][..], "yes; exit", 128 + Signal::PIPE.as_raw()),
        // As Python does, which ignores SIGPIPE.
        (&[], "trap '' PIPE; while echo x; do :; done 2>/dev/null; exit 1", 1),
        (&["-O"], "while test -t 2 || test -e {go}; do sleep 0.01; done; exit 3", 3),
        // Polling: the outcome that is waited for does not come.
        (&["--until", "fail"], "test -e {go} && sleep 0.01; exit 0", 1),
    ] {
        let files = Files::new();
        let go = files.write("go", "");
        let script = script.replace("{go}", &go.display().to_string());
        let flags = [&["-n", "inf", "--cap", "10ms"], flags].concat();
        let mut running = Running::start(&mut run_script(&flags, &script));
        drop(running.child.stdout.take());
        fs::remove_file(go).unwrap();
        running.end().exits(code).says("reason=reader-gone");
    }
}

#[test]
fn closing_a_searched_stream_gives_the_command_sigpipe() {
    let mut running = Running::start(&mut run_script(&["--retry-if-stdout", "x"], "exec yes"));
    let mut some = [0; 100];
    let mut stdout = running.child.stdout.take().unwrap();
    stdout.read_exact(&mut some).unwrap();
    drop(stdout);
    running.end().exits(128 + Signal::PIPE.as_raw()).says("reason=reader-gone");
}

#[test]
fn closed_standard_streams_are_not_an_error() {
    let stagger = env!("CARGO_BIN_EXE_stagger");
    for script in [
        format!("{stagger} run -d 5ms -- echo hello >&-"),
        format!("{stagger} run -d 5ms -O -- echo hello >&-"),
        format!("{stagger} run -d 5ms -n 2 -- sh -c 'test $STAGGER_ATTEMPT = 2' 2>&-"),
        format!("{stagger} run -d 5ms -- cat <&-"),
        format!("{stagger} run -d 5ms --stdin replay -- cat <&-"),
    ] {
        let seen = see(std::process::Command::new("sh").args(["-c", &script]));
        assert_eq!(seen.status.code(), Some(0), "{script}: {seen:#?}");
        assert!(!seen.stderr.contains("panicked"), "{seen:#?}");
    }
}

#[test]
fn a_failed_write_of_the_output_is_reported() {
    let full = File::options().write(true).open("/dev/full").unwrap();
    let running = run(["-O", "--", "echo", "hello"]).stdout(full).stderr(Stdio::piped()).output().unwrap();
    assert_eq!(running.status.code(), Some(125));
    let stderr = String::from_utf8_lossy(&running.stderr);
    assert!(stderr.contains("cannot write the command's output: No space left"), "{stderr}");
}

#[test]
fn a_background_process_holding_a_stream_does_not_block_the_end() {
    let files = Files::new();
    let script = format!("sleep 60 & echo $! > {}; echo done", files.path("daemon").display());
    let began = Instant::now();
    see(&mut run_script(&["-OE"], &script)).exits(0).prints("done\n");
    assert!(began.elapsed() < Duration::from_secs(10));
    rustix::process::kill_process(files.wait_for_pid("daemon"), Signal::KILL).unwrap();
}

#[test]
fn a_stalled_reader_does_not_block_signals() {
    let files = Files::new();
    for (flags, script) in [
        (&["--retry-if-stdout", "x"][..], format!("echo $$ > {}; exec yes", files.path("pid").display())),
        (&["-O"], format!("head -c 1000000 /dev/zero; echo $$ > {}", files.path("pid").display())),
    ] {
        let running = Running::start(&mut run_script(flags, &script));
        files.wait_for_pid("pid");
        // Until the pipe is full.
        std::thread::sleep(Duration::from_millis(100));
        running.signal(Signal::TERM);
        let mut running = running;
        eventually("stagger has ended", || running.child.try_wait().unwrap().is_some());
        running.end().dies_of(Signal::TERM);
        fs::remove_file(files.path("pid")).unwrap();
    }
}

#[test]
fn a_slow_reader_receives_all_output() {
    // More than the capacity of one pipe, less than that of two.
    const LENGTH: usize = 120_000;
    let script = format!("head -c {LENGTH} /dev/zero");
    let mut running = Running::start(&mut run_script(&["--stop-if-stdout", "x"], &script));
    std::thread::sleep(Duration::from_millis(500));
    // Wakes stagger while the write is blocked.
    running.signal(Signal::WINCH);
    std::thread::sleep(Duration::from_millis(50));
    let mut all = Vec::new();
    running.child.stdout.take().unwrap().read_to_end(&mut all).unwrap();
    assert_eq!(all.len(), LENGTH);
    running.end().exits(0);
}

#[test]
fn output_of_failed_attempts_in_a_file_is_noted_once() {
    const NOTE: &str = "this attempt already wrote 5 B to standard output; use -O to emit only the output of \
                        the successful attempt";
    let script = r#"printf 12345; test "$STAGGER_ATTEMPT" = 3"#;
    let files = Files::new();
    let notes = |flags: &[&str], script: &str| {
        let out = File::create(files.path("out")).unwrap();
        let output = run_script(flags, script).stdout(out).stderr(Stdio::piped()).output().unwrap();
        String::from_utf8_lossy(&output.stderr).matches(NOTE).count()
    };
    assert_eq!(notes(&[], script), 1);
    assert_eq!(notes(&["-O"], script), 0);
    assert_eq!(notes(&[], r#"test "$STAGGER_ATTEMPT" = 2"#), 0);
    let both = format!("{} run -d 5ms -n 2 -- sh -c 'printf 12345 >&2; exit 1' 2>&1", env!("CARGO_BIN_EXE_stagger"));
    let out = File::create(files.path("both")).unwrap();
    std::process::Command::new("sh").args(["-c", &both]).stdout(out).status().unwrap();
    assert!(!fs::read_to_string(files.path("both")).unwrap().contains("already wrote"));
    // A searched stream is counted as it is forwarded, whatever its destination.
    let seen = see(&mut run_script(&["-n", "3", "--stop-if-stdout", "x"], script));
    seen.exits(0).prints("123451234512345").says(NOTE);
}

#[test]
fn the_reader_of_a_pipe_is_told_of_the_output_of_failed_attempts_once() {
    const PIPE: &str = "note: standard output is a pipe: its reader also receives what failed attempts write; use -O";
    let seen = see(&mut run_script(&["-n", "3"], "echo partial; exit 1"));
    seen.exits(1).says(PIPE).prints("partial\npartial\npartial\n");
    assert_eq!(seen.stderr.matches("note:").count(), 1, "{seen:#?}");
    // Nothing of this is the case with -O, without a retry, and without output, where that is known.
    for (flags, script) in [
        (&["-n", "3", "-O"][..], "echo partial; exit 1"),
        (&["-n", "1"], "echo partial; exit 1"),
        (&["-n", "3", "-q"], "echo partial; exit 1"),
        (&["-n", "3"], "echo done"),
        (&["-n", "3", "--retry-if-stdout", "partial"], "exit 1"),
    ] {
        see(&mut run_script(flags, script)).is_silent_about("is a pipe");
    }
}
