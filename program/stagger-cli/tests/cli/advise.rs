//! Tests of `stagger advise`, run as a program.

use std::process::Command;

use serde_json::Value;

use crate::support::{Files, said, see, see_with_input, stagger};

const FLEET: [&str; 8] = ["--for", "reconnecting", "--clients", "2k", "--capacity", "100/s", "--outage", "0s"];

fn advise(args: &[&str]) -> Command {
    let mut command = stagger(["advise"]);
    command.args(args);
    command
}

#[track_caller]
fn json(args: &[&str]) -> Value {
    let text = said(advise(args).arg("--json"));
    assert_eq!(text.lines().count(), 1, "{text}");
    serde_json::from_str(&text).expect("valid JSON")
}

#[test]
fn the_policy_is_printed_with_the_reasons() {
    let text = said(advise(&["--for", "far", "--idempotent", "key", "--deadline", "5s"]).env("COLUMNS", "100"));
    assert!(text.starts_with("retry with exponential base=200ms cap=10s "), "{text}");
    assert!(text.contains("\n  idempotent key: "), "{text}");
    assert!(text.contains("\n  transient not specified: "), "{text}");
    assert!(text.contains("\n  deadline 5s: "), "{text}");
    assert!(!text.contains("Pareto-optimal"), "nothing to simulate: {text}");
}

#[test]
fn an_operation_that_must_not_be_retried_has_no_policy() {
    for (args, verdict) in [
        (&["--transient", "no"][..], "do-not-retry"),
        (&["--idempotent", "no"], "do-not-retry"),
        (&["--deadline", "20ms"], "hedge"),
    ] {
        let document = json(args);
        assert_eq!(
            (&document["recommendation"], &document["policy"]),
            (&Value::from(verdict), &Value::Null),
            "{args:?}"
        );
        assert!(said(&mut advise(args)).starts_with("do not retry"), "{args:?}");
    }
}

#[test]
fn a_fleet_gets_the_pareto_optimal_policies() {
    let document = json(&FLEET);
    assert_eq!((&document["schema"], &document["seed"]), (&Value::from("stagger.advise/1"), &Value::from(1)));
    assert_eq!((&document["guards"], &document["guard_trial"]), (&Value::Array(Vec::new()), &Value::Null));
    let front = &document["pareto_front"];
    assert_eq!((&front["min_recovery_s"], &front["simulated_clients"]), (&Value::from(20.0), &Value::from(2_000)));
    let candidates = front["candidates"].as_array().unwrap();
    let best: Vec<_> = candidates.iter().filter(|candidate| candidate["recommended"] == true).collect();
    let [best] = best[..] else { panic!("{best:?}") };
    assert_eq!(best["policy"], document["policy"]["line"]);
    let text = said(advise(&FLEET).env("COLUMNS", "160"));
    let rows = text.lines().filter(|line| line.contains(" spread=") && line.ends_with('%')).count();
    assert_eq!(rows, candidates.len(), "{text}");
    assert_eq!(text.matches("\n=> ").count(), 1, "{text}");
}

#[test]
fn recommended_guards_are_part_of_the_code() {
    let calls = ["--for", "near", "--clients", "5k", "--capacity", "1k/s", "--deadline", "2s", "--outage", "0s"];
    let document = json(&calls);
    let guards = document["guards"][0].as_str().unwrap();
    let trial = &document["guard_trial"];
    assert!(trial["with"]["success_ratio"].as_f64() > trial["without"]["success_ratio"].as_f64(), "{trial}");
    let policy = &document["policy"];
    let (toml, rust) = (policy["toml"].as_str().unwrap(), policy["rust"].as_str().unwrap());
    assert!(toml.contains(&format!("\n# with guards in each process: {guards}\n")), "{toml}");
    assert!(rust.starts_with("Retrier::new(policy!(") && rust.contains(")).b"), "{rust}");
    let text = said(advise(&calls).env("COLUMNS", "100"));
    assert!(
        text.split_whitespace().collect::<Vec<_>>().join(" ").contains(&format!("guarded in each process by {guards}"))
            && text.contains(rust),
        "{text}"
    );
}

