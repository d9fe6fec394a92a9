//! What the help and the guide say about `stagger wait`, beside the table of uses.

use core::sync::atomic::{AtomicUsize, Ordering};
use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpListener;
use std::process::Command;
use std::sync::Arc;
use std::thread;

use rustix::process::Signal;
use serde_json::Value;

use super::scenes::{self, read_until, response, serve};
use crate::support::{Files, Running, Seen, eventually, see, stagger, state};

fn wait(words: &[&str]) -> Command {
    let mut command = stagger(["wait"]);
    for name in
        ["http_proxy", "https_proxy", "all_proxy", "no_proxy", "HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "NO_PROXY"]
    {
        command.env_remove(name);
    }
    command.args(words);
    command
}

/// Starts an HTTP server that gives every request this response, and returns its URL.
fn url(respond: impl Fn(&str) -> String + Send + 'static) -> String {
    let (listener, url) = listener();
    serve(listener, respond);
    url
}

/// Returns a listener, and the URL of a server on it.
fn listener() -> (TcpListener, String) {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port is free");
    let url = format!("http://{}/", listener.local_addr().expect("the port is known"));
    (listener, url)
}

/// Makes one attempt.
fn once(words: &[&str]) -> Seen {
    see(&mut wait(&[&["-n", "1"], words].concat()))
}

#[test]
fn the_command_replaces_stagger_and_passes_its_status() {
    let running = Running::start(&mut wait(&["-q", "file:/", "--", "sh", "-c", "echo $$; exit 7"]));
    let pid = running.pid().as_raw_nonzero().to_string();
    running.end().exits(7).prints(&format!("{pid}\n"));
}

#[test]
fn without_success_the_command_is_not_run() {
    let files = Files::new();
    let flag = files.path("ran");
    once(&["file:/nowhere", "--", "touch", flag.to_str().unwrap()]).exits(124);
    assert!(!flag.exists());
}

#[test]
fn exit_statuses_are_those_of_gnu_timeout() {
    let nowhere = Files::new();
    let script = nowhere.write("script", "");
    for (words, want) in [
        (&["file:/"][..], 0),
        (&["-t", "50ms", "file:/nowhere"], 124),
        (&["-n", "2", "file:/nowhere"], 124),
        (&["nothing"], 125),
        (&[], 125),
        (&["--bogus"], 125),
        (&["-t", "0", "file:/"], 125),
        (&["--attempt-timeout", "inf", "file:/"], 125),
        (&["--status", "2x", "file:/"], 125),
        (&["--body", "(", "file:/"], 125),
        (&["--cacert", "/nowhere", "file:/"], 125),
        (&["--gone", "pid:1"], 125),
        (&["file:/", "--", script.to_str().unwrap()], 126),
        (&["file:/", "--", "no-such-command"], 127),
        (&["--fail-fast", "--command", "no-such-command"], 1),
    ] {
        assert_eq!(see(&mut wait(words)).status.code(), Some(want), "{words:?}");
    }
}

#[test]
fn a_timeout_names_the_last_reason_of_each_target() {
    let url = url(|_| response("503 Busy", "", ""));
    let words = ["-n", "2", "--any", "127.0.0.1:1", "host.invalid:80", &url, "file:/nowhere", "unix:/nowhere"];
    let seen = see(wait(&words).args(["--command", "echo early >&2; echo no luck >&2; exit 3"]));
    seen.exits(124).prints("");
    for line in [
        "stagger: 127.0.0.1:1: not ready after ",
        ": connection refused, 2 attempts\n",
        ": cannot look up host.invalid: ",
        ": 503 Service Unavailable, 2 attempts\n",
        "stagger: file:/nowhere: not ready after ",
        ": does not exist, 2 attempts\n",
        ": exit 3: no luck, 2 attempts\n",
    ] {
        seen.says(line);
    }
    assert_eq!(seen.stderr.lines().count(), 6, "{seen:#?}");
}

#[test]
fn a_pipe_receives_one_line_for_each_target() {
    let seen = see(&mut wait(&["file:/", "file:/tmp"]));
    seen.exits(0).prints("").says("stagger: file:/: ready after ").says("stagger: file:/tmp: ready after ");
    assert_eq!(seen.stderr.lines().count(), 2, "{seen:#?}");
}

#[test]
fn quiet_writes_nothing() {
    for words in [["-q", "file:/"], ["-q", "file:/nowhere"]] {
        assert_eq!(once(&words).stderr, "", "{words:?}");
    }
}

#[test]
fn json_lines_tell_each_step() {
    let seen = see(&mut wait(&["--log", "json", "--any", "-n", "2", "--seed", "5", "127.0.0.1:1", "file:/nowhere"]));
    let lines: Vec<Value> = seen.stderr.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let events: Vec<_> = lines.iter().map(|line| line["event"].as_str().unwrap()).collect();
    assert_eq!(events, ["start", "attempt", "attempt", "attempt", "attempt", "done"]);
    for line in &lines {
        assert!(
            line["schema"] == "stagger.wait/1" && line["run"] == lines[0]["run"] && line["elapsed_s"].is_number(),
            "{line}"
        );
        assert!(line["time"].as_str().is_some_and(|time| time.starts_with("20") && time.ends_with('Z')), "{line}");
    }
    assert!(lines[0]["seed"] == 5 && lines[0]["run"].as_str().is_some_and(|run| run.len() == 16), "{lines:#?}");
    assert!(lines[1]["next_s"].is_number() && lines[1]["ready"] == false, "{lines:#?}");
    assert_eq!(lines[5]["exit"], 124);
    assert_eq!(lines[5]["targets"][0]["reason"], "connection refused");
    let ready = once(&["--log", "json", "file:/"]);
    let lines: Vec<Value> = ready.stderr.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!((lines[2]["event"].as_str(), lines[3]["ok"].as_bool()), (Some("ready"), Some(true)), "{lines:#?}");
}

#[test]
fn passwords_and_queries_are_not_logged() {
    let url = url(|_| response("503 Busy", "", "")).replace("http://", "http://user:secret@") + "?token=secret";
    for format in ["human", "json"] {
        let seen = once(&["--log", format, "-v", "-H", "X-Key: secret", &url, "http://u:secret@127.0.0.1:1/?secret"]);
        seen.exits(124).is_silent_about("secret");
    }
}

/// A user and password in the URL are sent as its Authorization header.
#[test]
fn credentials_of_a_url_are_sent() {
    let url = url(|head| {
        let known = head.to_ascii_lowercase().contains("authorization: basic dtpw");
        response(if known { "200 OK" } else { "401 Unauthorized" }, "", "")
    });
    once(&[&url.replace("http://", "http://u:p@")]).exits(0);
}

#[test]
fn redirects_are_followed_only_on_request() {
    let url = url(|head| match head.split(' ').nth(1) {
        Some("/") => response("302 Found", "Location: /there\r\n", ""),
        _ => response("200 OK", "", ""),
    });
    once(&[&url]).exits(124).says("302 Found");
    once(&["-L", &url]).exits(0);
    once(&["--status", "3xx", &url]).exits(0);
    once(&["--fail-fast", &url]).exits(1).says("gave up after");
}

#[test]
fn headers_are_sent_again_within_an_origin_and_to_no_other() {
    let respond = |elsewhere: String| {
        url(move |head| {
            let knows = head.to_ascii_lowercase().contains("x-api-key: secret");
            match (head.split(' ').nth(1), knows) {
                (Some("/"), true) => response("302 Found", "Location: /there\r\n", ""),
                (Some("/there"), true) => response("307 Temporary Redirect", &format!("Location: {elsewhere}\r\n"), ""),
                (Some("/elsewhere"), false) => response("200 OK", "", ""),
                _ => response("400 Bad Request", "", ""),
            }
        })
    };
    let other = respond(String::new());
    let first = respond(format!("{other}elsewhere"));
    once(&["-L", "-H", "X-Api-Key: secret", &first]).exits(0);
    once(&["-L", &first]).exits(124).says("400 Bad Request");
}

#[test]
fn a_loop_of_redirects_ends() {
    let url = url(|_| response("302 Found", "Location: /\r\n", ""));
    once(&["-L", "--fail-fast", &url]).exits(1).says("more than 10 redirects");
}

#[test]
fn a_body_is_searched_up_to_its_first_mib() {
    // A body without an end.
    let (listener, url) = listener();
    thread::spawn(move || {
        for mut stream in listener.incoming().flatten() {
            let _ = stream.read(&mut [0; 1024]);
            let _ = stream.write_all(b"HTTP/1.1 200 OK\r\n\r\n");
            let before = ["early", &".".repeat(1_000_000), "within", &".".repeat(100_000), "beyond"].concat();
            let _ = stream.write_all(before.as_bytes());
            while stream.write_all(&[b'.'; 64 * 1024]).is_ok() {}
        }
    });
    once(&["--body", "^early", &url]).exits(0);
    once(&["--body", "within", &url]).exits(0);
    once(&["--body", "beyond", &url]).exits(124).says("the body does not match");
}

#[test]
fn endless_headers_end_the_attempt() {
    let (listener, url) = listener();
    thread::spawn(move || {
        for mut stream in listener.incoming().flatten() {
            let _ = stream.write_all(b"HTTP/1.1 200 OK\r\n");
            while stream.write_all(format!("X: {}\r\n", "y".repeat(60_000)).as_bytes()).is_ok() {}
        }
    });
    let seen = once(&[&url]);
    seen.exits(124).is_silent_about("no answer within");
}

#[test]
fn a_server_that_does_not_answer_ends_the_attempt_at_its_limit() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    let limit = ["--attempt-timeout", "200ms"];
    once(&[&limit[..], &[&format!("http://{address}/")]].concat()).exits(124).says("no answer within 200ms");
    // It accepts connections.
    once(&[&limit[..], &[&address.to_string()]].concat()).exits(0);
    once(&[&limit[..], &["--command", "sleep 100"]].concat()).exits(124).says("no answer within 200ms");
    // Neither is proof that it is gone.
    once(&[&limit[..], &["--gone", &format!("http://{address}/")]].concat()).exits(124).says("no answer within");
}

