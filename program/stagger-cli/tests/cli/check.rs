//! Tests of `stagger check`, run as a program.

use std::process::Command;

use serde_json::Value;
use stagger::profile::Profile;

use crate::support::{Files, run_script, see, see_with_input, stagger};

fn check(args: &[&str]) -> Command {
    let mut command = stagger(["check"]);
    command.args(args);
    command
}

/// Returns the output of a command that must exit with this code.
#[track_caller]
fn said(command: &mut Command, code: i32) -> String {
    let seen = see(command);
    assert!(seen.exits(code).stderr.is_empty(), "{seen:#?}");
    seen.stdout
}

#[track_caller]
fn json(args: &[&str], code: i32) -> Value {
    let text = said(check(args).arg("--json"), code);
    assert_eq!(text.lines().count(), 1, "{text}");
    serde_json::from_str(&text).expect("it is JSON")
}

/// Returns the codes of the findings of the first policy, or of the log.
fn codes(document: &Value) -> Vec<&str> {
    let findings = document["log"]["findings"].as_array().or(document["policies"][0]["findings"].as_array());
    findings.into_iter().flatten().filter_map(|finding| finding["rule"].as_str()).collect()
}

const FLEET: [&str; 6] = ["--for", "reconnecting", "--clients", "10k", "--capacity", "500/s"];

#[test]
fn findings_look_like_compiler_diagnostics() {
    let text = said(check(&["socket.io"]).args(FLEET).env("COLUMNS", "100"), 1);
    assert!(
        text.starts_with(
            "socket.io: exponential base=1s cap=5s multiplier=2 jitter=socket.io max-attempts=inf stable-after=0s\n\
             warning[S002]: jitter is lost at the cap\n  \
             from retry 5 on every client waits exactly 5s\n  \
             share of clients before that: retry 3: 30%, retry 4: 90%\n  \
             why: the cap is applied after the random draw"
        ),
        "{text}"
    );
    let help = "\n  help: spread=20s base=20s cap=40s (it delays every single loss too: by 10s on average; recovery\n    \
                takes 1.4 times as long after an outage of 1m; or let the server assign reservations: Admission)\n";
    assert!(text.contains(help), "{text}");
    let fixed = "fixed: exponential base=20s cap=40s multiplier=2 jitter=full spread=20s max-attempts=inf";
    assert!(text.contains(&format!("\n{fixed}")), "{text}");
    assert!(text.ends_with("\n4 warnings, 1 note; for details: stagger check --explain CODE\n"), "{text}");
}

#[test]
fn the_fixed_policy_has_no_findings() {
    let document = json(&[&["socket.io"][..], &FLEET].concat(), 1);
    let fixed = document["policies"][0]["fixed"].as_str().unwrap();
    let text = said(check(&[fixed]).args(FLEET), 0);
    assert!(text.ends_with("\nno findings\n"), "{text}");
    for finding in document["policies"][0]["findings"].as_array().unwrap() {
        let settings = finding["help"]["settings"].as_str().unwrap();
        let pasted = format!("socket.io {settings}");
        let after = json(&[&[&*pasted][..], &FLEET].concat(), i32::from(settings.is_empty()).max(1));
        assert!(!codes(&after).contains(&finding["rule"].as_str().unwrap()), "{pasted}");
    }
}

#[test]
fn without_a_policy_the_default_of_run_is_checked() {
    let text = said(&mut check(&[]), 0);
    assert!(
        text.starts_with("exponential base=100ms cap=30s multiplier=2 jitter=full max-attempts=4\nno findings\n"),
        "{text}"
    );
    assert!(text.contains("note: no deployment context given"), "{text}");
    assert!(!said(&mut check(&["--for", "far"]), 0).contains("note: "), "the context is known");
}