/// Runs a printed command with `--json`, and returns the runs of each row.
#[track_caller]
fn rows(command: &Value) -> Vec<Vec<Value>> {
    let words = shlex::split(command.as_str().expect("a command")).expect("a quoted command");
    assert_eq!(words[0], "stagger");
    let document: Value = serde_json::from_str(&said(stagger(&words[1..]).arg("--json"))).expect("valid JSON");
    let runs = |row: &Value| row["runs"].as_array().expect("runs").clone();
    document["strategies"].as_array().expect("rows").iter().map(runs).collect()
}

fn mean(runs: &[Value], figure: &str) -> f64 {
    runs.iter().map(|run| run[figure].as_f64().expect("a number")).sum::<f64>() / runs.len() as f64
}

#[track_caller]
fn assert_close(told: &Value, simulated: f64) {
    assert!((told.as_f64().expect("a number") - simulated).abs() < 1e-6, "told {told}, simulated {simulated}");
}

#[test]
fn the_printed_command_gives_the_figures_of_the_policy() {
    for args in [
        &["--for", "reconnecting", "--clients", "100", "--capacity", "5/s"][..],
        &["--for", "background", "--clients", "300", "--capacity", "30/s", "--outage", "5s", "--seed", "9"],
        &["--for", "serverless", "--clients", "500", "--capacity", "100/s", "--outage", "0s"],
        &["--for", "interactive", "--clients", "200", "--capacity", "100/s", "--deadline", "60s"],
        &["--for", "near", "--clients", "50k", "--capacity", "10k/s", "--deadline", "3s", "--outage", "1s"],
    ] {
        let document = json(args);
        let front = &document["pareto_front"];
        let best = front["candidates"].as_array().unwrap().iter().find(|it| it["recommended"] == true).unwrap();
        let outages = best["by_outage"].as_array().unwrap();
        let rows = rows(&front["command"]);
        assert_eq!(rows.len(), outages.len());
        for (runs, told) in rows.iter().zip(outages) {
            assert_eq!(Value::from(runs.len()), front["runs"]);
            // A larger fleet is simulated in proportion.
            let scale = if args.contains(&"50k") { 50_000.0 / mean(runs, "clients") } else { 1.0 };
            assert_close(&told["peak_1s"], scale * mean(runs, "peak_1s"));
            assert_close(&told["attempts_per_client"], mean(runs, "attempts_per_client"));
            assert_close(&told["recovered_ratio"], mean(runs, "connected") / mean(runs, "clients"));
            if !told["recovered_p99_s"].is_null() {
                assert_close(&told["recovered_p99_s"], mean(runs, "t99_s") - told["outage_s"].as_f64().unwrap());
            }
        }
    }
}

#[test]
fn the_printed_command_gives_the_figures_of_the_guards() {
    for args in [
        &["--for", "near", "--clients", "5k", "--capacity", "1k/s", "--deadline", "2s", "--outage", "0s"][..],
        &[
            "--for",
            "near",
            "--clients",
            "2k",
            "--capacity",
            "333/s",
            "--deadline",
            "1s",
            "--outage",
            "0s",
            "--seed",
            "5",
        ],
        // Too few for guards; the served share is told all the same, of an outage that begins at 20 s.
        &["--for", "interactive", "--clients", "200", "--capacity", "100/s", "--outage", "12s", "--deadline", "30s"],
    ] {
        let document = json(args);
        let trial = &document["guard_trial"];
        let rows = rows(&trial["command"]);
        let entries = [&trial["without"], &trial["with"]];
        assert_eq!(rows.len(), 1 + document["guards"].as_array().unwrap().len());
        for (runs, told) in rows.iter().zip(entries) {
            assert_close(&told["success_ratio"], mean(runs, "success_ratio"));
            match &told["recovery_s"] {
                Value::Null => assert!(runs.iter().any(|run| run["recovery_s"].is_null())),
                told => assert_close(told, mean(runs, "recovery_s")),
            }
        }
    }
}