#[test]
fn a_retry_after_sets_the_next_attempt() {
    let url = url(|_| response("503 Busy", "Retry-After: 20\r\n", ""));
    let mut running = Running::start(&mut wait(&["--log", "json", &url]));
    let mut stderr = BufReader::new(running.child.stderr.take().unwrap());
    let read = read_until(&mut stderr, "\"event\":\"attempt\"");
    let attempt: Value = serde_json::from_str(read.lines().last().unwrap()).unwrap();
    assert_eq!(attempt["reason"], "503 Service Unavailable, retry after 20s");
    assert!(attempt["next_s"].as_f64().is_some_and(|next| next >= 20.0), "{attempt}");
}

#[test]
fn an_untrusted_certificate_is_the_reason() {
    let files = Files::new();
    let scene = scenes::https(&files);
    let url = format!("https://localhost:{}/", scene.variables[0].1);
    let _guard = (scene.begin)();
    let ca = files.path("ca.pem");
    once(&["--cacert", ca.to_str().unwrap(), &url]).exits(0);
    once(&[&url]).exits(124).says("TLS: invalid peer certificate");
    once(&["--fail-fast", &url]).exits(1);
    once(&["--insecure", &url]).exits(0);
    // The server is there.
    once(&["--gone", &url]).exits(124);
    let empty = files.write("empty.pem", "");
    once(&["--cacert", empty.to_str().unwrap(), &url]).exits(125).says("no certificate in PEM form");
}

