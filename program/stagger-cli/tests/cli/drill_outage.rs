//! Tests of `stagger drill outage`, run as a program with a real server and real clients.

use std::fs;
use std::process::Command;

use serde_json::Value;

use crate::support::{Files, see, stagger};

/// A drill of less than three seconds, whose load is far below what a machine carries. With 77 attempts per second in
/// place of the 100 that the workers can serve, no request would succeed after the stall; so a third of them do.
const DRILL: [&str; 14] = [
    "drill",
    "outage",
    "--rate=70/s",
    "--workers=2",
    "--service=20ms",
    "--backlog=60",
    "--timeout=200ms",
    "--start=300ms",
    "--down=500ms",
    "--horizon=2s",
    "--compare",
    "one: zero max-attempts=1",
    "--seed",
    "7",
];

fn drill(args: &[&str]) -> Command {
    let mut command = stagger(DRILL);
    command.args(args).env("COLUMNS", "120");
    command
}

/// What is measured agrees with the simulation, unless the machine was too busy, which the drill says.
#[test]
fn measured_and_simulated_agree_unless_the_machine_shaped_the_run() {
    let files = Files::new();
    let [html, svg, csv, md] = ["drill.html", "svg", "drill.csv", "drill.md"].map(|name| files.path(name));
    let mut command = drill(&["--json", "--assert", "attempts_per_request<=1,longest_queue<=139"]);
    command.arg("-o").arg(&html).arg("--svg").arg(&svg);
    command.arg(format!("--csv={}", csv.display())).arg(format!("--md={}", md.display()));
    let document: Value = serde_json::from_str(&see(&mut command).exits(0).stdout).expect("valid JSON");
    let policy = &document["policies"][0];
    let (agrees, warnings) = (&policy["agrees"], policy["machine"]["warnings"].as_array().expect("a list"));
    assert!(agrees == true || (agrees.is_null() && !warnings.is_empty()), "{policy:#}");
    // Every request of the horizon was made, and each attempt that the server refused was one of the clients'.
    let [measured, simulated] = [&policy["measured"], &policy["simulated"]];
    let sum = |figures: &Value, series: &str| {
        figures[series].as_array().expect("a series").iter().map(|count| count.as_u64().unwrap()).sum::<u64>()
    };
    assert_eq!((sum(measured, "requests"), sum(simulated, "requests")), (139, 139));
    let attempts = sum(measured, "attempts");
    assert!(attempts <= 139, "{measured:#}");
    // A machine that stood still may have made other queues, and delayed an attempt beyond its request.
    if warnings.is_empty() {
        assert!(attempts > 130, "{measured:#}");
        assert!(measured["longest_queue"].as_u64().unwrap() > 10, "{measured:#}");
        assert!(measured["success_ratio_during_fault"].as_f64().unwrap() < 0.9, "{measured:#}");
    }
    for (path, part) in [
        (html, "Outage, measured and simulated"),
        (csv, "one,simulated,"),
        (md, "| one, measured |"),
        (svg.join("attempts.svg"), "simulated"),
        (svg.join("served.svg"), "measured"),
    ] {
        let text = fs::read_to_string(&path).expect("the file is written");
        assert!(text.contains(part), "{part} is not in {}", path.display());
    }
}

/// An overloaded client is the machine's doing: no verdict.
#[test]
fn a_run_whose_timers_were_late_has_no_verdict() {
    // Any delay of a timer is more than a twentieth of two milliseconds.
    let args = ["--timeout=2ms", "--service=1ms", "--horizon=900ms", "--assert", "agrees=yes"];
    let seen = see(&mut drill(&args));
    seen.exits(1).says("assertion failed: agrees=yes: agrees is unknown for one, measured");
    for part in [
        "one: no verdict, because the run is unreliable: ",
        "unreliable: one: the machine, rather than the policy, may have shaped this run: ",
        "client timers fired up to",
        "(lower --rate)",
    ] {
        let text = seen.stdout.split_whitespace().collect::<Vec<_>>().join(" ");
        assert!(text.contains(part), "{part}\n{}", seen.stdout);
    }
}

#[test]
fn flags_of_the_other_scenario_and_wrong_values_are_reported_with_a_remedy() {
    for (args, want) in [
        (
            &["drill", "outage", "--clients=5"][..],
            "--clients is of the other scenario; a drill of an outage has --rate,",
        ),
        (&["drill", "--slow=2"], "--slow is of the other scenario; use: stagger drill outage"),
        (&["drill", "outage", "--slow=0"], "--slow: `0` is not a factor; use a number above 0, such as 4"),
        (&["drill", "outage", "--down=9s"], "--horizon: the run ends at 8s, and the outage at 10s; raise --horizon,"),
        (&["drill", "outage", "--rate=1M/s"], "lower --rate or --horizon"),
        (&["drill", "outage", "--assert=peek<3"], "--assert: unknown metric `peek`; there are verdict,"),
        (&["drill", "outage", "--assert=refusd<3"], "did you mean `refused`?"),
        (&["drill", "outage", "--workers=0"], "--workers: invalid value `0`"),
        (&["drill", "outtage"], "a similar value exists: 'outage'"),
    ] {
        see(&mut stagger(args)).exits(2).says(want);
    }
}
