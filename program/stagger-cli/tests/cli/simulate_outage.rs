//! Tests of what `stagger simulate outage` says about an outage.

use serde_json::Value;

use crate::simulate::{json, said, simulate};
use crate::support::see;

/// 50 requests per second, a third of the capacity, and a stall of 1 ms.
const LIGHTLY_LOADED: [&str; 10] = [
    "outage",
    "--rate=50/s",
    "--capacity=160/s",
    "--timeout=200ms",
    "--policy=zero max-attempts=4",
    "--start=10s",
    "--down=1ms",
    "--horizon=42s",
    "--one-way=0ms",
    "--seed=15",
];

/// 9.5 of ten requests per second, which collapse some time after a stall of 1 ms.
const NEARLY_FULL: [&str; 11] = [
    "outage",
    "--rate=9.5/s",
    "--capacity=10/s",
    "--backlog=100",
    "--timeout=3s",
    "--policy=zero max-attempts=5",
    "--start=1s",
    "--down=1ms",
    "--horizon=1h",
    "--one-way=0ms",
    "--seed=1",
];

#[test]
fn a_run_without_a_failure_never_fell_and_blames_no_retries() {
    let text = said(&mut simulate(&LIGHTLY_LOADED));
    assert!(text.contains("never fell: zero max-attempts=4"), "{text}");
    assert!(!text.contains("retries"), "{text}");
    said(simulate(&LIGHTLY_LOADED).args(["--assert", "verdict=never-fell,metastable=no,recovery<=1s"]));
}

#[test]
fn a_system_that_collapses_later_is_still_down_and_fails_an_assertion() {
    let text = said(&mut simulate(&NEARLY_FULL));
    assert!(text.contains("still down at the horizon: zero max-attempts=5, since "), "{text}");
    assert!(text.contains(" attempts/s at the end"), "{text}");
    let document = json(&said(simulate(&NEARLY_FULL).arg("--json")));
    let run = &document["strategies"][0]["runs"][0];
    assert_eq!((&run["verdict"], &run["recovery_s"]), (&"still-down".into(), &Value::Null));
    assert_eq!((&run["metastable"], &run["fell"]), (&true.into(), &true.into()));
    assert!(
        see(simulate(&NEARLY_FULL).args(["--assert", "metastable=no,recovery<=1s"]))
            .exits(1)
            .stderr
            .contains("metastable")
    );
}

/// A queue that is worked off within five minutes, seen for two.
#[test]
fn a_run_that_is_too_short_is_not_decided() {
    let slow = ["outage", "--policy=zero max-attempts=1", "--rate=90/s", "--capacity=100/s", "--down=30s", "--seed=1"];
    let text = said(&mut simulate(&slow));
    for part in ["not decided at the horizon: ", " not yet ", "a longer --horizon shows whether it recovers"] {
        assert!(text.contains(part), "{part}\n{text}");
    }
    let document = json(&said(simulate(&slow).arg("--json")));
    let run = &document["strategies"][0]["runs"][0];
    assert_eq!((&run["verdict"], &run["metastable"]), (&"not-decided".into(), &Value::Null));
    for claim in ["metastable=no", "metastable=yes", "recovery<=1h"] {
        see(simulate(&slow).args(["--assert", claim])).exits(1);
    }
    let text = said(simulate(&slow).arg("--horizon=20m"));
    assert!(text.contains("recovered: "), "{text}");
}

/// Three attempts within two seconds fail in an outage of five; one after ten seconds does not.
#[test]
fn rejections_have_the_hint_of_the_command_line() {
    let args = ["outage", "--rate=50/s", "--capacity=100/s", "--outage=reject", "--down=5s", "--horizon=1m"];
    let success = |hint: &[&str]| {
        let mut command = simulate(&args);
        let document = said(command.args(["-p", "constant base=1s jitter=none max-attempts=3", "--json"]).args(hint));
        json(&document)["strategies"][0]["runs"][0]["success_ratio"].as_f64().unwrap()
    };
    let [without, with] = [success(&[]), success(&["--retry-after=10s"])];
    assert!(without < 0.9 && with > 0.999, "{without}, {with} with a hint");
}

#[test]
fn a_load_above_the_capacity_is_not_blamed_on_retries() {
    let args = ["outage", "--rate=120/s", "--capacity=100/s", "-n", "1", "--horizon=60s"];
    let text = said(&mut simulate(&args));
    assert!(text.contains("the requests alone exceed the capacity"), "{text}");
    assert!(!text.contains("attempts/s at the end"), "{text}");
}

#[test]
fn a_slow_recovery_without_retries_is_not_blamed_on_retries() {
    let text =
        said(&mut simulate(&["outage", "--rate=95/s", "--capacity=100/s", "-n", "1", "--down=20s", "--horizon=60s"]));
    assert!(text.contains("a longer --horizon shows whether it recovers"), "{text}");
    assert!(!text.contains("attempts/s at the end"), "{text}");
}

#[test]
fn a_horizon_too_short_to_recover_in_is_reported() {
    let text = said(&mut simulate(&["outage", "--rate=1/s", "-n", "1", "--down=20s", "--horizon=130s"]));
    assert!(text.contains("raise --horizon to at least "), "{text}");
    let text = said(&mut simulate(&["outage", "--rate=1/s", "-n", "1", "--down=20s"]));
    assert!(text.contains("recovered: "), "without a horizon, it is long enough: {text}");
}

#[test]
fn different_verdicts_of_one_policy_are_counted() {
    let args =
        ["outage", "--rate=100/s", "--capacity=200/s", "--backlog=600", "-p", "zero max-attempts=3", "--down=1500ms"];
    let text = said(simulate(&args).args(["--seeds=12", "--horizon=60s"]));
    assert!(text.contains("of 12 runs of zero max-attempts=3, "), "{text}");
}

#[test]
fn a_conclusion_about_many_policies_names_a_few_and_counts_the_rest() {
    let spread = ["--sweep", "max-attempts=1,2,3,4,5,6,7,8,9", "--horizon=5m"];
    let args = ["outage", "--rate=40/s", "--capacity=50/s", "--backlog=200", "-p", "zero", "--down=10s"];
    let text = said(simulate(&args).args(spread));
    let down = text.split_once("still down at the horizon: ").expect("most are down").1.replace('\n', " ");
    let down: Vec<&str> = down.split("  a system is down").next().unwrap().split("; ").collect();
    let causes = text.lines().filter(|line| line.contains(" attempts/s at the end")).count();
    assert!(down.len() == 6 && down[5].contains(" others"), "{text}");
    assert!(causes <= 5 && text.contains(" others are down or not decided at the horizon, too"), "{text}");
    assert!(text.lines().filter(|line| line.contains("max-attempts=9")).count() >= 1, "the table has all: {text}");
}

#[test]
fn a_system_that_was_down_before_the_outage_is_reported() {
    let args = NEARLY_FULL.map(|arg| if arg == "--start=1s" { "--start=50m" } else { arg });
    let text = said(&mut simulate(&args));
    assert!(text.contains("the system was down before the outage in 1 of 1 runs"), "{text}");
    let text = said(&mut simulate(&LIGHTLY_LOADED));
    assert!(!text.contains("before the outage"), "{text}");
}

#[cfg(target_os = "linux")]
#[test]
fn the_document_has_the_same_bytes_on_all_processors_and_on_one() {
    let document = || said(&mut simulate(&["outage", "--seeds=2", "--horizon=40s", "--json"]));
    let first = document();
    crate::simulate_system::use_one_processor();
    assert_eq!(first, document());
}