/// As in an image without the package of certificates.
#[test]
fn http_needs_no_certificates_of_the_system() {
    let url = url(|_| response("200 OK", "", ""));
    let without =
        |url: &str| see(wait(&["-n", "1", url]).env("SSL_CERT_FILE", "/nowhere").env("SSL_CERT_DIR", "/nowhere"));
    without(&url).exits(0);
    without("https://127.0.0.1:1/").exits(125).says("install them (ca-certificates)");
}

#[test]
fn proxies_are_used_as_curl_uses_them() {
    let asked = Arc::new(AtomicUsize::new(0));
    let count = Arc::clone(&asked);
    let proxy = url(move |_| {
        count.fetch_add(1, Ordering::SeqCst);
        response("418 Teapot", "", "")
    });
    let server = url(|_| response("200 OK", "", ""));
    for (variable, exception, want) in [
        ("http_proxy", "", 1),
        ("http_proxy", "127.0.0.1", 0),
        ("http_proxy", "127.0.0.0/8", 0),
        ("http_proxy", "*", 0),
        ("http_proxy", "example.com", 1),
        ("https_proxy", "", 0),
        ("all_proxy", "", 1),
        ("ALL_PROXY", "", 1),
        // A web server that runs a program by CGI makes it from a header of the request.
        ("HTTP_PROXY", "", 0),
    ] {
        asked.store(0, Ordering::SeqCst);
        let seen = see(wait(&["-n", "1", &server]).env(variable, &proxy).env("no_proxy", exception));
        assert_eq!(asked.load(Ordering::SeqCst), want, "{variable}, except {exception:?}: {seen:?}");
        seen.exits(if want == 1 { 124 } else { 0 });
    }
    // For https://, the proxy is asked for a tunnel.
    for variable in ["https_proxy", "HTTPS_PROXY"] {
        asked.store(0, Ordering::SeqCst);
        see(wait(&["-n", "1", "https://service.invalid/"]).env(variable, &proxy)).exits(124);
        assert_eq!(asked.load(Ordering::SeqCst), 1, "{variable}");
    }
    for variable in ["http_proxy", "ALL_PROXY"] {
        let seen = see(wait(&["http://service.invalid/"]).env(variable, "ftp://me:secret@h:1"));
        seen.exits(125).says(&format!("{variable} is not the address of a proxy"));
        assert!(!seen.stderr.contains("secret"), "{seen:?}");
    }
}