/// A client of a long-lived connection that gives up after four attempts never comes back.
#[test]
fn every_profile_of_a_connection_is_checked_as_one() {
    let fleet = ["--clients", "10k", "--capacity", "500/s"];
    let seen = |args: &[&str]| see(&mut check(args)).stdout;
    for profile in Profile::all() {
        let (name, alone) = (profile.name(), ["--json"]);
        let assumed = seen(&[&[name][..], &fleet, &alone].concat());
        let stated = seen(&[&[name, "--for", "reconnecting"][..], &fleet, &alone].concat());
        assert!(assumed == stated || !profile.is_connection(), "{name}: {assumed}");
        let says =
            seen(&[&[name][..], &fleet].concat()).contains(&format!("checked as --for reconnecting: {name} is for"));
        assert_eq!(says, profile.is_connection(), "{name}");
    }
    let files = Files::new();
    let file = files.write("policy", "Socket_IO spread=5s\n");
    let found = seen(&[&["-p", &*format!("@{}", file.display())][..], &fleet].concat());
    assert!(found.contains("socket.io is for connections") && found.contains("max-attempts=inf"), "{found}");
    let given = seen(&[&["socket.io", "--for", "far"][..], &fleet].concat());
    assert!(!given.contains("is for connections") && given.contains("S011"), "{given}");
}

#[test]
fn several_policies_are_checked_and_flags_override_each() {
    let document = json(&["curl", "phoenix", "-p", "default", "-n", "3"], 1);
    let policies = document["policies"].as_array().unwrap();
    let names: Vec<_> = policies.iter().map(|policy| policy["name"].as_str().unwrap()).collect();
    assert_eq!(names, ["default", "curl", "phoenix"]);
    assert!(policies.iter().all(|policy| policy["policy"].as_str().unwrap().contains("max-attempts=3")));
    let text = said(check(&["stop", "curl"]).env("COLUMNS", "200"), 1);
    assert!(text.starts_with("stop\nno findings\n\ncurl: exponential base=1s"), "{text}");
}

#[test]
fn each_context_flag_reaches_its_rule() {
    for (args, code) in [
        (&["--for", "interactive", "-n", "9"][..], "S010"),
        (&["--clients", "2k"], "S016"),
        (&["--rps", "200/s"], "S016"),
        (&["--clients", "10k", "--capacity", "500/s"], "S004"),
        (&["--within", "3s"], "S012"),
        (&["--lease", "3s"], "S012"),
        (&["--invocation", "3s"], "S012"),
        (&["--within", "30s", "--attempt-timeout", "10s"], "S013"),
        (&["--retry-after", "10m"], "S014"),
        (&["--tick", "2s"], "S009"),
        (&["--layers", "3"], "S017"),
        (&["--rps", "9/s", "--capacity", "10/s", "--attempt-timeout", "1s"], "S025"),
        (&["--backlog", "9", "--capacity", "2/s", "--attempt-timeout", "1s"], "S026"),
        (&["--idempotent", "no"], "S019"),
    ] {
        let document = json(&[&["-d", "1s", "-n", "5"][..], args].concat(), 1);
        assert!(codes(&document).contains(&code), "{args:?}: {document}");
    }
    for (flag, limit) in [("--within", "deadline"), ("--lease", "lease"), ("--invocation", "invocation")] {
        let document = json(&["-d", "1s", "-n", "5", flag, "3s"], 1);
        let fact = &document["policies"][0]["findings"][0]["facts"][0];
        assert_eq!(fact, &format!("the worst case is 15s; the {limit} is 3s"), "{flag}");
    }
    assert_eq!(codes(&json(&["--rps", "200/s", "--budget"], 0)), [""; 0]);
    let calls = ["-d", "100ms", "-n", "4", "--for", "near", "--rps", "180/s", "--capacity", "200/s", "--down", "8s"];
    let facts = json(&calls, 1)["policies"][0]["findings"][0]["facts"].to_string();
    assert!(facts.contains("after stalls of 4s, 8s and 16s"), "{facts}");
}

