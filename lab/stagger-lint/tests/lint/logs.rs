//! Tests of reading and checking logs.

use core::fmt::Write as _;
use core::time::Duration;

use stagger_core::{Policy, Seed};
use stagger_lint::log::{Log, check, read};

use super::support::policy;

/// Returns the delays of clients that all fail at time 0, as plain lines.
fn lines(policy: &Policy, clients: u64, retries: usize) -> String {
    let mut text = String::new();
    for client in 0..clients {
        let key = Seed::new(7).for_call(client);
        let mut time = policy.first_spread(key);
        for (at, delay) in policy.schedule(key).take(retries).enumerate() {
            time += delay;
            writeln!(text, "{} c{client} {} {}", delay.as_secs_f64(), at + 1, time.as_secs_f64()).unwrap();
        }
    }
    text
}

fn log_of(text: &str, clients: u64, retries: usize) -> Log {
    read(&lines(&policy(text), clients, retries)).unwrap()
}

fn codes(log: &Log, against: Option<&str>) -> Vec<&'static str> {
    check(log, against.map(policy).as_ref()).iter().map(|finding| finding.rule().code()).collect()
}

#[test]
fn each_log_rule_applies_to_its_examples_only() {
    for (made, retries, against, want) in [
        // Delays drawn from a policy with jitter have no findings.
        ("exponential base=1s cap=30s", 6, None, &[][..]),
        ("exponential base=1s cap=30s max-attempts=7", 6, Some("exponential base=1s cap=30s max-attempts=7"), &[]),
        ("exponential base=1s jitter=decorrelated", 3, Some("exponential base=1s jitter=decorrelated"), &[]),
        ("socket.io", 2, Some("socket.io"), &[]),
        // Little jitter leaves clients in phase.
        ("exponential base=1s cap=30s jitter=±5%", 3, None, &["L003"]),
        ("exponential base=10ms cap=30s", 4, None, &[]),
        // Without jitter, clients are in step.
        ("curl", 3, None, &["L001", "L003"]),
        ("curl", 3, Some("curl"), &["L001", "L003"]),
        ("pusher", 9, None, &["L001", "L003"]),
        // The jitter is lost at the cap, but the phases differ by then.
        ("socket.io", 6, Some("socket.io"), &["L001"]),
        // The delays come from another policy.
        ("exponential base=1s cap=30s", 3, Some("exponential base=500ms cap=30s"), &["L002", "L005"]),
        ("exponential base=500ms cap=30s", 3, Some("exponential base=1s cap=30s"), &["L005"]),
        ("exponential base=1s jitter=equal", 3, Some("exponential base=1s"), &["L005"]),
        // More retries than the policy allows, or than any policy should.
        ("exponential base=1s cap=30s", 4, Some("exponential base=1s cap=30s max-attempts=4"), &["L004"]),
        ("exponential base=1s cap=30s", 50, None, &["L004"]),
        ("exponential base=1s cap=30s", 49, None, &[]),
    ] {
        assert_eq!(codes(&log_of(made, 200, retries), against), want, "{made}, {retries} retries, against {against:?}");
    }
}

#[test]
fn few_delays_have_no_findings() {
    assert_eq!(codes(&log_of("pusher", 7, 1), None), [""; 0]);
    assert_eq!(codes(&log_of("pusher", 8, 1), None), ["L001", "L003"]);
    assert_eq!(codes(&read("").unwrap(), Some("default")), [""; 0]);
    // Not even if they do not match the policy.
    assert_eq!(codes(&log_of("exponential base=1s jitter=equal", 19, 1), Some("exponential base=1s")), [""; 0]);
}

#[test]
fn a_measured_delay_may_be_off_by_a_millisecond() {
    // The policy waits 1 s to 2 s.
    for (delay, want) in [("999ms", None), ("998ms", Some("L002")), ("2001ms", None), ("2002ms", Some("L002"))] {
        let log = read(&format!("{delay} a 1")).unwrap();
        let found = codes(&log, Some("exponential base=2s jitter=equal"));
        assert_eq!(found, Vec::from_iter(want), "{delay}");
    }
}