#[test]
fn what_fails_at_the_proxy_is_said_of_the_proxy() {
    let answering = |status: &'static str| url(move |_| response(status, "", ""));
    let at = |url: &str| url.trim_start_matches("http://").trim_end_matches('/').to_owned();
    let closed = {
        let (listener, url) = listener();
        drop(listener);
        at(&url)
    };
    let [denied, asking, failing] =
        ["403 Forbidden", "407 Proxy Authentication Required", "502 Bad Gateway"].map(|status| at(&answering(status)));
    const PLAIN: &str = "http://service.invalid/";
    const SECURE: &str = "https://service.invalid/";
    let ends = at(&url(|_| String::new()));
    for (target, proxy, want) in [
        (PLAIN, format!("http://{closed}"), format!("cannot reach the proxy {closed}: connection refused")),
        (SECURE, format!("http://{closed}"), format!("cannot reach the proxy {closed}: connection refused")),
        (SECURE, format!("https://{closed}"), format!("cannot reach the proxy {closed}: connection refused")),
        (
            PLAIN,
            "http://p.invalid:1".to_owned(),
            "cannot reach the proxy p.invalid:1: cannot look up p.invalid".to_owned(),
        ),
        (PLAIN, format!("me:secret@{asking}"), format!("the proxy {asking} asks for credentials: 407 Proxy Auth")),
        (SECURE, format!("me:secret@{asking}"), format!("the proxy {asking} asks for credentials (407)")),
        (PLAIN, denied.clone(), format!("403 Forbidden, through the proxy {denied}")),
        (SECURE, denied.clone(), format!("the proxy {denied} refused to connect to service.invalid")),
        (PLAIN, failing.clone(), format!("502 Bad Gateway, through the proxy {failing}")),
        (SECURE, failing.clone(), format!("the proxy {failing} refused to connect to service.invalid")),
        (SECURE, ends.clone(), format!("the proxy {ends} closed the connection")),
        (PLAIN, format!("socks5h://{closed}"), format!("cannot reach the proxy {closed}")),
        (SECURE, format!("socks4a://{closed}"), format!("cannot reach the proxy {closed}")),
    ] {
        let seen = see(wait(&["-n", "1", target]).env("all_proxy", &proxy));
        seen.exits(124).says(&want);
        assert!(!seen.stderr.contains("secret"), "{seen:?}");
        // Of the target, it proves nothing.
        see(wait(&["-n", "1", "--gone", target]).env("all_proxy", &proxy)).exits(124).says("the proxy ");
    }
    // Of another status, it is the server that says so.
    see(wait(&["-n", "1", "--gone", PLAIN]).env("http_proxy", at(&answering("404 Not Found")))).exits(0);
}

