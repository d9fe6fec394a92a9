//! A crontab, and its command as cron runs it.

use std::fs;
use std::process::Command;

use super::bench::Bench;
use super::page::{code, with};
use crate::support::{Running, eventually, see, unpacked};

#[test]
fn crontab_accepts_the_table() {
    needs!("crontab");
    let bench = Bench::new();
    let (right, wrong) = (bench.path("right"), bench.path("wrong"));
    let table = &code("Cron")[0];
    fs::write(&right, table).unwrap();
    fs::write(&wrong, with(table, &[("*/15 * * * *", "*/15 * * *")])).unwrap();
    // crontab changes to the directory of all crontabs, which it creates if there is none.
    let script = "mount -t tmpfs none /var/spool && mkdir -p /var/spool/cron/crontabs && \"$0\" -n \"$1\"";
    let flags = ["--mount", "--map-root-user"];
    let probe = Command::new("unshare").args(flags).arg("true").output();
    if !probe.as_ref().is_ok_and(|probe| probe.status.success()) {
        eprintln!("SKIPPED: this system does not permit `unshare {}`: {probe:?}", flags.join(" "));
        return;
    }
    let check = |table: &str| {
        let mut unshare = Command::new("unshare");
        see(unshare.args(flags).args(["sh", "-c", script]).arg(unpacked("crontab")).arg(table))
    };
    check(&right).exits(0).says("successfully checked");
    check(&wrong).exits(1).says("bad day-of-week");
}

/// Returns the command of the table as cron runs it: by /bin/sh, with these variables and no others.
fn job(bench: &Bench) -> Command {
    let table = with(&code("Cron")[0], &[("--spread 60s", "--spread 1ms")]);
    let (assignment, line) = table.split_once('\n').expect("the table has two lines");
    let path = assignment.strip_prefix("PATH=").expect("the table sets PATH");
    let command = line.splitn(6, ' ').last().expect("five fields and a command");
    assert!(!command.contains('%'), "{command}");
    let mut shell = Command::new("/bin/sh");
    shell.args(["-c", command]).current_dir(bench.path(".")).env_clear();
    shell.env("HOME", bench.path(".")).env("LOGNAME", "user").env("SHELL", "/bin/sh").env("TMPDIR", bench.path("."));
    shell.env("PATH", format!("{}:{path}", bench.path("bin")));
    shell
}

#[test]
fn a_job_that_is_still_running_is_not_started_again() {
    let bench = Bench::new();
    let wait = format!("until [ -e {} ]; do sleep 0.01; done", bench.path("go"));
    bench.failing("sync-orders", 2, "the server is busy", 1, &wait);
    let first = Running::start(&mut job(&bench));
    eventually("the third attempt", || {
        fs::read_to_string(bench.path("calls-sync-orders")).is_ok_and(|calls| calls.lines().count() == 3)
    });
    let second = see(&mut job(&bench));
    assert_eq!((second.exits(0).stderr.as_str(), second.stdout.as_str()), ("", ""));
    fs::write(bench.path("go"), "").unwrap();
    // What cron mails: the output of the command, and nothing of stagger.
    assert_eq!(first.end().exits(0).stderr, "the server is busy\n".repeat(2));
    assert_eq!(bench.take_calls("sync-orders").len(), 3);
    // The lock was released.
    see(&mut job(&bench)).exits(0);
    assert_eq!(bench.take_calls("sync-orders").len(), 3);
}

#[test]
fn a_job_gives_up_after_four_attempts_with_the_code_of_the_command() {
    let bench = Bench::new();
    bench.failing("sync-orders", 99, "the server is busy", 75, "");
    see(&mut job(&bench)).exits(75);
    assert_eq!(bench.take_calls("sync-orders").len(), 4);
}

#[test]
fn the_jobs_of_a_user_share_a_hundred_retries() {
    let bench = Bench::new();
    bench.failing("sync-orders", 999, "the server is busy", 75, "");
    let start = |number: usize| {
        let home = bench.path(&format!("home-{number}"));
        fs::create_dir(&home).unwrap();
        Running::start(job(&bench).env("HOME", home))
    };
    let jobs: Vec<_> = (0..50).map(start).collect();
    for job in jobs {
        job.end().exits(75);
    }
    assert_eq!(bench.take_calls("sync-orders").len(), 50 + 100);
}
