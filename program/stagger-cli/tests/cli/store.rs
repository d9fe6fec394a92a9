//! A budget and operator controls in Redis.

use core::time::Duration;
use std::fs;
use std::process::Command;
use std::time::Instant;

use stagger_kit::{Port, Program, Ready, Server, Signal, User};

use crate::certificate::Certificate;
use crate::support::{Files, Running, Seen, eventually, run_script, said, see, stagger};

/// A real server without data.
pub(crate) struct Redis {
    // Drop order: the server is killed before its directory is removed and its port is released.
    server: Server,
    _data: tempfile::TempDir,
    port: Port,
}

impl Redis {
    pub(crate) fn start() -> Self {
        Self::start_with(|port| vec!["--port".to_owned(), port.to_owned()])
    }

    /// Starts a server that speaks TLS only.
    fn start_tls(files: &Files) -> Self {
        let certificate = Certificate::issue(files);
        let pem = files.write("server.pem", certificate.pem).display().to_string();
        let key = files.write("server.key", certificate.key).display().to_string();
        let files = ["--tls-cert-file", &pem, "--tls-key-file", &key, "--tls-auth-clients", "no", "--port", "0"];
        Self::start_with(|port| [&files[..], &["--tls-port", port]].concat().into_iter().map(str::to_owned).collect())
    }

    fn start_with(args: impl FnOnce(&str) -> Vec<String>) -> Self {
        let (port, data) =
            (Port::reserve().expect("the server starts"), User::current().directory().expect("the server starts"));
        let number = port.number().to_string();
        let program = Program::find("redis-server").expect("the server starts").directory(data.path());
        let program = program.args(["--bind", "127.0.0.1", "--save", ""]).args(args(&number));
        let server =
            Server::start(program, Ready::Port(port.address()), Duration::from_secs(10)).expect("the server starts");
        Self { server, _data: data, port }
    }

    pub(crate) fn url(&self, name: &str) -> String {
        format!("redis://{}/{name}", self.port.address())
    }
}

/// Returns a run of a command that adds a line to the ledger and fails, with a budget of so many retries for two runs.
fn failing(files: &Files, url: &str, size: &str, flags: &[&str]) -> Command {
    let budget = ["--cap", "10ms", "--budget", url, "--budget-size", size, "--budget-processes", "2"];
    let mut command = run_script(&[&budget[..], flags].concat(), "echo called >> \"$LEDGER\"; exit 9");
    command.env("LEDGER", files.path("ledger"));
    command
}

fn calls(files: &Files) -> usize {
    fs::read_to_string(files.path("ledger")).unwrap_or_default().lines().count()
}

#[test]
fn runs_that_name_the_same_address_share_one_budget_and_hand_back_what_they_do_not_use() {
    needs!("redis-server");
    let (redis, files) = (Redis::start(), Files::new());
    let url = redis.url("jobs");
    // Two of six retries.
    let first = see(&mut failing(&files, &url, "6", &["-n", "3"]));
    first.exits(9).says("stop=attempts");
    assert_eq!(calls(&files), 3, "{first:?}");
    // The other four, by two runs that want more.
    let runs = [(); 2].map(|()| Running::start(&mut failing(&files, &url, "6", &["-n", "20"])));
    let seen = runs.map(Running::end);
    assert!(seen.iter().all(|seen| seen.stderr.contains("stop=budget")), "{seen:?}");
    assert_eq!(calls(&files), 3 + 2 + 4, "{seen:?}");
    // A success returns one.
    let mut success = run_script(&["--budget", &url, "--budget-size", "6", "--budget-processes", "2"], "sleep 0.5");
    see(&mut success).exits(0);
    let last = see(&mut failing(&files, &url, "6", &["-n", "20"]));
    last.exits(9).says("stop=budget");
    assert_eq!(calls(&files), 9 + 2, "{last:?}");
}

#[test]
fn a_store_that_is_away_or_hangs_neither_stops_nor_delays_a_run_and_is_told_once() {
    needs!("redis-server");
    let (mut redis, port) = (Redis::start(), Port::reserve().unwrap());
    redis.server.running().unwrap().signal(Signal::STOP).unwrap();
    for url in [format!("redis://{}/jobs", port.address()), redis.url("jobs")] {
        let files = Files::new();
        let begun = Instant::now();
        let seen = see(&mut failing(&files, &url, "8", &["-n", "9"]));
        // Nobody knows how many runs start meanwhile.
        seen.exits(9).says("stop=budget").says("this run makes no retries until it does");
        assert_eq!(calls(&files), 1, "{seen:?}");
        assert_eq!(seen.stderr.matches("does not answer").count(), 1, "{seen:?}");
        // Waiting for the first reply, and at the end, on a busy machine.
        assert!(begun.elapsed() < Duration::from_secs(2), "{:?}", begun.elapsed());
        let begun = Instant::now();
        see(&mut run_script(&["--budget", &url, "--budget-processes", "2"], "true")).exits(0);
        assert!(begun.elapsed() < Duration::from_millis(500), "{:?}", begun.elapsed());
    }
    redis.server.running().unwrap().signal(Signal::CONT).unwrap();
}

