//! Tests of `stagger simulate`, run as a program.

use std::collections::BTreeMap;
use std::path::Path;
use std::process::Command;
use std::{env, fs};

use rustix::process::Signal;
use serde_json::Value;

use crate::support::{Files, Running, eventually, see, stagger};

/// A storm whose simulation takes a fraction of a second.
const STORM: [&str; 11] = [
    "--clients",
    "2k",
    "--capacity",
    "200/s",
    "--backlog",
    "50",
    "--down",
    "2s",
    "--compare",
    "socket.io,ours: exponential base=1s cap=30s spread=10s max-attempts=inf",
    "--seeds=2",
];

/// Creates a simulation: of a mass disconnect, unless the first argument names another scenario.
pub(crate) fn simulate(args: &[&str]) -> Command {
    let mut command = stagger(["simulate"]);
    if args.first().is_none_or(|first| first.starts_with('-')) {
        command.arg("reconnect");
    }
    command.args(args).env("COLUMNS", "120");
    command
}

pub(crate) fn storm(args: &[&str]) -> Command {
    let mut command = simulate(&STORM);
    command.args(args);
    command
}

#[track_caller]
pub(crate) fn said(command: &mut Command) -> String {
    let seen = see(command);
    assert!(seen.exits(0).stderr.is_empty(), "{seen:#?}");
    seen.stdout
}

pub(crate) fn json(text: &str) -> Value {
    serde_json::from_str(text).expect("valid JSON")
}

/// Compares output with a golden file; `STAGGER_BLESS=1 cargo test -p stagger-cli simulate` regenerates it.
#[track_caller]
fn golden(name: &str, now: &str) {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/cli/golden").join(name);
    if env::var_os("STAGGER_BLESS").is_some() {
        fs::write(&path, now).expect("a writable golden file");
    }
    assert_eq!(fs::read_to_string(&path).unwrap_or_default(), now, "{name}");
}

#[test]
fn the_table_the_markdown_and_the_csv_match_the_golden_files() {
    golden("simulate.txt", &said(&mut storm(&[])));
    golden("simulate.md", &said(&mut storm(&["--md"])));
    golden("simulate.csv", &said(&mut storm(&["--csv"])));
}

#[test]
fn every_scenario_has_its_metrics() {
    for (args, kind, figure) in [
        (&["reconnect", "--clients", "100"][..], "reconnect", "recovered_p99_s"),
        (&["fluid", "--clients", "50M", "--capacity", "100k/s", "-n", "inf"], "fluid", "t99_s"),
        (&["occ", "--clients", "20"], "occ", "calls_per_client"),
        (&["outage", "--rate", "50", "--capacity", "60", "--horizon", "5m"], "outage", "metastable"),
    ] {
        let mut command = simulate(args);
        let document = json(&said(command.arg("--json")));
        assert_eq!(document["schema"], "stagger.storm/1");
        assert_eq!(document["scenario"]["kind"], kind);
        assert!(!document["strategies"][0]["runs"][0][figure].is_null(), "{document:#}");
    }
}

#[test]
fn settings_reach_the_scenario() {
    let document = json(&said(&mut simulate(&[
        "--clients=1.5k",
        "--capacity=30/min",
        "--backlog=7",
        "--one-way=5ms..9ms",
        "--disconnect-window=1s",
        "--down=3s",
        "--first-attempt=immediate",
        "--retry-after=4s",
        "--horizon=1h",
        "--json",
    ])));
    let expected = json(
        r#"{"kind": "reconnect", "clients": 1500, "rate": 0.5, "backlog": 7, "one_way_min_s": 0.005, "one_way_max_s": 0.009,
            "disconnect_window_s": 1.0, "down_for_s": 3.0, "horizon_s": 3600.0, "first_attempt": "immediate",
             "retry_after": "fixed", "retry_after_s": 4.0}"#,
    );
    assert_eq!(document["scenario"], expected);
}

#[test]
fn only_the_first_run_has_samples() {
    let document = json(&said(&mut storm(&["--json"])));
    let samples = |run: usize| document["strategies"][1]["runs"][run]["sample_s"].as_array().map(Vec::len);
    assert_eq!([samples(0), samples(1)], [Some(60), Some(0)]);
}