#[test]
fn an_attempt_that_has_not_ended_is_counted() {
    let silent = listener();
    for (target, want) in [
        ("pid:1", "not ready after 1m: is running, 1 attempt"),
        ("cmd:sleep 5", "the command has not ended, 1 attempt"),
        (&*silent.1, "no answer yet, 1 attempt"),
    ] {
        let seen = see(&mut wait(&["-t", "50ms", target]));
        let (_, want) = want.split_once(": ").unwrap_or(("", want));
        seen.exits(124).says(want);
    }
    see(&mut wait(&["-t", "50ms", "--spread", "1h", "--seed", "1", "file:/nowhere"]))
        .exits(124)
        .says("no attempt has begun, 0 attempts");
}

#[test]
fn a_scheme_may_be_in_upper_case() {
    let url = url(|_| response("200 OK", "", ""));
    once(&[&url.replace("http", "HTTP"), &url.replace("http", "Tcp"), "FILE:///"]).exits(0);
}

#[test]
fn signals_end_the_wait_and_its_commands() {
    for signal in [Signal::TERM, Signal::INT, Signal::HUP] {
        let files = Files::new();
        let script = format!("echo $$ > {}; sleep 1000", files.path("pid").display());
        let running = Running::start(&mut wait(&["-t", "inf", "--attempt-timeout", "1h", "--command", &script]));
        let command = files.wait_for_pid("pid");
        running.signal(signal);
        running.end().dies_of(signal).says("interrupted after");
        eventually("the command has ended", || state(command).is_none());
    }
}

#[test]
fn an_ignored_hangup_stays_ignored() {
    let files = Files::new();
    let flag = files.path("flag");
    let mut nohup = Command::new("nohup");
    nohup.arg(env!("CARGO_BIN_EXE_stagger")).args(["wait", "-v", &format!("file:{}", flag.display())]);
    let mut running = Running::start(&mut nohup);
    let mut stderr = BufReader::new(running.child.stderr.take().unwrap());
    read_until(&mut stderr, "attempt 1: ");
    running.signal(Signal::HUP);
    read_until(&mut stderr, "attempt 2: ");
    fs::write(flag, "").unwrap();
    running.end().exits(0);
}

/// The first process of a container: the kernel gives it no default action.
#[test]
fn as_the_first_process_of_a_container_it_ends_with_128_and_the_signal() {
    let namespace = ["--pid", "--fork", "--mount-proc", "--kill-child"];
    if !Command::new("unshare").args(namespace).arg("true").output().is_ok_and(|output| output.status.success()) {
        eprintln!("not run: this user may not create a PID namespace (unshare)");
        return;
    }
    for (signal, want) in [("TERM", 143), ("INT", 130), ("HUP", 129)] {
        let mut unshare = Command::new("unshare");
        unshare.args(namespace).arg(env!("CARGO_BIN_EXE_stagger")).args(["wait", "-v", "file:/nowhere"]);
        let mut running = Running::start(&mut unshare);
        let mut stderr = BufReader::new(running.child.stderr.take().unwrap());
        read_until(&mut stderr, "attempt 1: ");
        let parent = running.child.id().to_string();
        let sent = Command::new("pkill").args(["--parent", &parent, "--signal", signal]).status().unwrap();
        assert!(sent.success());
        let mut rest = String::new();
        stderr.read_to_string(&mut rest).unwrap();
        running.end().exits(want);
    }
}