#[test]
fn a_store_is_reached_over_tls_if_its_certificate_is_trusted() {
    needs!("redis-server");
    let files = Files::new();
    let redis = Redis::start_tls(&files);
    let url = redis.url("jobs").replace("redis:", "rediss:");
    for (trusted, set, calls_made) in [("ca.pem", true, 1 + 3), ("server.key", false, 1 + 3 + 1)] {
        let trusted = files.path(trusted);
        let mut control = stagger(["control", "set", &url, "other=no-retries"]);
        let seen = see(control.env("SSL_CERT_FILE", &trusted));
        assert_eq!(seen.status.success(), set, "{seen:?}");
        // The whole budget, or nothing of it.
        let seen = see(failing(&files, &url, "4", &["-n", "4"]).env("SSL_CERT_FILE", &trusted));
        assert_eq!(seen.exits(9).stderr.contains("does not answer"), !set, "{seen:?}");
        assert_eq!(calls(&files), calls_made, "{seen:?}");
    }
}

#[test]
fn a_password_is_not_logged() {
    let port = Port::reserve().unwrap();
    let url = format!("redis://user:hunter2@{}/jobs", port.address());
    let seen = see(&mut failing(&Files::new(), &url, "4", &["-n", "2", "--log", "json"]));
    assert!(seen.exits(9).stderr.contains("/jobs") && !seen.stderr.contains("hunter2"), "{seen:?}");
}

#[test]
fn controls_in_redis_are_set_shown_and_cleared() {
    needs!("redis-server");
    let redis = Redis::start();
    let url = redis.url("shop");
    let control = |action: &str, words: &[&str]| -> Seen {
        see(stagger(["control", action, &url]).args(words).env("USER", "operator"))
    };
    assert_eq!(said(&mut stagger(["control", "show", &url])), "");
    control("set", &["api=25%", "--reason", "slow since 14:05"]).exits(0);
    control("set", &["db=no-retries", "--for", "30m"]).exits(0);
    let text = said(&mut stagger(["control", "show", &url]));
    let lines: Vec<_> = text.lines().collect();
    let [others, api, db, end] = lines[..] else { panic!("{text}") };
    assert_eq!(others, "*    enforced");
    assert!(api.starts_with("api  enforced 25%  20") && api.ends_with("Z operator: slow since 14:05"), "{api}");
    assert!(
        db.starts_with("db   no-retries") && end.starts_with("They end in 2") || end.starts_with("They end in 30m"),
        "{end}"
    );
    let json: serde_json::Value =
        serde_json::from_str(&said(&mut stagger(["control", "show", &url, "--json"]))).unwrap();
    assert!(json["ends_in_s"].as_f64().is_some_and(|left| left > 1_700.0 && left <= 1_800.0), "{json}");
    assert!(json["age_s"].as_f64().is_some_and(|age| age < 60.0), "{json}");
    assert_eq!((&json["controls"][1]["target"], &json["controls"][1]["share"]), (&"api".into(), &0.25.into()));
    control("clear", &["db"]).exits(0);
    assert_eq!(said(&mut stagger(["control", "show", &url])).lines().count(), 3);
    for (words, message) in
        [(&["api=none"][..], "unknown setting `none`"), (&["api=off", "--for", "soon"], "is not a length of time")]
    {
        control("set", words).exits(2).says(message);
    }
    see(&mut stagger(["control", "set", "file", "api=off", "--for", "30m"])).exits(2).says("is for controls in Redis");
    let port = Port::reserve().unwrap();
    let away = format!("redis://{}/shop", port.address());
    see(&mut stagger(["control", "show", &away])).says("cannot reach redis://");
}

#[test]
fn an_operator_control_of_the_target_run_holds_for_the_runs_of_a_budget() {
    needs!("redis-server");
    let (redis, files) = (Redis::start(), Files::new());
    let url = redis.url("jobs");
    see(&mut stagger(["control", "set", &url, "run=no-retries"])).exits(0);
    let seen = see(&mut failing(&files, &url, "100", &["-n", "4"]));
    seen.exits(9).says("stop=budget");
    assert_eq!(calls(&files), 1, "{seen:?}");
}

#[test]
fn a_run_that_waits_for_its_retry_ends_by_a_signal_at_once() {
    needs!("redis-server");
    let (redis, files) = (Redis::start(), Files::new());
    let mut command =
        failing(&files, &redis.url("jobs"), "4", &["-n", "4", "--base", "60s", "--cap", "60s", "--jitter", "none"]);
    let running = Running::start(&mut command);
    eventually("the command has failed", || calls(&files) == 1);
    let begun = Instant::now();
    running.signal(Signal::TERM);
    running.end().dies_of(Signal::TERM);
    assert!(begun.elapsed() < Duration::from_secs(2), "{:?}", begun.elapsed());
}
