//! The example `chat_page`, whose server is killed under two pages.

use std::path::Path;
use std::{env, fs};

use axum::Router;
use axum::response::Html;
use axum::routing::get;
use serde_json::{Value, json};
use stagger_kit::{Port, Program, Ready, Server, Stream};
use stagger_ws::server::listen;

use super::browser::{Browser, Page};
use super::site::bundle;
use crate::support::SECOND;

#[path = "../../../examples/chat_page/app.rs"]
mod app;
#[path = "../../../examples/chat_page/history.rs"]
mod history;
#[path = "../../../examples/chat_page/room.rs"]
mod room;

const PORT: &str = "CHAT_SERVER_PORT";
const DIRECTORY: &str = "CHAT_SERVER_DIRECTORY";
const READY: &str = "the chat is listening";

// Not a test, but the entry point of the server process.
#[tokio::test]
#[ignore = "entry point of the server process"]
async fn serves_when_configured() {
    let (Ok(port), Ok(directory)) = (env::var(PORT), env::var(DIRECTORY)) else { return };
    let script = |text: String| get(async move || ([("content-type", "text/javascript")], text));
    let bundle = fs::read_to_string(Path::new(&directory).join("client.js")).unwrap();
    let pages = Router::new()
        .route("/", get(async || Html(include_str!("../../../examples/chat_page/page/index.html"))))
        .route("/chat.js", script(include_str!("../../../examples/chat_page/page/chat.js").to_owned()))
        .route("/client/index.js", script(bundle));
    let app = app::app(pages, Some(&Path::new(&directory).join("chat.jsonl"))).unwrap();
    let listener = listen(([127, 0, 0, 1], port.parse().unwrap()).into(), 64).unwrap();
    println!("{READY}");
    axum::serve(listener, app).await.unwrap();
}

/// Opens the chat in a tab.
async fn join(browser: &mut Browser, url: &str) -> Page {
    let page = browser.open("about:blank").await;
    browser.call(&page, "Page.navigate", json!({ "url": url })).await;
    browser.until(&page, "document.getElementById('status')?.textContent === 'Connected'").await;
    page
}

/// Sends messages as a user does.
async fn say(browser: &mut Browser, page: &Page, name: &str, numbers: core::ops::RangeInclusive<u32>) {
    for n in numbers {
        let say = format!(
            "document.getElementById('name').value = '{name}'; document.getElementById('text').value = '{n}'; \
             document.getElementById('form').requestSubmit(); document.getElementById('text').value"
        );
        assert_eq!(browser.eval(page, &say).await, "", "it is accepted");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_chat_loses_and_doubles_no_message_over_kills_of_its_server_and_counts_down_meanwhile() {
    let directory = tempfile::tempdir().unwrap();
    fs::write(directory.path().join("client.js"), bundle()).unwrap();
    let port = Port::reserve().unwrap();
    let program = Program::this_test("chromium::chat::serves_when_configured").unwrap();
    let program = program.env(PORT, port.number().to_string()).env(DIRECTORY, directory.path());
    let ready = Ready::Line(Stream::Stdout, READY.into());
    let mut server = Server::start(program, ready, 30 * SECOND).unwrap();
    let mut browser = Browser::start_with(&["--disable-background-timer-throttling"]).await;
    let url = format!("http://{}/", port.address());
    let (ada, ben) = (join(&mut browser, &url).await, join(&mut browser, &url).await);
    for round in 0..3 {
        let first = round * 20 + 1;
        // Some are in flight when the server is killed, and some are said while it is away.
        say(&mut browser, &ada, "Ada", first..=first + 9).await;
        say(&mut browser, &ben, "Ben", first..=first + 9).await;
        server.kill();
        for (page, name) in [(&ada, "Ada"), (&ben, "Ben")] {
            browser.until(page, "!banner.hidden && /^Next attempt in \\d+\\s?s\\.$/.test(countdown.textContent)").await;
            say(&mut browser, page, name, first + 10..=first + 19).await;
            let unsent = browser.eval(page, "unsent.textContent").await;
            assert!(unsent.as_str().unwrap().ends_with(" messages wait to be sent."), "{unsent}");
        }
        server.restart().unwrap();
        for page in [&ada, &ben] {
            browser.eval(page, "now.click()").await;
            browser.until(page, "banner.hidden && document.getElementById('status').textContent === 'Connected'").await;
        }
    }
    let all = |name: &str| -> Vec<String> { (1..=60).map(|n| format!("{name}{n}")).collect() };
    for page in [&ada, &ben] {
        browser.until(page, "lines.childElementCount >= 120").await;
        let seen = browser.eval(page, "Array.from(lines.children, (line) => line.textContent)").await;
        for name in ["Ada", "Ben"] {
            assert_eq!(said(&seen, name), all(name));
        }
    }
    server.kill();
    let kept = fs::read_to_string(directory.path().join("chat.jsonl")).unwrap();
    // The first line is the run.
    assert_eq!(kept.lines().count(), 121);
    assert_eq!(browser.console, [""; 0]);
}

/// Returns what somebody has said, in the order of the page.
fn said(lines: &Value, name: &str) -> Vec<String> {
    let lines = lines.as_array().unwrap().iter().map(|line| line.as_str().unwrap().to_owned());
    lines.filter(|line| line.starts_with(name)).collect()
}

/// Returns the message number `n` of a page.
fn message(page: &str, n: u64) -> history::Said {
    serde_json::from_value(json!({ "page": page, "n": n, "name": "Ada", "text": "hello" })).unwrap()
}

#[test]
fn the_chat_stores_once_what_it_receives_again_also_after_a_restart() {
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("chat.jsonl");
    let mut history = history::History::open(Some(&file)).unwrap();
    let run = history.run;
    assert_eq!(history.put(message("a", 1)).unwrap().unwrap().id, 1);
    assert_eq!(history.put(message("b", 1)).unwrap().unwrap().id, 2);
    assert!(history.put(message("a", 1)).unwrap().is_none());
    drop(history);
    // The server was killed while it wrote.
    let complete = fs::read_to_string(&file).unwrap();
    fs::write(&file, format!("{complete}{{\"id\":3,\"pa")).unwrap();
    let mut history = history::History::open(Some(&file)).unwrap();
    assert_eq!(history.run, run);
    assert!(history.put(message("a", 1)).unwrap().is_none());
    assert_eq!(history.put(message("a", 2)).unwrap().unwrap().id, 3);
    let ids: Vec<u64> = history.since(1).iter().map(|line| line.id).collect();
    assert_eq!(ids, [2, 3]);
    let lines = fs::read_to_string(&file).unwrap();
    assert_eq!(lines.lines().count(), 4, "{lines}");
}

#[test]
fn the_chat_keeps_1000_lines_and_sends_100() {
    let mut history = history::History::open(None).unwrap();
    for n in 1..=1_500 {
        history.put(message("a", n)).unwrap();
        history.put(message(&format!("page {n}"), 1)).unwrap();
    }
    assert_eq!(history.since(0).len(), 100);
    // The pages of the last 500 lines that are not of `a` are known, and `a` by its last line.
    assert!(history.put(message("a", 1_500)).unwrap().is_none());
    assert!(history.put(message("page 1001", 1)).unwrap().is_none());
    assert!(history.put(message("page 1000", 1)).unwrap().is_some());
}
