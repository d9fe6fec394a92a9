use std::collections::BTreeSet;
use std::fs;

use serde_json::Value;

use crate::support::{Files, Running, Seen, run, run_script, see, stagger};

/// A script that fails once with exit code 7.
const ONCE: &str = r#"test "$STAGGER_ATTEMPT" = 2 || exit 7"#;

#[track_caller]
fn lines(text: &str) -> Vec<Value> {
    text.lines().map(|line| serde_json::from_str(line).unwrap_or_else(|error| panic!("{line}: {error}"))).collect()
}

#[test]
fn success_on_the_first_attempt_is_not_logged() {
    let seen = see(&mut run(["--", "echo", "hello"]));
    seen.exits(0).prints("hello\n");
    assert_eq!(seen.stderr, "");
}

#[test]
fn without_a_terminal_attempts_are_logged_as_key_value() {
    let seen = see(&mut run_script(&["-O", "--seed", "1"], ONCE));
    let pattern = regex::Regex::new(
        r"^stagger: attempt=1/4 result=exit:7 took=[0-9.]+s next=[0-9.]+s\nstagger: attempt=2/4 result=ok took=[0-9.]+s total=[0-9.]+s waited=[0-9.]+s\n$",
    );
    assert!(pattern.unwrap().is_match(&seen.stderr), "{seen:#?}");
}

#[test]
fn json_has_one_object_per_line_with_its_schema() {
    let seen = see(&mut run_script(&["-O", "--log", "json", "--seed", "8819"], ONCE));
    let lines = lines(&seen.stderr);
    assert!(lines.iter().all(|line| line["schema"] == "stagger.run/1"), "{lines:#?}");
    assert!(lines.iter().all(|line| line["run"] == lines[0]["run"] && line["run"].is_string()), "{lines:#?}");
    let times: Vec<&str> = lines.iter().filter_map(|line| line["time"].as_str()).collect();
    assert!(times.len() == lines.len() && times.is_sorted() && times[0].ends_with('Z'), "{times:?}");
    let events: Vec<&str> = lines.iter().filter_map(|line| line["event"].as_str()).collect();
    assert_eq!(events, ["start", "attempting", "attempt", "attempting", "attempt", "done"]);
    let (start, failed, worked, done) = (&lines[0], &lines[2], &lines[4], &lines[5]);
    assert_eq!(start["policy"], "exponential base=5ms cap=30s multiplier=2 jitter=full max-attempts=4");
    assert_eq!(start["command"][0], "sh");
    assert_eq!(
        (&failed["n"], &failed["max"], &failed["result"], &failed["code"]),
        (&1.into(), &4.into(), &"exit".into(), &7.into())
    );
    assert_eq!(failed["next_max_s"], 0.005);
    assert!(failed["next_s"].as_f64().is_some_and(|next| (0.0..=0.005).contains(&next)), "{failed}");
    assert!(failed["took_s"].is_f64());
    assert_eq!((&worked["n"], &worked["result"], worked.get("next_s")), (&2.into(), &"ok".into(), None));
    assert_eq!(
        (&done["ok"], &done["exit"], &done["attempts"], &done["seed"]),
        (&true.into(), &0.into(), &2.into(), &8819.into())
    );
    assert!(done["total_s"].as_f64() >= done["waited_s"].as_f64());
}

#[test]
fn next_max_s_is_the_upper_bound_of_the_delay_even_after_a_healthy_attempt() {
    let files = Files::new();
    let script = format!("test -e {0} || {{ touch {0}; sleep 1.1; }}; exit 1", files.path("ran").display());
    for seed in ["1", "3"] {
        let flags = ["--log", "json", "--seed", seed, "-n", "3", "--stable-after", "1s"];
        let seen = see(&mut run_script(&flags, &script));
        fs::remove_file(files.path("ran")).unwrap();
        let delays = lines(&seen.stderr).into_iter().filter(|line| line.get("next_s").is_some());
        let delays: Vec<(f64, f64)> =
            delays.map(|line| (line["next_s"].as_f64().unwrap(), line["next_max_s"].as_f64().unwrap())).collect();
        assert_eq!(delays.iter().map(|(_, ceiling)| *ceiling).collect::<Vec<_>>(), [0.005, 0.010], "{seen:#?}");
        assert!(delays.iter().all(|(delay, ceiling)| delay <= ceiling), "{delays:?}");
    }
}

#[test]
fn warnings_and_failures_are_logged_as_json() {
    let script = "echo nonsense > \"$STAGGER_ADVICE\"; kill -KILL $$";
    let seen = see(&mut run_script(&["--log", "json", "-n", "inf", "--retry-on", "fail"], script));
    let lines = lines(&seen.exits(137).stderr);
    let of = |event: &str| lines.iter().find(|line| line["event"] == event).unwrap_or(&Value::Null).clone();
    assert_eq!(of("warning")["message"], "invalid advice `nonsense`; write retry-after=SECONDS or stop");
    let attempt = of("attempt");
    assert_eq!(
        (&attempt["max"], &attempt["result"], &attempt["signal"]),
        (&Value::Null, &"signal".into(), &"SIGKILL".into())
    );
    assert_eq!((&attempt["stop"], &attempt["reason"]), (&"permanent".into(), &"not-retry-on".into()));
    assert_eq!((&of("done")["ok"], &of("done")["exit"]), (&false.into(), &137.into()));
}

