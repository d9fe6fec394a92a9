//! Programs as child processes: input, output, signals, and no leaked processes.

#![expect(clippy::unwrap_used, reason = "helper functions of tests")]

use core::time::Duration;
use std::env;
use std::fs;
use std::io::ErrorKind;
use std::path::Path;
use std::thread;
use std::time::Instant;

use stagger_kit::{Finished, Program, Running, Signal, Stream};

const LONG: Duration = Duration::from_secs(10);

fn shell(script: &str) -> Program {
    Program::find("sh").unwrap().args(["-c", script])
}

fn run(program: &Program) -> Finished {
    program.run(LONG).unwrap()
}

/// Waits until a process that was killed is gone, and returns whether it is; a zombie counts as gone.
fn is_gone(id: i32) -> bool {
    let started = Instant::now();
    while started.elapsed() < LONG {
        match fs::read_to_string(format!("/proc/{id}/stat")) {
            Ok(stat) if !stat.contains(") Z ") => thread::sleep(Duration::from_millis(2)),
            _ => return true,
        }
    }
    false
}

fn read_id(running: &mut Running) -> i32 {
    running.next_line(LONG).unwrap().parse().unwrap()
}

#[test]
fn arguments_environment_and_directory_are_passed_unchanged() {
    let directory = tempfile::tempdir().unwrap();
    let program = Program::find("sh").unwrap().args(["-c", r#"printf '%s|' "$@" "$KIT_WORD" "$PWD""#, "sh"]);
    let program = program.args(["two words", "", "'\"$HOME\\", "ü"]);
    let program = program.env("KIT_WORD", "a b").directory(directory.path());
    let want = format!("two words||'\"$HOME\\|ü|a b|{}|", directory.path().canonicalize().unwrap().display());
    assert_eq!(run(&program).stdout_text(), want);
}

#[test]
fn a_removed_variable_is_not_inherited() {
    assert!(env::var_os("PATH").is_some());
    let done = run(&shell("echo ${PATH-none}").env("KIT_WORD", "set").env_remove("PATH"));
    assert_ne!(done.stdout_text().trim(), env::var("PATH").unwrap());
    assert_eq!(run(&shell("echo ${KIT_WORD-none}").env("KIT_WORD", "x").env_remove("KIT_WORD")).stdout, b"none\n");
}

#[test]
fn ten_megabytes_are_piped_unchanged() {
    let bytes: Vec<u8> = (0..10_000_000_u32).map(|number| (number % 251) as u8).collect();
    let done = run(&Program::find("cat").unwrap().input(bytes.clone()));
    assert!(done.stdout == bytes, "{} bytes came out", done.stdout.len());
}

#[test]
fn unread_input_does_not_block() {
    assert_eq!(run(&shell("exit 7").input(vec![0; 1_000_000])).code(), Some(7));
}

#[test]
fn input_is_empty_by_default() {
    assert_eq!(run(&Program::find("cat").unwrap()).stdout, b"");
}

#[test]
fn input_and_output_can_alternate_by_line() {
    let mut cat = Program::find("cat").unwrap().input_open().spawn().unwrap();
    for word in ["one", "two"] {
        cat.write(format!("{word}\n").as_bytes()).unwrap();
        assert_eq!(cat.next_line(LONG).unwrap(), word);
    }
    cat.end_input();
    assert_eq!(cat.next_line(LONG).unwrap_err().kind(), ErrorKind::UnexpectedEof);
    assert_eq!(cat.wait(LONG).unwrap().stdout, b"one\ntwo\n");
}

#[test]
fn wait_for_works_on_both_streams() {
    let mut running = shell("echo a; echo b >&2; echo c; echo d >&2; read x").input_open().spawn().unwrap();
    assert_eq!(running.wait_for(Stream::Stderr, "d", LONG).unwrap(), "d");
    assert_eq!(running.wait_for(Stream::Stdout, "c", LONG).unwrap(), "c");
    assert_eq!((running.text(Stream::Stdout), running.text(Stream::Stderr)), ("a\nc\n".into(), "b\nd\n".into()));
}

#[test]
fn a_missing_line_is_an_error_with_the_output_so_far() {
    let mut running = shell("echo almost; exec sleep 60").spawn().unwrap();
    let error = running.wait_for(Stream::Stdout, "there", Duration::from_millis(100)).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::TimedOut);
    assert!(error.to_string().contains("waited for `there`") && error.to_string().contains("almost"), "{error}");
}

#[test]
fn a_program_beyond_its_limit_is_killed_and_its_output_reported() {
    let started = Instant::now();
    let error = shell("echo working on it; exec sleep 60").run(Duration::from_millis(50)).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::TimedOut);
    assert!(error.to_string().contains("working on it"), "{error}");
    assert!(started.elapsed() < LONG);
}

#[test]
fn death_by_signal_is_distinguished_from_an_exit() {
    let running = Program::find("sleep").unwrap().arg("60").spawn().unwrap();
    assert!(running.is_running());
    running.signal(Signal::TERM).unwrap();
    let done = running.wait(LONG).unwrap();
    assert_eq!((done.code(), done.signal()), (None, Some(Signal::TERM.as_raw())));
}

