//! End-to-end tests of `stagger plan`.

use std::fs;
use std::process::Command;

use serde_json::Value;

use crate::support::{Files, Running, Seen, said, see, stagger};

fn plan(args: &[&str]) -> Command {
    let mut command = stagger(["plan"]);
    command.args(args);
    command
}

const SIX: [&str; 8] = ["--base", "1s", "--cap", "30s", "--jitter", "full", "-n", "6"];

#[test]
fn a_plan_has_policy_table_note_and_plot() {
    let text = said(&mut plan(&SIX));
    let lines: Vec<&str> = text.lines().collect();
    assert_eq!(lines[0], "exponential base=1s cap=30s multiplier=2 jitter=full max-attempts=6");
    assert_eq!(lines[1], "retry   delay    mean   elapsed: p50     p99   max");
    assert!(lines[6].starts_with("    5   0–16s      8s"), "{}", lines[6]);
    assert!(lines[7].starts_with("note: every client makes its first retry within 1s"), "{}", lines[7]);
    assert!(text.contains("Delay before each retry\n"), "{text}");
    assert!(text.contains("░░ min to max   ⠒⠒ median   a b c drawn clients\n"), "{text}");
}

#[test]
fn plan_and_run_have_the_same_default_policy() {
    assert!(
        said(&mut plan(&[])).starts_with("exponential base=100ms cap=30s multiplier=2 jitter=full max-attempts=4\n")
    );
}

#[test]
fn a_pipe_gets_no_escapes_unless_clicolor_force_is_set_without_no_color() {
    let has_escapes = |command: &mut Command| said(command).contains('\u{1b}');
    assert!(!has_escapes(&mut plan(&SIX)));
    assert!(has_escapes(plan(&SIX).env("CLICOLOR_FORCE", "1")));
    assert!(!has_escapes(plan(&SIX).env("CLICOLOR_FORCE", "1").env("NO_COLOR", "1")));
}

#[test]
fn without_utf_8_a_plan_is_ascii_that_the_policy_language_accepts() {
    let policy = "exponential base=1s cap=30s jitter=±20% max-attempts=6";
    let text = said(plan(&["-p", policy, "--sample", "200"]).env("LC_ALL", "C"));
    assert!(text.is_ascii(), "{text}");
    let first = text.lines().next().unwrap();
    assert!(first.contains("jitter=+-20%"), "{first}");
    assert!(said(&mut plan(&["-p", first])).contains("jitter=±20%"));
}

#[test]
fn a_plan_fits_the_terminal() {
    for columns in ["40", "80", "120"] {
        let text = said(plan(&["-n", "9", "-T", "20s", "--sample", "200"]).env("COLUMNS", columns));
        let widest = text.lines().map(|line| line.chars().count()).max();
        assert!(widest <= columns.parse().ok(), "{columns}: {widest:?}\n{text}");
    }
}

#[test]
fn json_has_the_forecast_and_with_sample_every_delay() {
    let text = said(plan(&SIX).args(["--sample", "3", "--seed", "9", "--json"]));
    assert_eq!(text.lines().count(), 1);
    let json: Value = serde_json::from_str(&text).unwrap();
    assert_eq!(json["schema"], "stagger.plan/1");
    assert_eq!(json["retries"].as_array().unwrap().len(), 5);
    assert_eq!(json["retries"][4]["delay"]["max_s"], 16.0);
    assert_eq!(json["sample"]["seed"], 9);
    let fit = &json["sample"]["retries"][0]["fit"];
    assert!(fit["reach_from"].as_f64() < fit["reach_to"].as_f64(), "{fit}");
    let series = json["sample"]["series"].as_array().unwrap();
    assert_eq!(series.iter().map(|client| client["delays_s"].as_array().unwrap().len()).collect::<Vec<_>>(), [5; 3]);
}

#[test]
fn a_sample_ends_with_a_verdict() {
    for (jitter, want) in [
        ("full", "verdict: yes: the delays of 1000 clients span their intervals"),
        ("equal", "verdict: yes: the delays of 1000 clients span their intervals"),
        ("decorrelated", "verdict: yes: the delays of 1000 clients span their intervals"),
        ("±20%", "verdict: yes: the delays of 1000 clients span their intervals"),
        ("none", "verdict: no: all 1000 clients wait the same before each retry; add --jitter full"),
    ] {
        let text = said(plan(&["-j", jitter, "--sample", "1000"]).env("COLUMNS", "400"));
        assert!(text.lines().last().unwrap().starts_with(want), "{jitter}: {text}");
    }
}

#[test]
fn a_plan_of_unlimited_attempts_notes_that_it_is_truncated() {
    let text = said(&mut plan(&["-n", "inf"]));
    assert!(text.contains("showing the first 10 retries"), "{text}");
    let longer = said(&mut plan(&["-n", "inf", "--retries", "12"]));
    assert!(longer.lines().any(|line| line.starts_with("   12   ")), "{longer}");
}