#[test]
fn guards_are_compared_by_name_and_end_an_outage() {
    let policy = "constant base=100ms max-attempts=4";
    let document = json(&said(&mut simulate(&["outage", "-p", policy, "--guards=none,tokens+breaker", "--json"])));
    for (at, guards, metastable) in [(0, "none", true), (1, "tokens+breaker", false)] {
        let strategy = &document["strategies"][at];
        assert_eq!(strategy["name"], format!("constant, {guards}"));
        assert_eq!((&strategy["guards"], &strategy["runs"][0]["metastable"]), (&guards.into(), &metastable.into()));
    }
}

#[test]
fn guards_are_points_and_swept_values_are_a_curve() {
    let files = Files::new();
    let directory = files.path("svg");
    let svg = format!("--svg={}", directory.display());
    let trade_off = |args: &[&str]| {
        said(simulate(args).arg(&svg));
        fs::read_to_string(directory.join("trade-off.svg")).unwrap()
    };
    let guards = trade_off(&["outage", "-p", "constant base=100ms max-attempts=2", "--guards=tokens,lifetime"]);
    assert!(guards.contains(">constant, tokens<") && guards.contains(">constant, lifetime<"));
    let sweep = trade_off(&["--clients=100", "--sweep=spread=0s,5s"]);
    assert!(sweep.contains(">exponential<") && !sweep.contains(">exponential, spread=0s<"));
}

/// A share of 20 % and ten retries per second for each of ten processes exceed the capacity left; 10 % and one do not.
#[test]
fn settings_of_a_guard_decide_whether_an_outage_ends() {
    let guards = "window, window ratio=10% min-per-second=1";
    let document = json(&said(&mut simulate(&[
        "outage",
        "-n4",
        "-d100ms",
        "--cap=2s",
        "--horizon=15m",
        "--guards",
        guards,
        "--json",
    ])));
    for (at, guards, metastable) in [(0, "window", true), (1, "window ratio=10% min-per-second=1", false)] {
        let strategy = &document["strategies"][at];
        assert_eq!((&strategy["guards"], &strategy["runs"][0]["metastable"]), (&guards.into(), &metastable.into()));
    }
}