#[test]
fn a_signal_reaches_the_program_and_not_its_children() {
    let wait = "trap 'caught=1' USR1; sleep 60 & echo $!; until [ $caught ]; do sleep 0.01; done";
    let mut running = shell(&format!("{wait}; kill -0 $! && echo alive")).spawn().unwrap();
    let child = read_id(&mut running);
    running.signal(Signal::USR1).unwrap();
    assert_eq!(running.next_line(LONG).unwrap(), "alive");
    let done = running.wait(LONG).unwrap();
    assert_eq!(done.leaked.iter().map(|leaked| leaked.id).collect::<Vec<_>>(), [child]);
}

#[test]
fn leaked_processes_are_reported_and_killed() {
    let started = Instant::now();
    let done = run(&shell("sleep 61 & echo $!"));
    assert!(started.elapsed() < LONG, "a leaked process holding the pipe does not block the end");
    let [leaked] = &done.leaked[..] else { panic!("{:?}", done.leaked) };
    assert_eq!(leaked.to_string(), format!("{} (sleep 61)", done.stdout_text().trim()));
    assert!(is_gone(leaked.id));
}

#[test]
fn children_that_end_with_the_program_are_not_leaked() {
    assert_eq!(run(&shell("sleep 0.03 & sleep 0.01; exit 0")).leaked, []);
}

#[test]
fn dropping_a_program_kills_all_descendants() {
    let mut running = shell("sh -c 'sleep 62 & echo $!; wait' & wait").spawn().unwrap();
    let grandchild = read_id(&mut running);
    assert_eq!(running.descendants().len(), 2);
    drop(running);
    assert!(is_gone(grandchild));
}

#[test]
fn a_daemon_in_its_own_session_with_a_dead_parent_is_killed() {
    // The inner shell starts the daemon and exits, so the daemon has no relation to the program.
    let script = "sh -c 'setsid sh -c \"echo \\$\\$; exec sleep 63\" &'; sleep 64";
    let mut running = shell(script).spawn().unwrap();
    let daemon = read_id(&mut running);
    drop(running);
    assert!(is_gone(daemon));
}

#[test]
fn a_child_with_an_empty_environment_in_another_session_is_killed() {
    let script = "setsid env -i sh -c 'echo $$; exec /bin/sleep 66' & wait";
    let mut running = shell(script).spawn().unwrap();
    let child = read_id(&mut running);
    drop(running);
    assert!(is_gone(child));
}

#[test]
fn a_child_that_ignores_signals_is_killed() {
    let script = "trap '' TERM INT HUP; echo $$; while :; do sleep 1; done";
    let mut running = shell(script).spawn().unwrap();
    let id = read_id(&mut running);
    running.signal(Signal::TERM).unwrap();
    assert!(running.is_running());
    running.kill();
    assert!(!running.is_running() && is_gone(id));
    assert_eq!(running.signal(Signal::TERM).unwrap_err().kind(), ErrorKind::NotFound);
}

/// Simulates an interrupt or a time limit of the test runner, where no destructor runs.
#[test]
fn children_of_a_killed_test_are_killed() {
    let mut test = Program::this_test("starts_a_child_and_waits").unwrap().env("KIT_WAIT", "yes").spawn().unwrap();
    let line = test.wait_for(Stream::Stdout, "child ", LONG).unwrap();
    let child = line.rsplit(' ').next().unwrap().parse().unwrap();
    test.signal(Signal::KILL).unwrap();
    assert!(is_gone(child));
}

#[test]
#[ignore = "waits to be killed; the test above starts and kills it"]
fn starts_a_child_and_waits() {
    if env::var_os("KIT_WAIT").is_none() {
        return;
    }
    // A child that has already ended, whose PID may have been reused.
    assert_eq!(run(&shell("exit 0")).code(), Some(0));
    let child = shell("exec sleep 67").spawn().unwrap();
    println!("child {}", child.id());
    child.wait(LONG).unwrap();
}

#[test]
fn errors_for_missing_programs_contain_their_name() {
    for (error, wanted) in [
        (Program::at("/nonexistent/tool").spawn().map(|_| ()).unwrap_err(), "/nonexistent/tool"),
        (Program::find("no-such-tool").map(|_| ()).unwrap_err(), "`no-such-tool` is not installed"),
        (Program::workspace_binary("no-such-bin").map(|_| ()).unwrap_err(), "`cargo build --bin no-such-bin`"),
    ] {
        assert_eq!(error.kind(), ErrorKind::NotFound);
        assert!(error.to_string().contains(wanted), "{error}");
    }
}

#[test]
fn a_binary_in_the_build_directory_is_found() {
    let this = env::current_exe().unwrap();
    let name = this.file_name().and_then(|name| name.to_str()).unwrap();
    assert!(run(&Program::workspace_binary(name).unwrap().arg("--list")).stdout_text().contains("is_found: test"));
    assert!(Path::new(&this).exists());
}
