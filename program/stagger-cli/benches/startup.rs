//! Time and memory of `stagger run -- true` beside `timeout` and Debian's `retry`, in one run: `cargo bench -p
//! stagger-cli`.
//!
//! The programs take turns, so that a busy moment of the machine affects all of them. A program that is not installed
//! is left out. `STAGGER_BESIDE` may name one more build of `stagger`, such as an older one.

#[cfg(unix)]
fn main() {
    unix::main();
}

#[cfg(not(unix))]
fn main() {}

#[cfg(unix)]
mod unix {
    use core::time::Duration;
    use std::process::{Command, Stdio};
    use std::time::Instant;

    const ROUNDS: usize = 500;

    /// The argument with which this program measures the memory of one program, whose words follow.
    const MEMORY: &str = "--memory-of";

    fn programs<'a>(beside: Option<&'a str>) -> Vec<Vec<&'a str>> {
        let run = |program: &'a str| vec![program, "run", "-q", "--", "true"];
        let peers = [vec!["true"], vec!["timeout", "10", "true"], vec!["retry", "-t", "1", "--", "true"]];
        let all = peers.into_iter().chain([run(env!("CARGO_BIN_EXE_stagger"))]).chain(beside.map(run));
        all.filter(|words| command(words).status().is_ok()).collect()
    }

    fn command(words: &[&str]) -> Command {
        let mut command = Command::new(words[0]);
        command.args(&words[1..]).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        command
    }

    pub(super) fn main() {
        let words: Vec<String> = std::env::args().skip(1).collect();
        if words.first().is_some_and(|word| word == MEMORY) {
            let words: Vec<&str> = words[1..].iter().map(String::as_str).collect();
            return print_memory(&words);
        }
        let beside = std::env::var("STAGGER_BESIDE").ok();
        let programs = programs(beside.as_deref());
        let mut times = vec![Vec::with_capacity(ROUNDS); programs.len()];
        for _ in 0..ROUNDS {
            for (program, times) in programs.iter().zip(&mut times) {
                let began = Instant::now();
                let status = command(program).status().expect("the program has started before");
                times.push(began.elapsed());
                assert!(status.success(), "{program:?}: {status}");
            }
        }
        println!("{:<30} {:>10} {:>10} {:>10}", "command", "median", "least", "memory");
        for (program, times) in programs.iter().zip(&mut times) {
            times.sort_unstable();
            let name = program.join(" ").replace(env!("CARGO_BIN_EXE_stagger"), "stagger");
            let milliseconds = |time: Duration| format!("{:.2} ms", time.as_secs_f64() * 1e3);
            let (median, least) = (milliseconds(times[ROUNDS / 2]), milliseconds(times[0]));
            println!("{name:<30} {median:>10} {least:>10} {:>10}", memory(program));
        }
    }

    /// Returns the peak memory of a program, measured by a process that has no other child.
    fn memory(program: &[&str]) -> String {
        let this = std::env::current_exe().expect("this program has a path");
        let output = Command::new(this).arg(MEMORY).args(program).output().expect("this program starts");
        String::from_utf8_lossy(&output.stdout).trim().to_owned()
    }

    fn print_memory(words: &[&str]) {
        let status = command(words).status().expect("the program starts");
        assert!(status.success(), "{words:?}: {status}");
        let usage = nix::sys::resource::getrusage(nix::sys::resource::UsageWho::RUSAGE_CHILDREN);
        println!("{:.1} MB", usage.expect("the system has measured").max_rss() as f64 * 1024.0 / 1e6);
    }
}