/// Bronson et al., Metastable Failures in Distributed Systems, HotOS 2021, section 2.1: 300 requests per second, one
/// retry, an outage of 10 s. Retries alone keep the server down above half of the capacity.
#[test]
fn one_sweep_over_the_rate_finds_the_threshold_of_metastability() {
    let scenario = ["outage", "-d1s", "-n2", "--capacity=300/s", "--down=10s", "--backlog=600", "--horizon=20m"];
    let files = Files::new();
    let path = files.path("storm.json");
    let to_file = format!("--json={}", path.display());
    let text = said(simulate(&scenario).args(["--sweep", "rate=148..152 step 1", &to_file]));
    let conclusion = text.lines().last().unwrap();
    assert_eq!(conclusion, "exponential recovers up to rate=150, and does not recover within the horizon from 151 on");
    let document = json(&fs::read_to_string(path).unwrap());
    let strategies = document["strategies"].as_array().unwrap();
    let rate = |row: &Value| row.get("scenario").unwrap_or(&document["scenario"])["rate"].as_f64().unwrap();
    let rates: Vec<f64> = strategies.iter().map(rate).collect();
    assert_eq!(format!("{rates:?}"), "[148.0, 149.0, 150.0, 151.0, 152.0]");
    let swept = json(r#"[{"setting": "rate", "value": "152", "of": "scenario"}]"#);
    assert_eq!((&strategies[4]["name"], &strategies[4]["swept"]), (&"exponential, rate=152".into(), &swept));
}

#[test]
fn a_spread_that_the_policy_has_is_not_recommended() {
    for (spread, says) in [(5, "with a spread of 6s or more"), (6, "its spread keeps the first wave within")] {
        let policy = format!("exponential base=500ms cap=30s spread={spread}s max-attempts=inf");
        let text = said(&mut simulate(&["--clients=3k", "--capacity=500/s", "--down=20s", "-p", &policy]));
        let text = text.split_whitespace().collect::<Vec<_>>().join(" ");
        assert!(text.contains(says) && text.contains("with a spread of") == (spread == 5), "{text}");
    }
}

#[test]
fn sweeps_cross_and_every_scenario_has_its_own_settings() {
    let sweep = ["--clients=100", "--sweep=down=0s,2s", "--sweep=base=1s,4s", "--sweep=capacity=50,100"];
    let document = json(&said(simulate(&sweep).arg("--json")));
    let strategies = document["strategies"].as_array().unwrap();
    let names: Vec<&str> = strategies.iter().map(|row| row["name"].as_str().unwrap()).collect();
    assert_eq!(
        names[..3],
        [
            "exponential, down=0s, base=1s, capacity=50",
            "exponential, down=0s, base=1s, capacity=100",
            "exponential, down=0s, base=4s, capacity=50",
        ]
    );
    assert_eq!(names.len(), 8);
    let last = &strategies[7];
    assert_eq!((&last["scenario"]["down_for_s"], &last["scenario"]["rate"]), (&2.0.into(), &100.0.into()));
    assert!(last["policy"].as_str().unwrap().contains("base=4s"), "{last:#}");
    let text = said(&mut simulate(&sweep));
    assert!(text.contains("each row has its own down and capacity"), "{text}");
    // One line for each policy, and not for each row.
    assert_eq!(text.lines().filter(|line| line.starts_with("exponential, base=1s: ")).count(), 1, "{text}");
}

#[test]
fn a_crash_loop_is_counted_in_the_table_and_in_the_document() {
    let scenario =
        ["--clients=1k", "--capacity=100", "--down=2s", "--crash-loop=3", "--compare=curl,ours: web-socket spread=30s"];
    let text = said(simulate(&scenario).env("COLUMNS", "80"));
    assert!(text.contains("above 200 attempts/s, up to 3 times"), "{text}");
    assert!(text.contains("   crashes\n") && text.contains("gave "), "{text}");
    let document = json(&said(simulate(&scenario).arg("--json")));
    assert_eq!(document["scenario"]["crash_loop"], json(r#"{"most": 3, "above": 200.0}"#));
    let crashes = |at: usize| document["strategies"][at]["runs"][0]["crashes"].as_u64();
    assert_eq!([crashes(0), crashes(1)], [Some(2), Some(0)]);
    let swept = json(&said(simulate(&scenario[..4]).args(["--sweep=crash-above=100,1M", "--json"])));
    assert_eq!(swept["strategies"][1]["runs"][0]["crashes"], 0);
}

#[test]
fn clients_that_gave_up_are_in_a_table_of_80_columns() {
    for args in [&["reconnect", "-n2"][..], &["fluid", "-n2"], &["occ", "-n2"]] {
        let text =
            said(simulate(args).arg("--compare=curl,socket.io,a long name for it: aws-sdk").env("COLUMNS", "80"));
        let heads: Vec<&str> = text.lines().filter(|line| line.starts_with("   ")).collect();
        assert!(heads.iter().any(|line| line.contains("gave")), "{text}");
        assert!(text.lines().all(|line| line.chars().count() <= 80), "{text}");
    }
}

#[test]
fn clients_in_step_do_not_look_less_overloaded() {
    let document = json(&said(&mut simulate(&["--clients=2k", "--compare=curl,aws-sdk", "--json"])));
    let figure = |at: usize, key: &str| document["strategies"][at]["runs"][0][key].as_f64().unwrap();
    assert!(figure(0, "overload_s") < figure(1, "overload_s"), "{document:#}");
    assert!(figure(0, "excess_per_client") > figure(1, "excess_per_client"));
}

#[test]
fn a_sweep_in_a_file_may_be_a_list() {
    let files = Files::new();
    let file = files.write("sweep.toml", "clients = 10\nsweep = [\"base=1s,2s\", \"capacity=50,100\"]\n");
    let file = file.to_str().unwrap();
    let flags = ["--clients=10", "--sweep=base=1s,2s", "--sweep=capacity=50,100", "--csv"];
    assert_eq!(said(&mut simulate(&["--file", file, "--csv"])), said(&mut simulate(&flags)));
}

#[test]
fn a_file_is_equivalent_to_flags_and_flags_override_it() {
    let files = Files::new();
    let text = "scenario = \"reconnect\"\nclients = \"2k\"\ncapacity = 200\nbacklog = 50\ndown = \"2s\"\nseeds = 2\n\
                compare = [\"socket.io\", \"ours: exponential base=1s cap=30s spread=10s max-attempts=inf\"]\n";
    let file = files.write("storm.toml", text);
    let file = file.to_str().unwrap();
    assert_eq!(said(&mut simulate(&["--file", file, "--json"])), said(&mut storm(&["--json"])));
    let document = json(&said(&mut simulate(&["--file", file, "--clients=10", "--json"])));
    assert_eq!(document["scenario"]["clients"], 10);
}

#[test]
fn a_failed_assertion_is_reported_with_its_value_and_exits_with_1() {
    see(&mut storm(&["--assert", "peak_1s<=100k,recovered_p99<=2m,gave_up=0"])).exits(0);
    see(&mut storm(&["--assert", "peak_1s<=300,recovered_p99<=2m"]))
        .exits(1)
        .says("assertion failed: peak_1s<=300: peak_1s is 1,865 for socket.io with seed 1")
        .is_silent_about("recovered");
}

#[test]
fn guards_of_a_fleet_and_faults_of_its_store_are_named_in_every_report() {
    let scenario = ["outage", "--processes=20", "--down=10s", "--outage=throttle", "--horizon=60s", "--rate=300/s"];
    let guards = [
        "--guards=none, quiet trigger=hints-and-refusals+lease tokens=500 refill=50/s",
        "--store-lost=22s..28s",
        "--store-cut=50% 35s..40s",
    ];
    let text = said(simulate(&scenario).args(guards).env("COLUMNS", "200"));
    let text = text.split_whitespace().collect::<Vec<_>>().join(" ");
    let words = [
        "refuses all requests as too many from 20s to 30s",
        "store away from 22s to 28s and back without its data",
        "50% of the processes cut off the store from 35s to 40s",
        "quiet trigger=hints-and-refusals+lease tokens=500 refill=50/s",
        "overshoot",
    ];
    assert!(words.iter().all(|word| text.contains(word)), "{text}");
    let document = json(&said(simulate(&scenario).args(guards).arg("--json")));
    assert_eq!(document["scenario"]["store"]["down_s"], serde_json::json!([22.0, 28.0]));
    let [plain, guarded] = [0, 1].map(|nth| &document["strategies"][nth]);
    assert_eq!(
        (&plain["guards"], &guarded["guards"]),
        (&"none".into(), &"quiet trigger=hints-and-refusals+lease tokens=500 refill=50/s".into())
    );
    let [plain, guarded] = [plain, guarded].map(|strategy| &strategy["runs"][0]);
    assert!(plain["budget_overshoot"].is_null() && guarded["budget_overshoot"].is_f64(), "{guarded}");
    assert!(guarded["held"].as_u64() > plain["held"].as_u64(), "{guarded}");
}

#[test]
fn clients_of_a_process_share_guards_in_a_mass_disconnect() {
    let run = |extra: &[&str]| {
        let flags = ["--clients=2k", "--capacity=200/s", "--backlog=100", "--retry-after=2s", "-n=inf", "--json"];
        json(&said(simulate(&flags).args(extra)))["strategies"][0]["runs"][0].clone()
    };
    let (alone, none) = (run(&[]), run(&["--guards=none"]));
    assert_eq!(alone, none);
    let shared = run(&["--guards=quiet max-waiting=10k", "--processes=4"]);
    assert!(shared["held"].as_u64() > Some(500), "{}", shared["held"]);
    assert!(shared["attempts"].as_u64() < alone["attempts"].as_u64(), "{}", shared["attempts"]);
}

#[test]
fn invalid_input_is_rejected_with_a_remedy() {
    let files = Files::new();
    let not_toml = files.write("not.toml", "clients: 3\n");
    let unknown = files.write("unknown.toml", "cleints = 3\n");
    let no_seeds = files.write("no-seeds.toml", "seeds = 0\n");
    let [not_toml, unknown, no_seeds] = [&not_toml, &unknown, &no_seeds].map(|path| path.to_str().unwrap());
    for (args, code, words) in [
        (&["--capacity=0"][..], 2, "--capacity: invalid value `0`"),
        (&["--capacity=NaN"], 2, "--capacity: invalid value `NaN`"),
        (&["--clients=10000000000"], 2, "67,108,864"),
        (&["--clients=many"], 2, "--clients: invalid value `many`"),
        (&["--file", not_toml], 2, "use TOML, such as clients = \"10k\""),
        (
            &["--file", unknown],
            2,
            "unknown.toml: cleints: the reconnect scenario has no setting `cleints`; remove it or use one of clients,",
        ),
        (&["--file", "/no/such.toml"], 125, "--file: cannot read /no/such.toml: No such file"),
        (
            &["-o", "/no/such/storm.html"],
            125,
            "cannot write /no/such/storm.html (create the directory first): No such file",
        ),
        (&["--json=/no/such/storm.json"], 125, "cannot write /no/such/storm.json"),
        (&["--svg", "/dev/null/svg"], 125, "cannot write /dev/null/svg"),
        (
            &["--json", "--csv"],
            2,
            "--json and --csv both write to standard output; write one of them to a file: --csv=FILE",
        ),
        (&["--assert", "peek<=3"], 2, "--assert: unknown metric `peek`; there are clients, peak_100ms"),
        (&["--compare", "curl,sockt.io"], 2, "--compare: `sockt.io` "),
        (&["occ", "--backlog", "3"], 2, "unexpected argument '--backlog' found"),
        (
            &["occ", "--sweep", "backlog=3"],
            2,
            "--sweep: the occ scenario has no setting `backlog`; remove it or use one of clients, one-way",
        ),
        (&["fluid", "-j", "decorrelated"], 2, "(stagger simulate reconnect)"),
        (&["fluid", "--retry-after", "staggered"], 2, "unexpected argument '--retry-after' found"),
        (&["outage", "--guards", "tokns"], 2, "--guards: `tokns` is not a guard; did you mean `tokens`?"),
        (
            &["outage", "--guards", "window rato=10%"],
            2,
            "--guards: window: `rato` is not a setting; did you mean `ratio`?",
        ),
        (&["--sweep", "capcity=5"], 2, "--sweep: `capcity` is not a setting; did you mean `capacity`?"),
        (
            &["--sweep", "rate=5"],
            2,
            "--sweep: the reconnect scenario has no setting `rate`; remove it or use one of clients,",
        ),
        (
            &["--sweep=clients=1..200 step 1", "--seeds=51"],
            2,
            "are 10200 runs, and at most 10000 are possible; lower --seeds",
        ),
        (
            &["--crash-loop", "often"],
            2,
            "--crash-loop: `often` is not a number of crashes; use a whole number from 0 to",
        ),
        (&["--crash-above", "5k"], 2, "--crash-above has no effect without --crash-loop"),
        (
            &["--crash-loop=3", "--guards=quiet"],
            2,
            "--guards and --crash-loop cannot be simulated together; remove one",
        ),
        (&["--processes=3"], 2, "--processes has no effect without --guards; add them, such as --guards quiet"),
        (&["--processes=3", "--clients=2", "--guards=quiet"], 2, "processes is 0 or above the number of clients"),
        (
            &["outage", "--store-down=5s..9s", "--guards=quiet"],
            2,
            "--store-down has no effect without a lease; add one, such as --guards 'lease tokens=500'",
        ),
        (
            &["outage", "--store-down=5s..9s", "--store-lost=5s..9s", "--guards=lease"],
            2,
            "--store-down and --store-lost are one fault; keep one of them",
        ),
        (&["outage", "--store-lost=9s..5s", "--guards=lease"], 2, "`9s..5s` ends at 5s, not after 9s; swap the times"),
        (&["outage", "--store-lost=9s", "--guards=lease"], 2, "`9s` has no end; expected a form like 25s..40s"),
        (&["outage", "--store-lost=9s..1h", "--guards=lease"], 2, "a fault of the store does not end after it begins"),
        (&["outage", "--store-cut=5s..9s", "--guards=lease"], 2, "expected a form like '30% 25s..40s'"),
        (&["outage", "--store-cut=130% 5s..9s", "--guards=lease"], 2, "cuts off more than all processes"),
        (&["--retry-after", "perhaps"], 2, "expected one of none, staggered, reservations, or a duration like 5s"),
        (&["--seeds", "0"], 2, "1..=1000"),
        (&["--file", no_seeds], 2, "seeds: 0 is outside 1 to 1000"),
        (&["--clients=1m"], 2, "did you mean `1M`?"),
        (&["--compare", ""], 2, "--compare: a policy is missing"),
        (&["--compare", "curl,"], 2, "--compare: a policy is missing"),
        (&["-p", ""], 2, "--policy: the policy is empty"),
        (&["--horizon=0s"], 2, "error: reconnect: the horizon is 0 or above 76 hours"),
        (&["outage", "--horizon=0s"], 2, "error: outage: the horizon is 0 or above 76 hours"),
        (&["outage", "--timeout=0s"], 2, "the timeout is shorter than a round trip"),
        (&["--json", "storm.json"], 2, "to write to a file, use `=`: --json=storm.json"),
    ] {
        see(&mut simulate(args)).exits(code).prints("").says(words);
    }
}

#[test]
fn the_same_seed_gives_the_same_files() {
    let files = Files::new();
    let written = |name: &str, seed: &str| -> BTreeMap<String, Vec<u8>> {
        let place = files.path(name);
        fs::create_dir(&place).unwrap();
        let args = ["-oreport.html", "--json=storm.json", "--csv=storm.csv", "--md=storm.md", "--svg=."];
        said(storm(&args).args(["--seed", seed]).current_dir(&place));
        let entries = fs::read_dir(&place).unwrap().map(|entry| entry.unwrap());
        entries.map(|entry| (entry.file_name().into_string().unwrap(), fs::read(entry.path()).unwrap())).collect()
    };
    let (first, again, other) = (written("one", "5"), written("again", "5"), written("other", "6"));
    assert_eq!(first.len(), 10, "{:?}", first.keys());
    for (name, bytes) in &first {
        assert!(again[name] == *bytes, "{name} differs");
        assert!(other[name] != *bytes, "{name} does not depend on the seed");
    }
}

#[test]
fn output_fits_the_terminal_and_a_pipe_gets_no_escapes() {
    for columns in ["60", "80", "160"] {
        let text = said(storm(&[]).env("COLUMNS", columns));
        let widest = text.lines().map(|line| line.chars().count()).max();
        assert!(widest <= columns.parse().ok(), "{columns}: {widest:?}\n{text}");
        assert!(!text.contains('\u{1b}'), "{text}");
    }
    assert!(said(storm(&[]).env("LC_ALL", "C")).is_ascii());
}

#[test]
fn only_the_best_values_are_bold_in_color() {
    let text = said(&mut storm(&["--color", "always"]));
    let peak =
        |name: &str| text.lines().find(|line| line.starts_with(name)).unwrap().split_whitespace().nth(1).unwrap();
    assert_eq!((peak("socket.io "), peak("ours ")), ("226", "\u{1b}[1m66.5\u{1b}[0m"), "{text}");
}

#[test]
fn control_characters_in_names_are_escaped() {
    let text = said(&mut simulate(&["--clients=10", "--compare", "\u{1b}[31mred\u{7}: curl"]));
    assert!(text.contains(r"\u{1b}[31mred\u{7}") && !text.contains('\u{1b}'), "{text:?}");
}

#[test]
fn after_an_interrupt_finished_runs_are_kept_and_no_file_is_partial() {
    let files = Files::new();
    let path = files.path("storm.json");
    let file = format!("--json={}", path.display());
    let running = Running::start(&mut simulate(&[
        "--clients=2k",
        "--capacity=100",
        "-n=inf",
        "--seeds=1000",
        &file,
        "--compare=curl,socket.io",
    ]));
    let pid = running.pid().as_raw_nonzero();
    let catches_interrupts = || {
        let status = fs::read_to_string(format!("/proc/{pid}/status")).unwrap_or_default();
        let caught = status.lines().find_map(|line| line.strip_prefix("SigCgt:"));
        caught.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok()).is_some_and(|mask| mask & 2 != 0)
    };
    eventually("the signal handler is installed", catches_interrupts);
    // 0.3 s of CPU time are enough for some of the runs, but not for all 2,000.
    let has_worked = || {
        let stat = fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
        let fields = stat.rsplit(')').next().unwrap_or_default().split_whitespace().skip(11).take(2);
        fields.filter_map(|ticks| ticks.parse::<u64>().ok()).sum::<u64>() >= 30
    };
    eventually("some runs have finished", has_worked);
    assert!(!path.exists());
    running.signal(Signal::INT);
    running.end().exits(130).says("interrupted: ").says("of 2000 runs finished");
    let document = json(&fs::read_to_string(&path).unwrap());
    let runs = document["strategies"][0]["runs"].as_array().unwrap().len();
    assert!((1..1_000).contains(&runs), "{runs}");
    assert_eq!(fs::read_dir(path.parent().unwrap()).unwrap().count(), 1);
}
