//! Units, verified by systemd, and their commands.

use std::fs;

use super::bench::Bench;
use super::page::{code, with};

/// Writes the units with the programs of the directory, and returns their paths.
fn write(bench: &Bench) -> Vec<String> {
    let units = code("systemd");
    let write = |unit: &String| {
        let first = unit.lines().next().expect("a unit begins with its path");
        let name = first.strip_prefix("# /etc/systemd/system/").expect("a unit begins with its path");
        let bin = bench.path("bin/");
        let text = unit.replace("/usr/bin/stagger", &(bin.clone() + "stagger")).replace("/usr/local/bin/", &bin);
        fs::write(bench.path(name), text).expect("the unit is written");
        bench.path(name)
    };
    units.iter().map(write).collect()
}

/// Returns the command that a unit starts.
fn command(unit: &str) -> String {
    let text = fs::read_to_string(unit).expect("the unit is read");
    let command = text.lines().find_map(|line| line.strip_prefix("ExecStart="));
    command.expect("the unit starts a command").to_owned()
}

#[test]
fn systemd_accepts_the_units() {
    needs!("systemd-analyze");
    let bench = Bench::new();
    bench.script("backup", "");
    bench.script("worker", "");
    let units = write(&bench);
    let verify = format!("systemd-analyze verify --man=no --recursive-errors=yes {}", units.join(" "));
    let seen = bench.see(&verify);
    assert_eq!(seen.exits(0).stderr, "");
    // It sees what it is asked for.
    let wrong = with(&fs::read_to_string(&units[1]).unwrap(), &[("RandomizedDelaySec", "RandomDelaySec")]);
    fs::write(&units[1], wrong).unwrap();
    bench.see(&verify).exits(1).says("RandomDelaySec");
}

#[test]
fn the_job_retries_and_the_service_is_restarted_for_as_long_as_it_fails() {
    let bench = Bench::new();
    let units = write(&bench);
    bench.failing("backup", 99, "busy", 75, "");
    bench.see(&command(&units[0])).exits(75);
    assert_eq!(bench.take_calls("backup").len(), 5);
    // More often than the default number of attempts, with short delays for the test.
    bench.failing("worker", 7, "crashed", 1, "");
    bench.see(&with(&command(&units[2]), &[("-d 1s", "-d 1ms"), ("--cap 2m", "--cap 10ms")])).exits(0);
    assert_eq!(bench.take_calls("worker").len(), 8);
}