#[test]
fn clustered_delays_are_reported_without_retry_numbers() {
    let text = "1s\n2s\n4s\n5s\n".repeat(10) + &"5s\n".repeat(20);
    let log = read(&text).unwrap();
    assert!(log.entries.iter().all(|entry| entry.retry.is_none() && entry.client.is_none()));
    let found = check(&log, None);
    assert_eq!(found[0].facts(), ["all delays: 100% of 60 are equal to others; most often 5s"]);
    assert_eq!(codes(&log, Some("exponential base=1s cap=3s")), ["L001", "L002"]);
}

/// Tests that the last arrivals count, with lines in any order.
#[test]
fn clients_that_fall_into_step_are_reported() {
    let line = |i: u64| {
        let apart = i as f64 * 0.25;
        [format!("{apart} c{i} 1 {apart}"), format!("5 c{i} 2 {}", 100 + i * 5)]
    };
    let mut lines: Vec<String> = (1..20).flat_map(line).collect();
    for _ in 0..2 {
        let found = check(&read(&lines.join("\n")).unwrap(), None);
        let together = found.iter().find(|finding| finding.rule().code() == "L003").expect("they are in step");
        assert_eq!(together.facts()[0], "19 clients, period 5s: mean resultant length of the phases 1.00");
        lines.reverse();
    }
}

#[test]
fn a_fleet_with_a_spread_is_not_synchronized() {
    let log = log_of("exponential base=500ms cap=30s spread=20s", 300, 8);
    assert_eq!(codes(&log, None), [""; 0]);
}

#[test]
fn facts_name_the_line_and_the_figures() {
    let found = |text: &str, against: &str| {
        let found = check(&read(text).unwrap(), Some(&policy(against)));
        found.iter().flat_map(|finding| finding.facts().to_vec()).collect::<Vec<_>>()
    };
    assert_eq!(
        found("# head\n0.5 a 1\n9.5 a 2\n", "exponential base=1s cap=30s"),
        ["1 of 2 delays", "line 3: 9.5s before retry 2; the policy allows 0s to 2s"]
    );
    assert_eq!(found("1 a 9\n", "default"), ["line 1: retry 9 of a; the policy allows 3"]);
    assert_eq!(found("1 a 1\n", "stop")[1], "line 1: 1s before retry 1; the policy allows no such retry");
    // A millisecond is within the tolerance.
    assert_eq!(found("1.001 a 1\n", "exponential base=1s cap=30s"), [""; 0]);
    assert_ne!(found("1.002 a 1\n", "exponential base=1s cap=30s"), [""; 0]);
}

#[test]
fn plain_lines_are_read_in_every_documented_form() {
    let seconds = Duration::from_secs;
    for (text, want) in [
        ("1.5", (Duration::from_millis(1_500), None, None, None)),
        ("250ms", (Duration::from_millis(250), None, None, None)),
        ("2.00000000000000001", (seconds(2), None, None, None)),
        ("5e-05", (Duration::from_micros(50), None, None, None)),
        ("2 a", (seconds(2), Some("a"), Some(1), None)),
        ("2,a,3", (seconds(2), Some("a"), Some(3), None)),
        ("2\ta\t3\t90", (seconds(2), Some("a"), Some(3), Some(seconds(90)))),
        ("2 - 3", (seconds(2), None, Some(3), None)),
        ("2 - - 1m", (seconds(2), None, None, Some(seconds(60)))),
        ("\u{feff}2 a", (seconds(2), Some("a"), Some(1), None)),
        ("# comment\n\n  2 a  \n", (seconds(2), Some("a"), Some(1), None)),
        ("Time,Client,Delay\n5,x,2", (seconds(2), Some("x"), Some(1), Some(seconds(5)))),
    ] {
        let log = read(text).unwrap_or_else(|error| panic!("{text:?}: {error}"));
        let entry = &log.entries[0];
        assert_eq!((entry.delay, entry.client.as_deref(), entry.retry, entry.time), want, "{text:?}");
        assert_eq!(log.entries.len(), 1);
    }
}

#[test]
fn retries_are_counted_per_client_if_not_given() {
    let log = read("1 a\n1 b\n2 a\n1 a 7\n4 a").unwrap();
    let retries: Vec<_> = log.entries.iter().map(|entry| entry.retry).collect();
    assert_eq!(retries, [Some(1), Some(1), Some(2), Some(7), Some(3)]);
}