#[test]
fn the_svg_is_reproducible_by_seed() {
    let svg = |seed: &str| said(plan(&SIX).args(["--sample", "200", "--svg", "-", "--seed", seed]));
    assert_eq!(svg("3"), svg("3"));
    assert_ne!(svg("3"), svg("4"));
    let parsed = svg("3");
    let parsed = roxmltree::Document::parse(&parsed).unwrap();
    let titles: Vec<_> = parsed
        .descendants()
        .filter(|node| node.attribute("class") == Some("heading"))
        .filter_map(|node| node.text())
        .collect();
    assert_eq!(titles.len(), 4, "{titles:?}");
    let description = parsed.descendants().find(|node| node.has_tag_name("desc")).unwrap().text().unwrap();
    for ranges in [
        "delay before each retry, min to max. retry 1: 0–1s, median 500ms; retry 2: 0–2s",
        "total wait up to \
                    each retry, min to max. retry 1: 0–1s, median 500ms; retry 2: 0–3s",
    ] {
        assert!(description.contains(ranges), "{ranges}: {description}");
    }
}

#[test]
fn an_svg_file_is_written_in_addition_to_the_table() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("plan.svg");
    let text = said(plan(&SIX).arg("--svg").arg(&path));
    assert!(text.contains("elapsed: p50"), "{text}");
    assert!(fs::read_to_string(&path).unwrap().starts_with("<svg xmlns="));
}

#[test]
fn errors_include_the_fix() {
    for (args, code, words) in [
        (&["--json", "--svg", "-"][..], 2, "write the SVG to a file"),
        (&["-n", "20", "--sample", "1000000"], 2, "lower --sample or --retries"),
        (&["--svg", "/nonexistent/plan.svg"], 125, "cannot write /nonexistent/plan.svg"),
        (&["--retries", "0"], 2, "1..=200"),
        (&["--cap", "50ms", "--base", "100ms"], 2, "cap"),
    ] {
        see(&mut plan(args)).exits(code).prints("").says(words);
    }
}

#[test]
fn grpc_export_prints_a_service_config_and_notes_lost_settings() {
    let seen = see(plan(&["-p", "grpc-a6", "--max-elapsed", "1m", "--export", "grpc"]).env("COLUMNS", "200"));
    let json: Value = serde_json::from_str(&seen.exits(0).stdout).unwrap();
    let retries = &json["methodConfig"][0]["retryPolicy"];
    assert_eq!((&retries["maxAttempts"], &retries["initialBackoff"]), (&Value::from(4), &Value::from("0.1s")));
    let notes: Vec<_> = seen.stderr.lines().collect();
    assert!(notes[0].starts_with("note: not exported: max-elapsed=1m: "), "{notes:?}");
    assert!(notes[2].starts_with("note: pass the config to the channel, which retries by itself"), "{notes:?}");
    assert_eq!(notes.len(), 3);
    for columns in ["40", "80"] {
        let seen = see(plan(&["--export", "grpc"]).env("COLUMNS", columns).env("LC_ALL", "C"));
        let widest = seen.stderr.lines().map(str::len).max();
        assert!(seen.stderr.is_ascii() && widest <= columns.parse().ok(), "{seen:#?}");
    }
    see(&mut plan(&["-p", "stop", "--export", "grpc"])).exits(2).prints("").says("omit retryPolicy");
    see(&mut plan(&["--json", "--export", "grpc"])).exits(2).prints("").says("--export");
}

#[test]
fn export_to_proxies_prints_their_fields_and_what_they_cannot_say() {
    let policy = ["-p", "exponential base=100ms cap=1s max-attempts=3 max-elapsed=1m", "--export"];
    for (system, field) in [("envoy", "    num_retries: 2\n"), ("istio", "      attempts: 2\n")] {
        let seen = see(plan(&[&policy[..], &[system]].concat()).env("COLUMNS", "200"));
        let text = &seen.exits(0).stdout;
        assert!(text.contains(field), "{text}");
        let lost = seen.stderr.lines().filter(|note| note.starts_with("note: not exported: ")).count();
        assert_eq!(lost, 3, "jitter, max-elapsed and hints: {}", seen.stderr);
    }
    let unlimited = ["-p", "exponential max-attempts=inf", "--export", "istio"];
    see(&mut plan(&unlimited))
        .exits(2)
        .prints("")
        .says("--export istio: Envoy needs a limit of attempts; set max-attempts");
}

