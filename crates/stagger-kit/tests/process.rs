//! Programs as child processes: what goes in, what comes out, and that nothing is left.

#![expect(clippy::unwrap_used, reason = "the helpers belong to the tests")]

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

/// Waits for a process that was killed by somebody else to be gone; a zombie is gone.
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
fn arguments_environment_and_directory_arrive_as_given() {
    let directory = tempfile::tempdir().unwrap();
    let program = Program::find("sh").unwrap().args(["-c", r#"printf '%s|' "$@" "$KIT_WORD" "$PWD""#, "sh"]);
    let program = program.args(["two words", "", "'\"$HOME\\", "ü"]).env("KIT_WORD", "a b").directory(directory.path());
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
fn ten_megabytes_go_in_and_come_out_unchanged() {
    let bytes: Vec<u8> = (0..10_000_000_u32).map(|number| (number % 251) as u8).collect();
    let done = run(&Program::find("cat").unwrap().input(bytes.clone()));
    assert!(done.stdout == bytes, "{} bytes came out", done.stdout.len());
}

#[test]
fn a_program_that_does_not_read_its_input_still_ends() {
    assert_eq!(run(&shell("exit 7").input(vec![0; 1_000_000])).code(), Some(7));
}

#[test]
fn input_is_empty_unless_given() {
    assert_eq!(run(&Program::find("cat").unwrap()).stdout, b"");
}

#[test]
fn a_conversation_goes_line_by_line() {
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
fn both_streams_can_be_waited_for() {
    let mut running = shell("echo a; echo b >&2; echo c; echo d >&2; read x").input_open().spawn().unwrap();
    assert_eq!(running.wait_for(Stream::Stderr, "d", LONG).unwrap(), "d");
    assert_eq!(running.wait_for(Stream::Stdout, "c", LONG).unwrap(), "c");
    assert_eq!((running.text(Stream::Stdout), running.text(Stream::Stderr)), ("a\nc\n".into(), "b\nd\n".into()));
}

#[test]
fn a_line_that_does_not_come_is_an_error_that_shows_what_came() {
    let mut running = shell("echo almost; exec sleep 60").spawn().unwrap();
    let error = running.wait_for(Stream::Stdout, "there", Duration::from_millis(100)).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::TimedOut);
    assert!(error.to_string().contains("waited for `there`") && error.to_string().contains("almost"), "{error}");
}

#[test]
fn a_program_past_its_limit_is_killed_and_what_it_wrote_is_told() {
    let started = Instant::now();
    let error = shell("echo working on it; exec sleep 60").run(Duration::from_millis(50)).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::TimedOut);
    assert!(error.to_string().contains("working on it"), "{error}");
    assert!(started.elapsed() < LONG);
}

#[test]
fn the_end_by_a_signal_is_told_from_an_exit() {
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
fn what_a_program_leaves_behind_is_named_and_killed() {
    let started = Instant::now();
    let done = run(&shell("sleep 61 & echo $!"));
    assert!(started.elapsed() < LONG, "it holds the pipe open, but not for long");
    let [leaked] = &done.leaked[..] else { panic!("{:?}", done.leaked) };
    assert_eq!(leaked.to_string(), format!("{} (sleep 61)", done.stdout_text().trim()));
    assert!(is_gone(leaked.id));
}

#[test]
fn children_that_end_with_the_program_are_no_strays() {
    assert_eq!(run(&shell("sleep 0.03 & sleep 0.01; exit 0")).leaked, []);
}

#[test]
fn dropping_a_program_kills_its_children_and_their_children() {
    let mut running = shell("sh -c 'sleep 62 & echo $!; wait' & wait").spawn().unwrap();
    let grandchild = read_id(&mut running);
    assert_eq!(running.descendants().len(), 2);
    drop(running);
    assert!(is_gone(grandchild));
}

#[test]
fn a_daemon_in_a_session_of_its_own_whose_parent_is_dead_is_killed_too() {
    // The inner shell starts the daemon and ends, which leaves the daemon without any tie to its
    // starter.
    let script = "sh -c 'setsid sh -c \"echo \\$\\$; exec sleep 63\" &'; sleep 64";
    let mut running = shell(script).spawn().unwrap();
    let daemon = read_id(&mut running);
    drop(running);
    assert!(is_gone(daemon));
}

#[test]
fn a_child_that_has_cleared_its_environment_and_left_the_session_is_killed_too() {
    let script = "setsid env -i sh -c 'echo $$; exec /bin/sleep 66' & wait";
    let mut running = shell(script).spawn().unwrap();
    let child = read_id(&mut running);
    drop(running);
    assert!(is_gone(child));
}

#[test]
fn a_child_that_ignores_every_polite_signal_is_killed() {
    let script = "trap '' TERM INT HUP; echo $$; while :; do sleep 1; done";
    let mut running = shell(script).spawn().unwrap();
    let id = read_id(&mut running);
    running.signal(Signal::TERM).unwrap();
    assert!(running.is_running());
    running.kill();
    assert!(!running.is_running() && is_gone(id));
    assert_eq!(running.signal(Signal::TERM).unwrap_err().kind(), ErrorKind::NotFound);
}

/// As an interrupt or a time limit of the test runner ends it: nothing is dropped.
#[test]
fn what_a_test_has_started_dies_with_it_even_if_the_test_is_killed() {
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
    // One child that has ended already: its number may be somebody else's by now.
    assert_eq!(run(&shell("exit 0")).code(), Some(0));
    let child = shell("exec sleep 67").spawn().unwrap();
    println!("child {}", child.id());
    child.wait(LONG).unwrap();
}

#[test]
fn a_program_that_is_not_there_is_named() {
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
fn a_binary_beside_the_test_is_found() {
    let this = env::current_exe().unwrap();
    let name = this.file_name().and_then(|name| name.to_str()).unwrap();
    assert!(run(&Program::workspace_binary(name).unwrap().arg("--list")).stdout_text().contains("is_found: test"));
    assert!(Path::new(&this).exists());
}