#[test]
fn the_error_names_every_invalid_line_and_what_was_expected() {
    for (text, line, want) in [
        ("soon", 1, "`soon`"),
        ("1\n\n-1", 3, "`-1`"),
        ("1 a 0", 1, "retries count from 1"),
        ("1 a two", 1, "invalid retry number `two`"),
        ("1 a 1 2 3", 1, "expected DELAY [CLIENT [RETRY [TIME]]]"),
        ("- a", 1, "missing delay"),
        ("inf", 1, "invalid duration `inf`"),
        ("nan", 1, "invalid duration `nan`"),
        ("client retry\n1 2", 1, "`client`"),
        ("99999999999999999999999s", 1, "`99999999999999999999999s`"),
    ] {
        let error = read(text).unwrap_err();
        assert_eq!(error.errors()[0].line, line, "{text:?}");
        assert!(error.to_string().contains(want), "{text:?}: {error}");
    }
    let many = read("a\nb\nc\nd\ne").unwrap_err();
    assert_eq!(many.errors().len(), 5);
    assert!(many.to_string().ends_with("; and 2 more lines"), "{many}");
}

#[test]
fn control_characters_of_a_log_are_escaped() {
    let error = read("\u{1b}[2J").unwrap_err().to_string();
    assert!(error.contains("\\u{1b}[2J") && !error.contains('\u{1b}'), "{error:?}");
    let long = read(&format!("1 a {}", "x".repeat(10_000))).unwrap_err().to_string();
    assert!(long.len() < 300 && long.ends_with("..."), "{long}");
    let found = check(&read("1 \u{7}client 50").unwrap(), None);
    assert_eq!(found[0].facts(), ["line 1: retry 50 of \\u{7}client"]);
}

#[cfg(feature = "serde")]
mod json {
    use super::*;

    const RUN: &str = concat!(
        r#"{"schema":"stagger.run/1","event":"start","#,
        r#""policy":"exponential base=1s cap=30s multiplier=2 jitter=full max-attempts=4","seed":1,"#,
        r#""command":["false"]}"#,
        "\n",
        r#"{"schema":"stagger.run/1","event":"attempting","n":1,"max":4}"#,
        "\n",
        r#"{"schema":"stagger.run/1","event":"attempt","n":1,"max":4,"result":"exit","code":1,"took_s":0.01,"#,
        r#""next_s":0.25,"next_from":"policy","policy_cap_s":1.0}"#,
        "\n",
        r#"{"schema":"stagger.run/1","event":"attempt","n":2,"max":4,"result":"exit","code":1,"took_s":0.01,"#,
        r#""next_s":30.0,"next_from":"advice","asked_s":30.0}"#,
        "\n",
        r#"{"schema":"stagger.run/1","event":"attempt","n":3,"max":4,"result":"exit","code":1,"took_s":0.01,"#,
        r#""next_s":3.5,"next_from":"policy"}"#,
        "\n",
        r#"{"schema":"stagger.run/1","event":"attempt","n":4,"max":4,"result":"exit","code":1,"took_s":0.01,"#,
        r#""stop":"attempts"}"#,
        "\n",
        r#"{"schema":"stagger.run/1","event":"done","ok":false,"exit":1,"attempts":4,"total_s":34.0,"#,
        r#""waited_s":33.75,"seed":1}"#,
        "\n",
    );

    #[test]
    fn logs_of_stagger_run_are_read_run_by_run() {
        let log = read(&RUN.repeat(2)).unwrap();
        let entries: Vec<_> =
            log.entries.iter().map(|entry| (entry.client.as_deref().unwrap(), entry.retry, entry.delay)).collect();
        let (quarter, long) = (Duration::from_millis(250), Duration::from_millis(3_500));
        assert_eq!(
            entries,
            [
                ("run 1", Some(1), quarter),
                ("run 1", Some(3), long),
                ("run 2", Some(1), quarter),
                ("run 2", Some(3), long)
            ]
        );
        assert_eq!((log.skipped_hints, log.other_lines), (2, 6));
        assert_eq!(log.policies, [policy("exponential base=1s cap=30s")]);
        assert!(check(&log, log.policies.first()).is_empty());
    }