#[test]
fn a_policy_whose_delays_do_not_grow_is_constant() {
    let document = json(&["--for", "interactive", "--clients", "500", "--capacity", "100/s", "--outage", "0s"]);
    let candidates = document["pareto_front"]["candidates"].as_array().unwrap();
    let policies = candidates.iter().map(|it| it["policy"].as_str().unwrap());
    let mut constant = 0;
    for policy in policies {
        let value = |name: &str| policy.split(' ').find_map(|word| word.strip_prefix(name));
        assert!(value("base=") != value("cap=") || value("base=").is_none(), "{policy}");
        constant += u32::from(policy.starts_with("constant ") || policy.starts_with("uniform "));
        assert!(!policy.starts_with("constant ") || value("multiplier=").is_none(), "{policy}");
    }
    assert!(constant > 0, "{candidates:?}");
}

#[test]
fn every_simulated_outage_has_its_figures() {
    let document = json(&["--for", "reconnecting", "--clients", "200", "--capacity", "10/s"]);
    let front = &document["pareto_front"];
    let judged = front["outages_s"].as_array().unwrap();
    for usual in [0.0, 5.0, 30.0, 120.0, 600.0, 750.0] {
        assert!(judged.contains(&Value::from(usual)), "{usual}: {judged:?}");
    }
    for candidate in front["candidates"].as_array().unwrap() {
        let each = candidate["by_outage"].as_array().unwrap();
        let peaks = each.iter().map(|outage| outage["peak_1s"].as_f64().unwrap());
        assert_eq!(candidate["peak_1s"].as_f64(), peaks.reduce(f64::max), "the peak is the highest: {candidate}");
        assert!(each.len() >= judged.len() && judged.len() > 6, "{candidate}");
    }
}

#[test]
fn all_forms_of_the_policy_are_equivalent() {
    let document = json(&FLEET);
    let policy = &document["policy"];
    let line = policy["line"].as_str().unwrap();
    let files = Files::new();
    let path = files.write("policy.toml", policy["toml"].as_str().unwrap());
    let plan = |policy: &str| said(stagger(["plan", "--json", "--policy"]).arg(policy));
    assert_eq!(plan(&format!("@{}", path.display())), plan(line));
    assert!(policy["rust"].as_str().unwrap().starts_with("policy!("), "{policy}");
}

#[test]
fn without_a_terminal_there_are_no_prompts() {
    let seen = see_with_input(&mut advise(&["--for", "near"]), b"no\n");
    assert!(seen.exits(0).stderr.is_empty() && seen.stdout.starts_with("retry"), "{seen:#?}");
}

#[test]
fn the_same_seed_gives_the_same_advice() {
    assert_eq!(said(&mut advise(&FLEET)), said(&mut advise(&FLEET)));
    let document = json(&[&FLEET[..], &["--seed", "7"]].concat());
    assert_eq!(document["seed"], 7);
}

#[test]
fn output_fits_the_terminal() {
    for columns in ["40", "60", "80", "120"] {
        let text = said(advise(&FLEET).env("COLUMNS", columns));
        // The code after this is not wrapped, so that it can be pasted.
        let (wrapped, _) = text.split_once("\nTOML\n").unwrap();
        let widest = wrapped.lines().map(|line| line.chars().count()).max();
        assert!(widest <= columns.parse().ok(), "{columns}: {widest:?}\n{text}");
    }
    assert!(said(advise(&FLEET).env("LANG", "C")).is_ascii());
}

#[test]
fn invalid_input_is_rejected_with_a_remedy() {
    for (args, want) in [
        (&["--clients", "many"][..], "--clients: invalid value `many`"),
        (&["--capacity", "0/s"], "--capacity: invalid value `0/s`"),
        (&["--outage", "forever"], "--outage: invalid value `forever`"),
        (&["--clients", "100", "--capacity", "1/s", "--outage", "100h"], "horizon"),
    ] {
        let seen = see(&mut advise(args));
        assert!(seen.exits(2).stdout.is_empty(), "{seen:#?}");
        seen.says(want);
    }
}
