//! `stagger run` as PID 1, as in a container whose entry point it is.

use std::fs;
use std::process::Command;

use rustix::process::{Pid, Signal, kill_process};

use crate::support::{Files, Running, Seen, children, eventually, run_script, stagger, state};

/// Returns the command in a PID namespace of its own, in which it is PID 1; `None`, with the reason on standard error,
/// if this system does not permit it.
fn as_pid_1(command: &Command) -> Option<Command> {
    let mut flags = vec!["--pid", "--fork", "--mount-proc", "--kill-child"];
    if !rustix::process::geteuid().is_root() {
        flags.push("--map-root-user");
    }
    let probe = Command::new("unshare").args(&flags).arg("true").output();
    if !probe.as_ref().is_ok_and(|probe| probe.status.success()) {
        eprintln!("SKIPPED: this system does not permit `unshare {}`: {probe:?}", flags.join(" "));
        return None;
    }
    let mut wrapped = Command::new("unshare");
    wrapped.args(flags).arg(command.get_program()).args(command.get_args());
    for (name, value) in command.get_envs() {
        match value {
            Some(value) => wrapped.env(name, value),
            None => wrapped.env_remove(name),
        };
    }
    wrapped.stdin(std::process::Stdio::null());
    Some(wrapped)
}

/// Returns the PID of stagger as seen from outside of its namespace.
fn stagger_in(unshare: &Running) -> Pid {
    let mut found = None;
    eventually("stagger runs in its namespace", || {
        found = children(unshare.pid()).into_iter().next();
        found.is_some()
    });
    found.expect("it was found")
}

#[test]
fn as_pid_1_a_signal_during_an_attempt_ends_it_with_128_plus_the_signal() {
    for signal in [Signal::TERM, Signal::HUP, Signal::INT, Signal::QUIT] {
        let files = Files::new();
        let script = format!("echo $$ > {}; exec sleep 60", files.path("pid").display());
        let Some(mut command) = as_pid_1(&run_script(&["-n", "3"], &script)) else { return };
        let unshare = Running::start(&mut command);
        files.wait_for_pid("pid");
        kill_process(stagger_in(&unshare), signal).unwrap();
        unshare.end().exits(128 + signal.as_raw()).says("stop=cancelled");
    }
}

#[test]
fn as_pid_1_a_signal_during_a_wait_ends_it_with_128_plus_the_signal() {
    for signal in [Signal::TERM, Signal::HUP] {
        let files = Files::new();
        let script = format!("echo $$ > {}; exit 1", files.path("pid").display());
        let run = ["run", "-d", "60s", "--cap", "60s", "-j", "none", "--", "sh", "-c", &script];
        let Some(mut command) = as_pid_1(&stagger(run)) else { return };
        let unshare = Running::start(&mut command);
        files.wait_for_pid("pid");
        let stagger = stagger_in(&unshare);
        eventually("the attempt has ended", || children(stagger).is_empty());
        kill_process(stagger, signal).unwrap();
        unshare.end().exits(128 + signal.as_raw());
    }
}

#[test]
fn as_pid_1_a_closed_pipe_ends_it_with_141() {
    let Some(mut command) = as_pid_1(&run_script(&["-O"], "head -c 1000000 /dev/zero")) else { return };
    let mut unshare = Running::start(&mut command);
    drop(unshare.child.stdout.take());
    unshare.end().exits(141);
}

/// Every hundredth attempt leaves an orphan. Starting ten thousand shells takes ten seconds; fewer would not show a
/// leak of some bytes each.
#[test]
fn as_pid_1_ten_thousand_attempts_leave_no_zombie_descriptor_or_memory() {
    const PROBE: &str = r#"
        case $STAGGER_ATTEMPT in 500|10000)
            zombies=$(grep -lsE '^[0-9]+ \([^)]*\) Z' /proc/[0-9]*/stat | wc -l)
            descriptors=$(ls /proc/1/fd | wc -l)
            memory=$(sed -n 's/^RssAnon:[^0-9]*\([0-9]*\).*/\1/p' /proc/1/status)
            echo "$zombies $descriptors $memory";;
            *00) (: &);;
        esac
        exit 1"#;
    let run = ["run", "-q", "-p", "zero max-attempts=10000", "--", "sh", "-c", PROBE];
    let Some(mut command) = as_pid_1(&stagger(run)) else { return };
    // On a loaded machine this may take longer than any other test may.
    let seen = Seen::from(command.output().unwrap());
    let figures: Vec<Vec<u64>> =
        seen.exits(1).stdout.lines().map(|line| line.split(' ').map(|word| word.parse().unwrap()).collect()).collect();
    let [early, late] = &figures[..] else { panic!("{seen:#?}") };
    // The orphans of the probes before it may be there still.
    assert!(early[0] <= 2 && late[0] <= 2, "zombies: {figures:?}");
    assert_eq!(early[1], late[1], "descriptors: {figures:?}");
    // Memory of its own: pages of the program itself come and go with what else runs.
    assert!(late[2] <= early[2] + 64, "memory in kB: {figures:?}");
    assert_eq!(seen.stderr, "");
}

#[test]
fn as_pid_1_a_storm_of_orphans_is_reaped_while_the_command_runs_and_its_exit_code_is_kept() {
    let files = Files::new();
    let script = format!(
        "i=0; while [ $i -lt 2000 ]; do (: &); i=$((i+1)); done; echo $$ > {0}; \
         while ! test -e {1}; do sleep 0.01; done; exit 77",
        files.path("stormed").display(),
        files.path("go").display()
    );
    let Some(mut command) = as_pid_1(&run_script(&["-n", "1"], &script)) else { return };
    let unshare = Running::start(&mut command);
    files.wait_for_pid("stormed");
    let stagger = stagger_in(&unshare);
    eventually("no zombie is left", || zombies_of(stagger) == 0);
    files.write("go", "");
    unshare.end().exits(77);
}

#[test]
fn orphans_are_reaped_during_a_wait() {
    let files = Files::new();
    let script = format!("(sleep 0.3 &) ; echo $$ > {}; exit 1", files.path("pid").display());
    let run = ["run", "-d", "60s", "--cap", "60s", "-j", "none", "--keep-background", "--", "sh", "-c", &script];
    let running = Running::start(&mut stagger(run));
    let first = files.wait_for_pid("pid");
    eventually("the attempt has ended", || state(first).is_none());
    eventually("the orphan has ended", || children(running.pid()).is_empty());
    eventually("no zombie is left", || zombies_of(running.pid()) == 0);
    running.signal(Signal::TERM);
    running.end().dies_of(Signal::TERM);
}

/// Returns the number of ended processes that their parent has not reaped.
fn zombies_of(parent: Pid) -> usize {
    let parent = parent.as_raw_nonzero().to_string();
    let entries = fs::read_dir("/proc").expect("/proc exists").flatten();
    let stats = entries.filter_map(|entry| fs::read_to_string(entry.path().join("stat")).ok());
    let fields = stats.filter_map(|stat| Some(stat.rsplit_once(')')?.1.to_owned()));
    fields.filter(|fields| fields.split_ascii_whitespace().take(2).eq(["Z", &*parent])).count()
}