#[test]
fn quiet_logs_only_warnings() {
    for flag in [&["--quiet"][..], &["--log", "off"]] {
        let seen: Seen = see(&mut run_script(flag, "exit 7"));
        seen.exits(7);
        assert_eq!(seen.stderr, "");
    }
    see(&mut run(["-q", "--", "no-such-command"])).exits(127).says("warning: cannot run").is_silent_about("attempt=");
}

#[test]
fn verbose_logs_the_policy_the_seed_and_each_start() {
    see(&mut run_script(&["-v", "--seed", "42"], ONCE))
        .says("policy=\"exponential base=5ms")
        .says("seed=42")
        .says("attempt=2/4 starts");
}

#[test]
fn log_file_receives_the_log() {
    let files = Files::new();
    let log = files.write("log", "before\n");
    let seen = see(run(["-O", "--log-file"]).arg(&log).args(["--", "sh", "-c", ONCE]));
    assert_eq!(seen.exits(0).stderr, "");
    let log = fs::read_to_string(log).unwrap();
    assert!(
        log.starts_with("before\nstagger: attempt=1/4 result=exit:7") && log.contains("attempt=2/4 result=ok"),
        "{log}"
    );
}

#[test]
fn a_report_has_all_attempts() {
    let files = Files::new();
    let path = files.path("report");
    see(run(["--seed", "3", "--report"]).arg(&path).args(["--", "sh", "-c", ONCE])).exits(0);
    let report: Value = serde_json::from_str(&fs::read_to_string(path).unwrap()).unwrap();
    assert_eq!(report["schema"], "stagger.run-report/1");
    assert_eq!(
        (&report["ok"], &report["exit"], &report["attempts"], &report["seed"]),
        (&true.into(), &0.into(), &2.into(), &3.into())
    );
    let results: Vec<&Value> =
        report["attempt_log"].as_array().unwrap().iter().map(|attempt| &attempt["result"]).collect();
    assert_eq!(results, ["exit", "ok"]);

    let seen = see(&mut run(["-O", "-n", "2", "--report", "-", "--", "false"]));
    let report: Value = serde_json::from_str(&seen.exits(1).stdout).unwrap();
    assert_eq!((&report["ok"], &report["stop"]), (&false.into(), &"attempts".into()));
}

#[test]
fn a_spread_is_logged_before_the_first_attempt() {
    let seen = see(&mut run(["--spread", "30ms", "--seed", "1", "--", "true"]));
    seen.exits(0).says("stagger: spread=0.0");
}

#[test]
fn a_seed_that_stagger_draws_is_exact_in_programs_with_floating_point_numbers() {
    for _ in 0..8 {
        let seen = see(&mut run(["--log", "json", "--", "true"]));
        let seed = lines(&seen.stderr)[0]["seed"].as_u64().unwrap();
        assert!(seed < 1 << 53, "{seed}");
    }
}

#[test]
fn short_times_are_not_logged_as_zero() {
    let seen = see(&mut run(["-n", "2", "-d", "100us", "-j", "none", "--", "false"]));
    seen.exits(1).says("next=0.0001s").is_silent_about("=0s ");
}

#[test]
fn color_always_colors_the_log_in_a_pipe_and_not_in_a_file() {
    let files = Files::new();
    let log = files.path("log");
    for (flags, color, want) in [
        (&["--color", "always"][..], true, "result=exit:7"),
        (&[], false, "result=exit:7"),
        (&["--color=never"], false, ""),
    ] {
        let seen = see(&mut run_script(flags, ONCE));
        assert_eq!(seen.exits(0).stderr.contains("\x1b[31mresult=exit:7\x1b[0m took="), color, "{flags:?} {seen:#?}");
        seen.says(want);
    }
    see(run(["--color", "always", "--log-file"]).arg(&log).args(["--", "sh", "-c", ONCE])).exits(0);
    assert!(!fs::read_to_string(log).unwrap().contains('\x1b'));
}

#[test]
fn runs_that_share_a_log_file_are_told_apart() {
    let files = Files::new();
    let log = files.path("log.ndjson");
    let runs: Vec<_> = (0..20)
        .map(|_| {
            let mut command = run(["-n", "3", "--log", "json", "--log-file"]);
            Running::start(command.arg(&log).args(["--", "false"]))
        })
        .collect();
    for run in runs {
        run.end().exits(1);
    }
    let lines = lines(&fs::read_to_string(&log).unwrap());
    let ids: BTreeSet<_> = lines.iter().filter_map(|line| line["run"].as_str()).collect();
    assert_eq!(ids.len(), 20);
    let seen = see(stagger(["check", "--log"]).arg(&log).env("COLUMNS", "200"));
    assert!(seen.stdout.contains("40 delays of 20 clients"), "{seen:#?}");
}