#[test]
fn a_named_budget_is_checked_at_the_given_rates() {
    let with = |budget: &str, code| {
        let args = ["-n", "4", "-d", "100ms", "--cap", "2s", "--for", "near", "--rps", "180/s", "--capacity", "200/s"];
        json(&[&args[..], &["--clients", "2", budget]].concat(), code)
    };
    let document = with("--budget=window", 1);
    let finding = &document["policies"][0]["findings"][0];
    assert_eq!(finding["rule"], "S016");
    let facts = finding["facts"].to_string();
    assert!(
        facts.contains("window never recovers") && facts.contains("stagger simulate outage --rate 180/s"),
        "{facts}"
    );
    // What is recommended is accepted.
    let (_, recommended) = finding["help"]["advice"].as_str().unwrap().rsplit_once(' ').unwrap();
    assert!(recommended.starts_with("--budget="), "{finding}");
    with(recommended, 0);
    let seen = see(&mut check(&["--budget=tokns"]));
    assert!(seen.exits(2).stderr.contains("tokens, window, throttle"), "{seen:#?}");
}

/// The command that the finding names must show what the finding says.
#[test]
fn the_command_of_a_budget_shows_what_the_finding_says() {
    let args = ["-n", "4", "-d", "100ms", "--cap", "2s", "--for", "near", "--rps", "180/s", "--capacity", "200/s"];
    let document = json(&[&args[..], &["--clients", "2"]].concat(), 1);
    let facts = document["policies"][0]["findings"][0]["facts"].as_array().unwrap();
    let facts: Vec<&str> = facts.iter().map(|fact| fact.as_str().unwrap()).collect();
    let command = facts.iter().find_map(|fact| fact.strip_prefix("simulated by: stagger ")).unwrap();
    let (flags, rest) = command.split_once(" -p '").unwrap();
    let (policy, _) = rest.split_once('\'').unwrap();
    let mut simulate = stagger(flags.split(' '));
    simulate.args(["-p", policy]).env("COLUMNS", "200");
    let table = see(&mut simulate).stdout;
    let after = facts.iter().find_map(|fact| fact.split("tokens recovers after ").nth(1)).unwrap();
    let after = after.replace(" and ", ", ");
    for (down, after) in ["2s", "15s", "1m"].into_iter().zip(after.split(", ")) {
        let row = table.lines().find(|line| line.contains(&format!("tokens, down={down} "))).unwrap();
        assert!(row.contains(&format!(" {after} ")), "{after}: {row}");
    }
    assert!(table.lines().any(|line| line.contains("none, down=2s ") && line.contains("never")), "{table}");
}

#[test]
fn a_log_without_delays_is_an_error() {
    for text in ["", "\n\n", "# nothing\n"] {
        let seen = see_with_input(&mut check(&["--log", "-"]), text.as_bytes());
        assert!(seen.exits(2).stderr.contains("standard input contains no delays"), "{seen:#?}");
    }
}

#[test]
fn the_log_line_of_a_common_client_is_read() {
    let text = "Attempt 1 failed. Retrying in 0.134s\nAttempt 2 failed. Retrying in 0.2s\n";
    let seen = see_with_input(&mut check(&["--log", "-"]), text.as_bytes());
    assert!(seen.exits(3).stdout.starts_with("standard input: 2 delays\n"), "{seen:#?}");
}

#[test]
fn a_log_that_is_too_short_to_judge_is_said_in_every_format() {
    const WHY: &str =
        "too few to judge: 5 delays, and 8 before the same retry are needed to say whether they are equal";
    let five = "5s a 1\n5s b 1\n5s c 1\n5s d 1\n5s e 1\n";
    let run = |flags: &[&str], text: &str| {
        let flags = [&["--log", "-"], flags].concat();
        see_with_input(check(&flags).env("COLUMNS", "200"), text.as_bytes())
    };
    let (text, json) = (run(&[], five), run(&["--json"], five));
    assert!(text.exits(3).stdout.contains(WHY) && !text.stdout.contains("no findings"), "{text:#?}");
    let document: Value = serde_json::from_str(&json.exits(3).stdout).unwrap();
    assert_eq!(document["log"]["too_few"], WHY);
    let sarif: Value = serde_json::from_str(&run(&["--sarif"], five).exits(3).stdout).unwrap();
    let notification = &sarif["runs"][0]["invocations"][0]["toolExecutionNotifications"][0];
    assert_eq!(notification["message"]["text"], format!("standard input: {WHY}"));
    let junit = run(&["--junit"], five);
    assert!(junit.exits(3).stdout.contains("<skipped message=\"too few to judge: 5 delays"), "{junit:#?}");
    let github = run(&["--github"], five);
    assert_eq!(github.exits(3).stdout, format!("::warning title=standard input::{WHY}\n"));
    let page = run(&["--output", "-"], five);
    assert!(page.exits(3).stdout.contains("Too few to judge: 5 delays"), "{page:#?}");
    // Delays of different retries are not equal for want of jitter.
    let apart = run(&[], "1s a 1\n2s a 2\n4s a 3\n1s b 1\n2s b 2\n4s b 3\n1s c 1\n2s c 2\n4s c 3\n");
    assert!(apart.exits(3).stdout.contains("9 delays, at most 3 before the same retry"), "{apart:#?}");
    // What is found in a short log is found.
    run(&[], "5s a 60\n").exits(1);
    run(&["--allow", "L004"], "5s a 60\n").exits(0);
    let eight: String = (0..8).map(|n| format!("{n}.{n}7 c{n} 1\n")).collect();
    assert!(run(&[], &eight).exits(0).stdout.ends_with("no findings\n"));
}

