//! A headless browser, driven through its DevTools protocol.

use std::fs;

use futures_util::{SinkExt as _, StreamExt as _};
use serde_json::{Value, json};
use stagger_kit::{Program, Ready, Server, Stream};
use tempfile::TempDir;
use tokio::net::TcpStream;
use tokio::time::{Instant, sleep, timeout};
use tokio_tungstenite::tungstenite::Message;
use tokio_tungstenite::{WebSocketStream, client_async};

use crate::support::{SECOND, eventually};

/// Names under which the browser may be installed.
const BROWSERS: [&str; 3] = ["chromium", "chromium-browser", "google-chrome"];

/// How long the browser may take for anything.
const PATIENCE: core::time::Duration = core::time::Duration::from_secs(60);

/// A browser, which is killed when it is dropped.
pub(super) struct Browser {
    socket: WebSocketStream<TcpStream>,
    calls: u64,
    /// What the pages have not handled: exceptions, and lines of the console.
    pub(super) console: Vec<String>,
    _browser: Server,
    _profile: TempDir,
}

/// A tab of the browser.
#[derive(Clone, Debug)]
pub(super) struct Page {
    session: String,
    target: String,
}

impl Browser {
    pub(super) async fn start() -> Self {
        Self::start_with(&[]).await
    }

    /// Starts a browser with further options of the command line.
    pub(super) async fn start_with(options: &[&str]) -> Self {
        let profile = tempfile::tempdir().unwrap();
        let program = BROWSERS.iter().find_map(|name| Program::find(name).ok());
        let program = program
            .unwrap_or_else(|| panic!("requires one of {BROWSERS:?}"))
            .args(["--headless", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--no-first-run"])
            .args(["--disable-background-networking", "--disable-component-update", "--disable-sync"])
            .args(["--disable-extensions", "--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE 127.0.0.1"])
            .args(options)
            .args(["--remote-debugging-port=0", "about:blank"])
            .arg(format!("--user-data-dir={}", profile.path().display()));
        let ready = Ready::Line(Stream::Stderr, "DevTools listening on".to_owned());
        let browser = Server::start(program, ready, PATIENCE).unwrap();
        // Its first line is the port, its second the path.
        let file = profile.path().join("DevToolsActivePort");
        let endpoint = || {
            let text = fs::read_to_string(&file).ok()?;
            let (port, path) = text.split_once('\n')?;
            Some((port.parse::<u16>().ok()?, path.trim_end().to_owned())).filter(|(_, path)| !path.is_empty())
        };
        eventually("the browser names its endpoint", || endpoint().is_some()).await;
        let (port, path) = endpoint().unwrap();
        let stream = TcpStream::connect(("127.0.0.1", port)).await.unwrap();
        let (socket, _) = client_async(format!("ws://127.0.0.1:{port}{path}"), stream).await.unwrap();
        Self { socket, calls: 0, console: Vec::new(), _browser: browser, _profile: profile }
    }

    /// Opens a tab with a page, in front of the others.
    pub(super) async fn open(&mut self, url: &str) -> Page {
        let target = self.request(None, "Target.createTarget", json!({ "url": "about:blank" })).await;
        let params = json!({ "targetId": target["targetId"], "flatten": true });
        let attached = self.request(None, "Target.attachToTarget", params).await;
        let text = |value: &Value| value.as_str().unwrap().to_owned();
        let page = Page { session: text(&attached["sessionId"]), target: text(&target["targetId"]) };
        self.call(&page, "Runtime.enable", json!({})).await;
        if url != "about:blank" {
            self.call(&page, "Page.navigate", json!({ "url": url })).await;
            self.until(&page, "globalThis.isReady").await;
        }
        page
    }

    /// Brings a tab to the front, which hides the others of its window.
    pub(super) async fn show(&mut self, page: &Page) {
        self.request(None, "Target.activateTarget", json!({ "targetId": page.target })).await;
    }

    /// Calls a method of the protocol for a page, and returns its result.
    pub(super) async fn call(&mut self, page: &Page, method: &str, params: Value) -> Value {
        self.request(Some(page), method, params).await
    }

    async fn request(&mut self, page: Option<&Page>, method: &str, params: Value) -> Value {
        self.calls += 1;
        let mut message = json!({ "id": self.calls, "method": method, "params": params });
        if let Some(page) = page {
            message["sessionId"] = json!(page.session);
        }
        self.socket.send(Message::text(message.to_string())).await.unwrap();
        loop {
            let answer = timeout(PATIENCE, self.socket.next()).await.expect("in time").expect("an answer").unwrap();
            let Message::Text(text) = answer else { continue };
            let mut answer: Value = serde_json::from_str(&text).unwrap();
            if answer["id"] == self.calls {
                assert_eq!(answer["error"], Value::Null, "{method}");
                return answer["result"].take();
            }
            match answer["method"].as_str() {
                Some("Runtime.exceptionThrown") => self.console.push(answer["params"]["exceptionDetails"].to_string()),
                Some("Runtime.consoleAPICalled") => self.console.push(answer["params"]["args"].to_string()),
                _ => {}
            }
        }
    }

    /// Evaluates an expression, waits for its promise, and returns the value.
    pub(super) async fn eval(&mut self, page: &Page, expression: &str) -> Value {
        let params = json!({ "expression": expression, "awaitPromise": true, "returnByValue": true });
        let mut result = self.call(page, "Runtime.evaluate", params).await;
        assert_eq!(result["exceptionDetails"], Value::Null, "{expression}");
        result["result"]["value"].take()
    }

    /// Waits until an expression is true.
    pub(super) async fn until(&mut self, page: &Page, expression: &str) {
        let begun = Instant::now();
        while self.eval(page, &format!("Boolean({expression})")).await != true {
            if begun.elapsed() > PATIENCE {
                let records = self.eval(page, "globalThis.all?.map(({ record }) => record)").await;
                panic!("never true: {expression}; console: {:?}; records: {records}", self.console);
            }
            sleep(SECOND / 20).await;
        }
    }
}