    /// Eight runs that write to one log at the same time, and retry in step.
    fn shared() -> String {
        let line = |run: u32, event: &str| {
            format!(r#"{{"schema":"stagger.run/1","time":"2026-01-31T12:00:00.5{run}Z","run":"{run}a",{event}}}"#)
                + "\n"
        };
        let start = r#""event":"start","policy":"constant base=10s jitter=none max-attempts=4""#;
        let failed = r#""event":"attempt","n":1,"next_s":10.0,"next_from":"policy""#;
        [start, failed].into_iter().flat_map(|event| (0..8).map(move |run| line(run, event))).collect()
    }

    #[test]
    fn runs_that_share_a_log_are_told_apart_and_their_arrivals_compared() {
        let log = read(&shared()).unwrap();
        let clients: Vec<_> = log.entries.iter().filter_map(|entry| entry.client.as_deref()).collect();
        assert_eq!(clients[..3], ["run 0a", "run 1a", "run 2a"]);
        assert_eq!(clients.len(), 8);
        let apart = log.entries[7].time.unwrap().checked_sub(log.entries[0].time.unwrap());
        assert_eq!(apart, Some(Duration::from_millis(70)));
        let found = check(&log, None);
        assert!(found.iter().any(|finding| finding.rule().code() == "L003"), "{found:#?}");
    }

    #[test]
    fn a_time_of_a_run_that_is_not_one_is_an_error() {
        for time in ["\"now\"", "7", "\"1960-01-01T00:00:00Z\""] {
            let line = format!(r#"{{"schema":"stagger.run/1","event":"attempt","n":1,"next_s":1,"time":{time}}}"#);
            let error = read(&line).unwrap_err().to_string();
            assert!(error.contains(&format!("time is {time}; expected one like")), "{error}");
        }
        // In other objects, the field is not ours.
        assert_eq!(read(r#"{"delay_s":1,"time":7}"#).unwrap().entries[0].time, None);
    }

    #[test]
    fn other_objects_with_a_delay_are_read() {
        let log = read("{\"delay_s\":0.5,\"client\":7,\"retry\":2,\"time_s\":1e3}\n{\"delay_s\":1,\"client\":\"x\"}")
            .unwrap();
        let [one, other] = &log.entries[..] else { panic!("{log:?}") };
        assert_eq!(
            (one.client.as_deref(), one.retry, one.time),
            (Some("7"), Some(2), Some(Duration::from_secs(1_000)))
        );
        assert_eq!((other.client.as_deref(), other.retry, other.time), (Some("x"), Some(1), None));
    }

    #[test]
    fn the_error_for_invalid_json_names_the_problem() {
        for (text, want) in [
            ("{", "invalid JSON"),
            ("{\"delay_s\":\"1\"}", "invalid JSON"),
            ("{\"delay_s\":-1}", "delay_s is -1"),
            ("{\"delay_s\":1,\"client\":[2]}", "client is [2]; expected a string or a number"),
            ("{\"delay_s\":1e300}", "delay_s is"),
            ("{\"delay_s\":1,\"retry\":0}", "retries count from 1"),
            ("{}", "missing delay_s"),
            ("{\"schema\":\"stagger.plan/1\"}", "`stagger.plan/1`; expected stagger.run/1"),
            ("{\"schema\":\"stagger.run/1\"}", "has no event"),
            ("{\"schema\":\"stagger.run/1\",\"event\":\"start\"}", "has no policy"),
            ("{\"schema\":\"stagger.run/1\",\"event\":\"start\",\"policy\":\"no\"}", "policy: `no`"),
            ("{\"schema\":\"stagger.run/1\",\"event\":\"attempt\",\"next_s\":1}", "has no number n"),
        ] {
            let error = read(text).unwrap_err().to_string();
            assert!(error.starts_with("line 1: ") && error.contains(want), "{text}: {error}");
        }
    }
}

/// Tests that no text causes a panic.
#[test]
fn any_text_is_read_or_rejected() {
    use proptest::prelude::*;
    proptest!(|(text in "([-0-9.,a-z{}\":_#\\n \\t]{0,60}|\\PC{0,40})")| {
        if let Ok(log) = read(&text) {
            let _ = check(&log, Some(&Policy::DEFAULT));
        }
    });
}