#[test]
fn an_estimate_requires_clients_and_capacity() {
    let document = json(&[&["exponential base=500ms cap=30s"][..], &FLEET].concat(), 1);
    let estimate = &document["policies"][0]["estimate"];
    assert_eq!(&estimate["min_recovery_s"], &Value::from(20.0));
    let [attempts, gave_up] = ["attempts_per_client", "gave_up_ratio"].map(|key| estimate[key].as_f64().unwrap());
    assert!((attempts - 2.85).abs() < 0.01 && (gave_up - 0.80).abs() < 0.01, "{attempts} {gave_up}");
    assert_eq!(json(&[], 0)["policies"][0]["estimate"], Value::Null);
}

#[test]
fn allowed_findings_are_neither_reported_nor_fixed() {
    let document =
        json(&["socket.io", "--for", "reconnecting", "--allow", "S006,s002", "--allow", "first-delay-in-step"], 1);
    assert_eq!(codes(&document), ["S015"]);
    assert!(document["policies"][0]["fixed"].as_str().unwrap().contains("cap=5s multiplier=2 jitter=socket.io"));
    assert_eq!(codes(&json(&["curl", "--allow", "no-jitter"], 0)), [""; 0]);
}

#[test]
fn output_fits_the_terminal_and_has_color_only_if_enabled() {
    for columns in ["40", "60", "80", "120"] {
        for args in
            [&["socket.io", "websockets", "--clients", "10k", "--capacity", "500/s"][..], &["--explain", "S018"]]
        {
            let text = see(check(args).env("COLUMNS", columns)).stdout;
            let widest = text.lines().map(|line| line.chars().count()).max();
            assert!(widest <= columns.parse().ok(), "{columns}: {widest:?}\n{text}");
        }
    }
    let plain = said(&mut check(&["curl"]), 1);
    assert!(!plain.contains('\u{1b}'), "{plain}");
    let colored = said(check(&["curl"]).env("CLICOLOR_FORCE", "1"), 1);
    assert!(colored.contains("\u{1b}[33mwarning[S001]\u{1b}[0m: no jitter"), "{colored:?}");
}

#[test]
fn a_locale_without_utf_8_gets_ascii() {
    for args in [&["grpc-a6", "--within", "1s", "--attempt-timeout", "1s"][..], &["--rules"], &["--explain", "S004"]] {
        let text = see(check(args).env("LC_ALL", "C")).stdout;
        assert!(text.is_ascii() && !text.is_empty(), "{text}");
    }
}

#[test]
fn every_rule_is_listed_and_explained() {
    let text = said(check(&["--rules"]).env("COLUMNS", "120"), 0);
    let list: Value = serde_json::from_str(&said(&mut check(&["--rules", "--json"]), 0)).unwrap();
    assert_eq!(list["schema"], "stagger.rules/1");
    for rule in list["rules"].as_array().unwrap() {
        let [code, name, title] = ["rule", "name", "title"].map(|key| rule[key].as_str().unwrap());
        assert!(
            text.lines().any(|line| line.starts_with(code) && line.contains(title) && line.ends_with(name)),
            "{text}"
        );
        let explained = said(&mut check(&["--explain", code]), 0);
        assert!(explained.starts_with(&format!("{code} {name}: ")), "{explained}");
        assert_eq!(said(&mut check(&["--explain", name]), 0), explained);
    }
}