#[test]
fn an_export_has_the_time_limits_and_the_budget_that_are_given() {
    let export = |flags: &[&str]| see(plan(flags).env("COLUMNS", "200"));
    let limits = ["--within", "5s", "--attempt-timeout", "1500ms"];
    let throttle = ["--guards", "throttle max-tokens=50 token-ratio=5%"];
    let share = ["--guards", "concurrent ratio=20% floor=5"];
    let lost = |seen: &Seen, what: &str| seen.stderr.contains(&format!("note: not exported: {what}"));

    let grpc = export(&[&["-p", "grpc-a6", "--export", "grpc"][..], &limits, &throttle].concat());
    let json: Value = serde_json::from_str(&grpc.exits(0).stdout).unwrap();
    assert_eq!(json["methodConfig"][0]["timeout"], "5s");
    assert_eq!(json["retryThrottling"], serde_json::json!({"maxTokens": 50, "tokenRatio": 0.05}));
    assert!(lost(&grpc, "attempt-timeout=1.5s: a channel limits the time of a call"), "{}", grpc.stderr);
    let grpc = export(&[&["-p", "grpc-a6", "--export", "grpc"][..], &share].concat());
    assert!(lost(&grpc, "budget=20% of the active requests, at least 5 at once: gRPC has tokens"), "{}", grpc.stderr);

    for (system, parts) in [
        ("envoy", ["  timeout: 5s\n", "    per_try_timeout: 1.5s\n", "        min_retry_concurrency: 5\n"]),
        ("istio", ["    timeout: 5s\n", "      perTryTimeout: 1s500ms\n", "minRetryConcurrency: 5}"]),
    ] {
        let policy = ["-p", "exponential base=50ms cap=500ms jitter=envoy max-attempts=3", "--export", system];
        let seen = export(&[&policy[..], &limits, &share].concat());
        assert!(parts.iter().all(|part| seen.exits(0).stdout.contains(part)), "{}", seen.stdout);
        assert!(lost(&export(&[&policy[..], &throttle].concat()), "budget=50 tokens"), "{system}");
    }

    see(&mut plan(&["--within", "5s"])).exits(2).prints("").says("--export");
    see(&mut plan(&["--export", "grpc", "--within", "0s"])).exits(2).says("a length above zero");
    see(&mut plan(&["--export", "grpc", "--guards", "breaker"])).exits(2).says("is not a budget");
}

#[test]
fn an_export_of_a_file_has_its_limits_unless_others_are_given() {
    let files = Files::new();
    files.write("a.yaml", "apiVersion: networking.istio.io/v1\nkind: VirtualService\nmetadata: {name: a}\nspec:\n  http:\n  - timeout: 4s\n    retries: {attempts: 2, perTryTimeout: 1s}\n");
    let export = |flags: &[&str]| see(plan(&["a.yaml", "--export", "envoy"]).args(flags).current_dir(files.path(".")));
    let text = export(&[]).exits(0).stdout.clone();
    for part in ["  timeout: 4s\n", "    num_retries: 2\n", "    per_try_timeout: 1s\n"] {
        assert!(text.contains(part), "{part}{text}");
    }
    let text = export(&["--within", "3s", "--guards", "concurrent ratio=0 floor=3"]).exits(0).stdout.clone();
    for part in ["  timeout: 3s\n", "    per_try_timeout: 1s\n", "- max_retries: 3\n"] {
        assert!(text.contains(part), "{part}{text}");
    }
}

#[test]
fn a_closed_pipe_is_not_an_error() {
    let mut running = Running::start(&mut plan(&["--sample", "5000", "--json"]));
    drop(running.child.stdout.take());
    let seen = running.end();
    assert!(seen.exits(0).stderr.is_empty(), "{seen:#?}");
}

#[test]
fn every_profile_is_listed_and_accepted() {
    let list: Value = serde_json::from_str(&said(&mut plan(&["--profiles", "--json"]))).unwrap();
    assert_eq!(list["schema"], "stagger.profiles/1");
    let text = said(&mut plan(&["--profiles"]));
    for profile in list["profiles"].as_array().unwrap() {
        let [name, title, policy] = ["name", "title", "policy"].map(|key| profile[key].as_str().unwrap());
        assert!(text.lines().any(|line| line.starts_with(name) && line.contains(title)), "{name}");
        let shown: Value = serde_json::from_str(&said(&mut plan(&["-p", name, "--json"]))).unwrap();
        assert_eq!(shown["policy"], policy);
    }
    for columns in ["40", "80", "120"] {
        let text = said(plan(&["--profiles"]).env("COLUMNS", columns));
        let widest = text.lines().map(|line| line.chars().count()).max().unwrap();
        assert!(widest <= columns.parse().unwrap(), "{columns}: {text}");
    }
}

#[test]
fn flags_override_a_profile() {
    let text = said(&mut plan(&["-p", "aws_sdk", "-n", "4", "--cap", "5s"]));
    assert!(
        text.starts_with("exponential base=1s cap=5s multiplier=2 jitter=full max-attempts=4 hint=exact\n"),
        "{text}"
    );
}
