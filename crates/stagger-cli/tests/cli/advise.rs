//! `stagger advise` as a user meets it.

use std::process::Command;

use serde_json::Value;

use crate::support::{Files, said, see, see_with_input, stagger};

const FLEET: [&str; 6] = ["--for", "reconnecting", "--clients", "2k", "--capacity", "100/s"];

fn advise(args: &[&str]) -> Command {
    let mut command = stagger(["advise"]);
    command.args(args);
    command
}

#[track_caller]
fn json(args: &[&str]) -> Value {
    let text = said(advise(args).arg("--json"));
    assert_eq!(text.lines().count(), 1, "{text}");
    serde_json::from_str(&text).expect("it is JSON")
}

#[test]
fn the_answers_that_decided_stand_beside_the_policy() {
    let text = said(advise(&["--for", "far", "--idempotent", "key", "--deadline", "5s"]).env("COLUMNS", "100"));
    assert!(text.starts_with("retry, by this policy:\n  exponential base=200ms cap=10s "), "{text}");
    assert!(text.contains("\n  idempotent key: send the same idempotency key with every attempt\n"), "{text}");
    assert!(text.contains("\n  transient not said: assuming yes"), "{text}");
    assert!(text.contains("\n  deadline 5s: no attempt starts later"), "{text}");
    assert!(!text.contains("if all lose their connection"), "nothing could be computed: {text}");
}

#[test]
fn what_must_not_be_retried_has_no_policy() {
    for (args, verdict) in [
        (&["--transient", "no"][..], "do-not-retry"),
        (&["--idempotent", "no"], "do-not-retry"),
        (&["--deadline", "20ms"], "hedge"),
    ] {
        let document = json(args);
        assert_eq!((&document["verdict"], &document["policy"]), (&Value::from(verdict), &Value::Null), "{args:?}");
        assert!(said(&mut advise(args)).starts_with("do not retry"), "{args:?}");
    }
}

#[test]
fn a_fleet_gets_the_policies_that_nothing_beats() {
    let document = json(&FLEET);
    assert_eq!((&document["schema"], &document["seed"]), (&Value::from("stagger.advise/1"), &Value::from(1)));
    assert_eq!(document["guards"], Value::from(vec!["budget", "breaker"]));
    let front = &document["front"];
    assert_eq!((&front["recovery_at_least_s"], &front["simulated_clients"]), (&Value::from(20.0), &Value::from(2_000)));
    let candidates = front["candidates"].as_array().unwrap();
    let best: Vec<_> = candidates.iter().filter(|candidate| candidate["best"] == true).collect();
    let [best] = best[..] else { panic!("{best:?}") };
    assert_eq!(best["policy"], document["policy"]["line"]);
    let text = said(advise(&FLEET).env("COLUMNS", "160"));
    let rows = text.lines().filter(|line| line.contains(" spread=") && line.contains("%  ")).count();
    assert_eq!(rows, candidates.len(), "{text}");
    assert_eq!(text.matches("\n=> ").count(), 1, "{text}");
}

#[test]
fn each_form_of_the_policy_is_the_same_policy() {
    let document = json(&FLEET);
    let policy = &document["policy"];
    let line = policy["line"].as_str().unwrap();
    let files = Files::new();
    let path = files.write("policy.toml", policy["toml"].as_str().unwrap());
    let plan = |policy: &str| said(stagger(["plan", "--json", "--policy"]).arg(policy));
    assert_eq!(plan(&format!("@{}", path.display())), plan(line));
    assert!(policy["rust"].as_str().unwrap().starts_with("policy!(exponential("), "{policy}");
}

#[test]
fn nothing_is_asked_where_nobody_sits() {
    let seen = see_with_input(&mut advise(&["--for", "near"]), b"no\n");
    assert!(seen.exits(0).stderr.is_empty() && seen.stdout.starts_with("retry"), "{seen:#?}");
}

#[test]
fn the_same_seed_says_the_same() {
    assert_eq!(said(&mut advise(&FLEET)), said(&mut advise(&FLEET)));
    let document = json(&[&FLEET[..], &["--seed", "7"]].concat());
    assert_eq!(document["seed"], 7);
}

#[test]
fn it_fits_the_terminal() {
    for columns in ["40", "60", "80", "120"] {
        let text = said(advise(&FLEET).env("COLUMNS", columns));
        // What is to be pasted is not broken.
        let (told, _) = text.split_once("\nTOML\n").unwrap();
        let widest = told.lines().map(|line| line.chars().count()).max();
        assert!(widest <= columns.parse().ok(), "{columns}: {widest:?}\n{text}");
    }
    assert!(said(advise(&FLEET).env("LANG", "C")).is_ascii());
}

#[test]
fn what_makes_no_sense_says_what_would() {
    for (args, want) in [
        (&["--clients", "many"][..], "--clients: invalid value `many`; expected a whole number"),
        (&["--capacity", "0/s"], "--capacity: invalid value `0/s`; expected a rate above 0"),
        (&["--outage", "forever"], "--outage: invalid value `forever`; expected a duration"),
        (&["--clients", "100", "--capacity", "1/s", "--outage", "100h"], "raise the horizon"),
    ] {
        let seen = see(&mut advise(args));
        assert!(seen.exits(2).stdout.is_empty(), "{seen:#?}");
        seen.says(want);
    }
}