#[test]
fn a_log_of_run_is_compared_with_the_policy_that_it_names() {
    let files = Files::new();
    let log = files.path("log.ndjson");
    for jitter in ["full", "none"] {
        let _ = std::fs::remove_file(&log);
        for seed in 1..=8 {
            let seed = seed.to_string();
            let flags =
                ["--jitter", jitter, "--seed", &seed, "-n", "3", "--log", "json", "--log-file", log.to_str().unwrap()];
            see(&mut run_script(&flags, "exit 1")).exits(1);
        }
        let code = i32::from(jitter == "none");
        let document = json(&["--log", log.to_str().unwrap()], code);
        assert_eq!(document["log"]["delays"], 16);
        assert!(document["log"]["policy"].as_str().unwrap().contains(&format!("jitter={jitter} max-attempts=3")));
        assert_eq!(codes(&document), if code == 0 { vec![] } else { vec!["L001"] });
    }
    let against = json(&["--log", log.to_str().unwrap(), "-p", "constant base=1ms"], 1);
    assert_eq!(codes(&against), ["L001", "L002"]);
}

#[test]
fn delays_that_the_command_requested_are_counted_and_skipped() {
    let files = Files::new();
    let log = files.path("log.ndjson");
    let flags = ["-n", "2", "--log", "json", "--log-file", log.to_str().unwrap()];
    see(&mut run_script(&flags, "echo retry-after=50ms > $STAGGER_ADVICE; exit 1")).exits(1);
    let document = json(&["--log", log.to_str().unwrap()], 3);
    assert_eq!((&document["log"]["delays"], &document["log"]["skipped_hints"]), (&Value::from(0), &Value::from(1)));
}

#[test]
fn a_log_can_be_read_from_standard_input() {
    let seen = see_with_input(check(&["--log", "-"]).env("COLUMNS", "200"), &b"5s a\n".repeat(60));
    let text = &seen.exits(1).stdout;
    assert!(text.starts_with("standard input: 60 delays of 1 client\nnot compared with a policy; give one"), "{text}");
    assert!(text.contains("warning[L004]: retries do not end\n  line 60: retry 60 of a\n"), "{text}");
}

#[test]
fn invalid_input_is_rejected_with_a_remedy() {
    let files = Files::new();
    let [bad, binary] = [files.write("bad", "1s\nsoon\n"), files.write("binary", b"1s\n\xff\n")]
        .map(|p| p.to_str().unwrap().to_owned());
    for (args, code, words) in [
        (&["--for", "batch"][..], 2, "interactive, serverless, background"),
        (&["--clients", "0"], 2, "a whole number of at least 1"),
        (&["--capacity", "0/s"], 2, "500/s"),
        (&["--capacity", "NaN"], 2, "500/s"),
        (&["--rps", "-1"], 2, ""),
        (&["--within", "inf"], 2, "omit the flag for no limit"),
        (&["--layers", "0"], 2, "--layers"),
        (&["--idempotent", "maybe"], 2, "yes, key or no"),
        (&["--explain", "S999"], 2, "`stagger check --rules` lists all rules"),
        (&["--allow", "S999"], 2, "`stagger check --rules` lists all rules"),
        (&["exponental"], 2, "exponential"),
        (&["--log", &bad], 2, "line 2: `soon`"),
        (&["--log", &binary], 2, "line 2: not valid UTF-8"),
        (&["--log", "/nonexistent"], 125, "cannot read /nonexistent"),
        (&["--log", &bad, "curl"], 2, "--log"),
        (&["--log", &bad, "--clients", "9"], 2, "--log"),
    ] {
        see(&mut check(args)).exits(code).prints("").says(words);
    }
}
