//! `stagger run --http`, and headers in the advice file, with real clients and a real server.

use std::process::Command;

use crate::origin::{Answer, OK, Origin};
use crate::support::{run, run_script, see, see_with_input, stagger};

const NOT_FOUND: Answer = Answer::Head(&["HTTP/1.1 404 Not Found"]);
const BUSY: Answer = Answer::Head(&["HTTP/1.1 503 Service Unavailable", "retry-after-ms: 20"]);

/// Returns `stagger run --http` with these flags and this command.
fn http(flags: &[&str], command: &[&str]) -> Command {
    let mut run = run(["--http"]);
    run.args(flags).arg("--").args(command);
    run
}

/// Returns a run of `curl -fsS` that writes its headers to the advice file.
fn advised(flags: &[&str], url: &str) -> Command {
    let mut run = run_script(flags, r#"curl -fsS -D "$STAGGER_ADVICE" "$0""#);
    run.arg(url);
    run
}

#[test]
fn headers_in_the_advice_file_decide_what_is_retried() {
    needs!("curl");
    let origin = Origin::start(&[BUSY, OK]);
    see(&mut advised(&[], &origin.url()))
        .exits(0)
        .prints("hello\n")
        .says("retry_after=0.02s")
        .is_silent_about("invalid");
    assert_eq!(origin.requests(), ["GET / HTTP/1.1"; 2]);
    let origin = Origin::start(&[NOT_FOUND]);
    see(&mut advised(&[], &origin.url())).exits(22).says("attempt=1/4").says("reason=http-status");
    assert_eq!(origin.requests().len(), 1);
}

/// Returns the command of the page for a script, with another address.
fn script_of_the_page(url: &str) -> Command {
    const PAGE: &str = include_str!("../../../../docs/guide/run.md");
    let (_, section) = PAGE.split_once("### In a script").expect("the section");
    let line = section.split("```").nth(1).expect("its example").trim_start_matches("sh\n");
    let line = line.replace("https://api.example/health", url);
    let words = shlex::split(&line).expect("a line of a shell");
    let (program, words) = words.split_first().expect("a command");
    assert_eq!((&**program, &*words[0]), ("stagger", "run"));
    let mut command = run(["-n", "3"]);
    command.args(&words[1..]);
    command
}

#[test]
fn a_script_fails_where_curl_fails_and_is_retried_as_the_server_says() {
    needs!("curl", "jq");
    const READY: Answer = Answer::Body("{\"ready\": true}\n");
    const LATER: Answer = Answer::Head(&["HTTP/1.1 429 Too Many Requests", "retry-after-ms: 20"]);
    let asks = |answers: &[Answer]| {
        let origin = Origin::start(answers);
        (see(&mut script_of_the_page(&origin.url())), origin.requests().len())
    };
    for answers in [[BUSY, READY], [LATER, READY]] {
        let (seen, requests) = asks(&answers);
        seen.exits(0).prints("true\n").says("retry_after=0.02s");
        assert_eq!(requests, 2);
    }
    // Empty, not ready, half, nothing at all.
    for answer in [
        Answer::Body(""),
        Answer::Body("{\"ready\": false}\n"),
        Answer::HalfBody(&["HTTP/1.1 200 OK"]),
        Answer::Nothing,
    ] {
        let (seen, requests) = asks(&[answer, READY]);
        seen.exits(0).says("attempt=2/3 result=ok");
        assert_eq!((&*seen.stdout.replace("false\n", ""), requests), ("true\n", 2), "{answer:?}");
    }
    let (seen, requests) = asks(&[BUSY]);
    seen.exits(22).says("attempt=3/3").prints("");
    assert_eq!(requests, 3);
    let (seen, requests) = asks(&[NOT_FOUND]);
    seen.exits(22).says("reason=http-status");
    assert_eq!(requests, 1);
    see(&mut script_of_the_page(&Origin::nowhere())).exits(7).says("attempt=3/3");
}

#[test]
fn without_the_flag_headers_are_about_failures_only() {
    let busy = "printf 'HTTP/1.1 503 Busy\\r\\nRetry-After: 99\\r\\n\\r\\n' > $STAGGER_ADVICE";
    see(&mut run_script(&["-v"], busy)).exits(0).says("attempt=1/4 result=ok http=503");
    // Instructions of the command itself take precedence.
    let script = format!("{busy}; echo retry-after=20ms >> $STAGGER_ADVICE; exit 3");
    see(&mut run_script(&["-n", "2"], &script)).exits(3).says("retry_after=0.02s");
    // A header may be written alone.
    let script = "echo 'Retry-After: 301' > $STAGGER_ADVICE; exit 3";
    see(&mut run_script(&["-n", "2"], script)).exits(3).says("stop=hint");
}

#[test]
fn explicit_sets_take_precedence_over_the_status() {
    needs!("curl");
    let origin = Origin::start(&[NOT_FOUND]);
    see(&mut advised(&["-n", "2", "--retry-on", "22"], &origin.url())).exits(22).says("attempt=2/2");
    see(&mut http(&["-n", "2", "--retry-on", "22"], &["curl", "-fsS", &origin.url()])).exits(22).says("attempt=2/2");
    let origin = Origin::start(&[BUSY]);
    see(&mut advised(&["--stop-on", "22"], &origin.url())).exits(22).says("attempt=1/4").says("reason=stop-on");
}

#[test]
fn the_last_response_after_redirects_and_interim_ones_decides() {
    needs!("curl");
    const MOVED: Answer = Answer::Head(&["HTTP/1.1 302 Found", "Location: /there", "Retry-After: 99"]);
    const CONTINUE: Answer = Answer::Head(&["HTTP/1.1 100 Continue", "", "HTTP/1.1 404 Not Found"]);
    let origin = Origin::start(&[MOVED, BUSY, MOVED, CONTINUE]);
    let seen = see(&mut http(&[], &["curl", "-sSL", &origin.url()]));
    seen.exits(22).says("retry_after=0.02s").says("attempt=2/4 result=exit:22 http=404").says("reason=http-status");
    assert_eq!(origin.requests().len(), 4);
}

#[test]
fn a_failed_status_is_a_failure_without_the_flag_of_curl() {
    needs!("curl");
    let origin = Origin::start(&[BUSY, OK]);
    see(&mut http(&[], &["curl", "-sS", &origin.url()])).exits(0).says("result=exit:22 http=503");
    let origin = Origin::start(&[NOT_FOUND]);
    see(&mut http(&[], &["curl", "-sS", &origin.url()])).exits(22).says("attempt=1/4");
}

#[test]
fn a_post_is_repeated_only_if_that_is_safe() {
    needs!("curl");
    let post: &[&[&str]] = &[&["-d", "x"], &["-sSXPOST"], &["--json", "{}"], &["-F", "a=b"], &["-fsSd", "x"]];
    for words in post {
        let origin = Origin::start(&[BUSY, OK]);
        let url = origin.url();
        let command = [&["curl", "-sS"], *words, &[&*url]].concat();
        see(&mut http(&[], &command)).exits(22).says("reason=unsafe-to-retry");
        assert_eq!(origin.requests(), ["POST / HTTP/1.1"], "{words:?}");
        see(&mut http(&["--idempotent"], &command)).exits(0);
    }
    let origin = Origin::start(&[BUSY, OK]);
    let keyed = ["curl", "-sS", "-d", "x", "-H", "idempotency-key: 7", &origin.url()];
    see(&mut http(&[], &keyed)).exits(0);
    assert_eq!(origin.requests(), ["POST / HTTP/1.1"; 2]);
}

#[test]
fn a_post_that_was_never_sent_is_repeated() {
    needs!("curl");
    let url = Origin::nowhere();
    see(&mut http(&["-n", "2"], &["curl", "-sS", "-d", "x", &url])).exits(7).says("attempt=2/2");
    see(&mut http(&["-n", "2", "--retry-on", "127"], &["/no/such/curl", "-d", "x", &url]))
        .exits(127)
        .says("attempt=2/2");
    // The first of two requests may have been sent.
    see(&mut http(&["-n", "2"], &["curl", "-sS", "-d", "x", &url, &url])).exits(7).says("reason=unsafe-to-retry");
}

#[test]
fn a_body_from_standard_input_is_sent_whole_each_time() {
    needs!("curl");
    for words in [["--data-binary", "@-"], ["-sSd", "@-"], ["--json", "@-"], ["-d", "@/dev/stdin"]] {
        let origin = Origin::start(&[BUSY, OK]);
        let url = origin.url();
        let command = ["curl", "-fsS", "-X", "PUT", words[0], words[1], &url];
        see_with_input(&mut http(&[], &command), b"an order").exits(0);
        assert_eq!(origin.bodies(), ["an order"; 2], "{words:?}");
        let seen = see_with_input(&mut http(&["--stdin", "inherit"], &command), b"an order");
        seen.exits(125).says("--stdin replay");
    }
}

#[test]
fn a_post_that_succeeds_is_not_repeated_either() {
    needs!("curl");
    let origin = Origin::start(&[OK]);
    let command = ["curl", "-fsS", "-d", "x", &origin.url()];
    for flags in [["--consecutive", "2"], ["--until", "none"]] {
        see(&mut http(&flags, &command)).says("reason=unsafe-to-retry");
    }
    assert_eq!(origin.requests().len(), 2);
}

#[test]
fn explicit_sets_do_not_make_a_post_safe() {
    needs!("curl");
    let origin = Origin::start(&[BUSY]);
    see(&mut http(&["--retry-on", "any"], &["curl", "-sS", "-d", "x", &origin.url()]))
        .exits(22)
        .says("reason=unsafe-to-retry");
    assert_eq!(origin.requests().len(), 1);
}

#[test]
fn retries_of_the_client_itself_are_noted_once() {
    needs!("curl");
    let origin = Origin::start(&[BUSY, OK]);
    let seen =
        see(&mut http(&[], &["curl", "-fsS", "--retry", "0", "--retry", "2", "--retry-delay", "1", &origin.url()]));
    seen.exits(0).says("note: curl retries by itself (--retry 2)");
    assert_eq!(seen.stderr.matches("by itself").count(), 1, "{seen:?}");
    let origin = Origin::start(&[OK]);
    see(&mut http(&[], &["wget", "-qO-", &origin.url()]))
        .exits(0)
        .says("note: wget retries by itself")
        .says("--tries=1");
    see(&mut http(&[], &["wget", "-qO-", "--tries=1", &origin.url()])).exits(0).is_silent_about("by itself");
}

#[test]
fn verbose_says_what_is_added_to_the_command() {
    needs!("curl");
    let origin = Origin::start(&[OK]);
    let url = origin.url();
    see(&mut http(&["-v"], &["curl", "-fsS", &url]))
        .exits(0)
        .says("added -D FILE to curl")
        .says("GET")
        .says("its method is idempotent");
    see(&mut http(&["-v"], &["curl", "-fsS", "-d", "x", &url])).exits(0).says("POST").says("it is not idempotent");
    let seen = see(&mut http(&[], &["curl", "-fsS", &url]));
    assert_eq!(seen.exits(0).prints("hello\n").stderr, "");
}

#[test]
fn wget_prints_what_it_prints_without_stagger() {
    needs!("curl", "wget");
    let origin = Origin::start(&[OK]);
    let url = origin.url();
    let log = |text: &str| {
        let lines = text
            .lines()
            .filter(|line| !line.contains("--20") && !line.contains("KB/s") && !line.contains("written to stdout"));
        lines.map(str::to_owned).collect::<Vec<_>>()
    };
    let plain = Command::new("wget").args(["-O-", "--tries=1", &url]).env("LC_ALL", "C.UTF-8").output().unwrap();
    let seen = see(http(&[], &["wget", "-O-", "--tries=1", &url]).env("LC_ALL", "C.UTF-8"));
    seen.exits(0).prints("hello\n").is_silent_about("  HTTP/1.1");
    let drawn = |line: &String| !line.contains('%');
    let (plain, seen) = (log(&String::from_utf8_lossy(&plain.stderr)), log(&seen.stderr));
    assert_eq!(
        plain.iter().filter(|l| drawn(l)).collect::<Vec<_>>(),
        seen.iter().filter(|l| drawn(l)).collect::<Vec<_>>()
    );
    let quiet = see(&mut http(&[], &["wget", "-qO-", "--tries=1", &url]));
    assert_eq!(quiet.exits(0).prints("hello\n").stderr, "");
    see(&mut http(&[], &["wget", "-qSO-", "--tries=1", &url])).exits(0).says("  HTTP/1.1 200 OK");
}

#[test]
fn the_log_of_wget_is_searched() {
    needs!("curl", "wget");
    let origin = Origin::start(&[NOT_FOUND, OK]);
    let flags = ["--retry-if-stderr", "ERROR 404"];
    see(&mut http(&flags, &["wget", "-nv", "-O-", "--tries=1", &origin.url()]))
        .exits(0)
        .says("attempt=2/4 result=ok http=200");
}

#[test]
fn clients_that_cannot_be_read_are_refused_with_a_way_out() {
    for (command, want) in [
        (&["http", "GET", "http://127.0.0.1:1/"][..], "HTTPie"),
        (&["sh", "-c", "curl http://127.0.0.1:1/"], "curl -D \"$STAGGER_ADVICE\""),
        (&["curl", "-D", "-", "http://127.0.0.1:1/"], "-D"),
        (&["curl", "-T", "/dev/fd/63", "http://127.0.0.1:1/"], "standard input"),
        (&["wget", "-o", "log", "http://127.0.0.1:1/"], "-o"),
        (&["wget", "-b", "http://127.0.0.1:1/"], "-b"),
    ] {
        let seen = see(&mut http(&[], command));
        seen.exits(125).says("--http").says(want);
    }
    see(run(["--idempotent", "--", "true"]).arg("x")).exits(125).says("--http");
    see(&mut run(["--http", "--shell", "--", "curl x"])).exits(125).says("--shell");
}

#[test]
fn a_hint_beyond_max_hint_ends_the_run_and_the_flag_changes_it() {
    needs!("curl");
    const LATER: Answer = Answer::Head(&["HTTP/1.1 503 Service Unavailable", "Retry-After: 1"]);
    let origin = Origin::start(&[LATER, OK]);
    let command = ["curl", "-fsS", &origin.url()];
    see(&mut http(&["--max-hint", "900ms"], &command)).exits(22).says("stop=hint");
    let origin = Origin::start(&[Answer::Head(&["HTTP/1.1 503 Service Unavailable", "Retry-After: 301"])]);
    let command = ["curl", "-fsS", &origin.url()];
    see(&mut http(&[], &command)).exits(22).says("stop=hint");
    see(&mut http(&["--max-hint", "inf", "-T", "1m"], &command)).exits(22).says("stop=elapsed");
    see(&mut stagger(["run", "--help"])).exits(0);
}

#[test]
fn hints_that_cannot_be_true_neither_end_the_run_nor_delay_it() {
    for header in [
        "Retry-After: 253402300799",
        "Retry-After: Fri, 31 Dec 9999 23:59:59 GMT",
        "Retry-After: 99999999999999999999",
        "Retry-After: 1.5",
        "retry-after-ms: 253402300799000",
        "X-RateLimit-Reset: 18446744073709551615",
    ] {
        let server = format!("printf 'HTTP/1.1 429 Slow\\r\\n{header}\\r\\n\\r\\n' > $STAGGER_ADVICE; exit 3");
        let seen = see(&mut run_script(&["-n", "2", "--base", "10ms"], &server));
        seen.exits(3).says("attempt=2/2").is_silent_about("retry_after").is_silent_about("stop=hint");
    }
}

#[test]
fn a_reset_in_milliseconds_is_a_time() {
    let server = r#"printf "HTTP/1.1 429 Slow\r\nX-RateLimit-Remaining: 0\r\nX-RateLimit-Reset: $(date +%s%3N)\r\n\r\n" \
        > $STAGGER_ADVICE; exit 3"#;
    see(&mut run_script(&["-n", "2", "--base", "10ms"], server)).exits(3).says("retry_after=0").says("attempt=2/2");
}

#[test]
fn a_403_that_announces_a_wait_is_retried_if_that_was_asked_for() {
    needs!("curl");
    const LIMITED: Answer =
        Answer::Head(&["HTTP/1.1 403 Forbidden", "X-RateLimit-Remaining: 0", "X-RateLimit-Reset: 1000000000"]);
    const WAIT: Answer = Answer::Head(&["HTTP/1.1 403 Forbidden", "retry-after-ms: 20"]);
    const TOO_LARGE: Answer = Answer::Head(&["HTTP/1.1 413 Content Too Large", "Retry-After: 0"]);
    const DENIED: Answer =
        Answer::Head(&["HTTP/1.1 403 Forbidden", "X-RateLimit-Remaining: 4999", "X-RateLimit-Reset: 1000000000"]);
    for answer in [LIMITED, WAIT, TOO_LARGE] {
        let origin = Origin::start(&[answer, OK]);
        see(&mut http(&["--announced-waits", "--base", "10ms"], &["curl", "-fsS", &origin.url()]))
            .exits(0)
            .prints("hello\n");
        let origin = Origin::start(&[answer, OK]);
        see(&mut advised(&["--announced-waits", "--base", "10ms"], &origin.url())).exits(0).prints("hello\n");
        let origin = Origin::start(&[answer, OK]);
        see(&mut http(&[], &["curl", "-fsS", &origin.url()])).exits(22).says("reason=http-status");
        assert_eq!(origin.requests().len(), 1, "{answer:?}");
    }
    let origin = Origin::start(&[DENIED, OK]);
    see(&mut http(&["--announced-waits"], &["curl", "-fsS", &origin.url()])).exits(22).says("reason=http-status");
}