#[test]
fn a_file_that_is_written_to_is_not_stable() {
    let files = Files::new();
    let path = files.write("file", "");
    let target = format!("file:{}", path.display());
    let mut running = Running::start(&mut wait(&["-v", "--stable", "300ms", &target]));
    let mut stderr = BufReader::new(running.child.stderr.take().unwrap());
    read_until(&mut stderr, "attempt 1: ready");
    fs::write(&path, "more").unwrap();
    read_until(&mut stderr, "is being changed");
    let mut rest = String::new();
    stderr.read_to_string(&mut rest).unwrap();
    assert!(rest.contains("ready after"), "{rest}");
    running.end().exits(0);
}

#[test]
fn an_empty_file_is_ready_unless_it_must_not_be_empty() {
    let files = Files::new();
    let target = format!("file:{}", files.write("empty", "").display());
    once(&[&target]).exits(0);
    once(&["--non-empty", &target]).exits(124).says("is empty");
}

#[test]
fn a_process_that_has_ended_is_ready() {
    let mut child = Command::new("true").spawn().unwrap();
    child.wait().unwrap();
    once(&[&format!("pid:{}", child.id())]).exits(0);
    once(&[&format!("pid:{}", std::process::id())]).exits(124).says("is running");
}

/// Of each command, standard output is dropped and standard input is empty.
#[test]
fn commands_of_targets_have_no_input_and_no_output() {
    let seen = once(&["--command", "cat; echo out"]);
    seen.exits(0).prints("");
}

/// Endless output of a command is neither kept nor passed on.
#[test]
fn endless_output_of_a_command_ends_with_its_attempt() {
    let seen = once(&["--attempt-timeout", "300ms", "--command", "yes noise >&2"]);
    seen.exits(124).says("no answer within 300ms");
    let lines = BufReader::new(seen.stderr.as_bytes()).lines().count();
    assert_eq!(lines, 1);
}

/// The sample of the page has other addresses; its numbers of attempts are among those that are seen.
#[test]
fn the_sample_of_the_page_is_what_a_wait_prints() {
    const PAGE: &str = include_str!("../../../../../docs/guide/wait.md");
    let (_, rest) = PAGE.split_once("```text\n").expect("a sample");
    let sample = rest.split("\n```").next().expect("it ends");
    let (refused, _) = listener();
    let nowhere = refused.local_addr().expect("the port is known").to_string();
    drop(refused);
    let url = url(|_| response("503 Busy", "Retry-After: 1\r\n", ""));
    let address = url.trim_end_matches('/');
    let seen = see(&mut wait(&["-t", "3s", &nowhere, &format!("{address}/health")]));
    seen.exits(124);
    // The machine may end it a moment later.
    let late = regex::Regex::new(r"after 3\.\d+s").unwrap();
    let said = late.replace_all(&seen.stderr, "after 3s");
    let said = said.replace(&nowhere, "db:5432").replace(address, "https://example.com");
    let split = |text: &str| -> Vec<(String, u32)> {
        let line = |line: &str| {
            let (reason, attempts) = line.rsplit_once(", ").expect("a number of attempts");
            (reason.to_owned(), attempts.trim_end_matches(" attempts").parse().expect("a number"))
        };
        text.trim_end().lines().map(line).collect()
    };
    let (sample, said) = (split(sample), split(&said));
    let reasons = |lines: &[(String, u32)]| lines.iter().map(|line| line.0.clone()).collect::<Vec<_>>();
    assert_eq!(reasons(&said), reasons(&sample));
    // Fifty to a hundred and fifty percent of 100, 125, 156 ms and so on; and 1 to 1.5 s.
    for (lines, what) in [(&said, "seen"), (&sample, "on the page")] {
        assert!((6..=15).contains(&lines[0].1) && (2..=3).contains(&lines[1].1), "{what}: {lines:?}");
    }
}
