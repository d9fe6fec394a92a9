//! A headless browser, driven through its DevTools protocol.

use core::time::Duration;
use std::io::{BufRead, BufReader};
use std::net::TcpStream;
use std::process::{Child, Command, Stdio};
use std::time::Instant;

use serde_json::{Value, json};
use tokio_tungstenite::tungstenite::{Message, WebSocket, client};

use crate::support::{Files, PATIENCE};

/// Names under which the browser may be installed.
const BROWSERS: [&str; 3] = ["chromium", "chromium-browser", "google-chrome"];

/// A page in a browser of its own, killed when dropped.
pub(super) struct Page {
    browser: Child,
    socket: WebSocket<TcpStream>,
    session: String,
    calls: u64,
    /// Errors and warnings of the console.
    pub(super) console: Vec<String>,
    _profile: Files,
}

impl Page {
    /// Opens a page.
    pub(super) fn open(url: &str) -> Self {
        let profile = Files::new();
        let start = |name: &&str| {
            Command::new(name)
                .args(["--headless", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--no-first-run"])
                .args(["--disable-background-networking", "--disable-component-update", "--disable-sync"])
                .args(["--disable-extensions", "--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE 127.0.0.1"])
                .args(["--remote-debugging-port=0", "about:blank"])
                .arg(format!("--user-data-dir={}", profile.path("profile").display()))
                .stdin(Stdio::null())
                .stdout(Stdio::null())
                .stderr(Stdio::piped())
                .spawn()
                .ok()
        };
        let mut browser = BROWSERS.iter().find_map(start).unwrap_or_else(|| panic!("requires one of {BROWSERS:?}"));
        let stderr = BufReader::new(browser.stderr.take().expect("standard error is piped"));
        let mut lines = stderr.lines().map_while(Result::ok);
        let endpoint = lines.find_map(|line| line.strip_prefix("DevTools listening on ").map(str::to_owned));
        let endpoint = endpoint.expect("the browser names its endpoint");
        // The browser must not block on its messages.
        std::thread::spawn(move || lines.for_each(drop));
        let address = endpoint.strip_prefix("ws://").and_then(|rest| rest.split('/').next()).expect("an address");
        let stream = TcpStream::connect(address).expect("the browser listens");
        stream.set_read_timeout(Some(PATIENCE)).expect("a time limit is set");
        let (socket, _) = client(&endpoint, stream).expect("the browser speaks WebSocket");
        let console = Vec::new();
        let mut page = Self { browser, socket, session: String::new(), calls: 0, console, _profile: profile };
        let target = page.call("Target.createTarget", &json!({ "url": "about:blank" }));
        let attached = page.call("Target.attachToTarget", &json!({ "targetId": target["targetId"], "flatten": true }));
        page.session = attached["sessionId"].as_str().expect("a session").to_owned();
        for domain in ["Page", "Runtime", "Log"] {
            page.call(&format!("{domain}.enable"), &json!({}));
        }
        page.navigate(url);
        page
    }

    /// Opens another page, of which nothing is left from the page before.
    pub(super) fn navigate(&mut self, url: &str) {
        for url in ["about:blank", url] {
            self.call("Page.navigate", &json!({ "url": url }));
            self.until(&format!("document.URL === {url:?} && document.readyState === 'complete'"));
        }
    }

    /// Sets the size of the page, and what the user prefers.
    pub(super) fn emulate(&mut self, width: u32, height: u32, preferences: &[(&str, &str)]) {
        let screen = json!({ "width": width, "height": height, "deviceScaleFactor": 1, "mobile": width < 500 });
        self.call("Emulation.setDeviceMetricsOverride", &screen);
        let features: Vec<_> =
            preferences.iter().map(|(name, value)| json!({ "name": name, "value": value })).collect();
        self.call("Emulation.setEmulatedMedia", &json!({ "features": features }));
    }

    /// Calls a method of the protocol, and returns its result.
    pub(super) fn call(&mut self, method: &str, params: &Value) -> Value {
        self.calls += 1;
        let mut message = json!({ "id": self.calls, "method": method, "params": params });
        if !self.session.is_empty() {
            message["sessionId"] = json!(self.session);
        }
        self.socket.send(Message::text(message.to_string())).expect("the browser reads");
        loop {
            let Message::Text(text) = self.socket.read().expect("the browser answers") else { continue };
            let answer: Value = serde_json::from_str(&text).expect("JSON");
            if answer["id"] == self.calls {
                assert_eq!(answer["error"], Value::Null, "{method}");
                return answer["result"].clone();
            }
            self.note(&answer);
        }
    }

    /// Keeps what the page says on the console.
    fn note(&mut self, event: &Value) {
        let params = &event["params"];
        let line = match event["method"].as_str() {
            Some("Runtime.exceptionThrown") => params["exceptionDetails"].to_string(),
            Some("Runtime.consoleAPICalled") => params["args"].to_string(),
            Some("Log.entryAdded") => params["entry"].to_string(),
            _ => return,
        };
        self.console.push(line);
    }

    /// Evaluates an expression, waits if it is a promise, and returns its value.
    #[track_caller]
    pub(super) fn eval(&mut self, expression: &str) -> Value {
        let params =
            json!({ "expression": expression, "awaitPromise": true, "returnByValue": true, "userGesture": true });
        let result = self.call("Runtime.evaluate", &params);
        assert_eq!(result["exceptionDetails"], Value::Null, "{expression}");
        result["result"]["value"].clone()
    }

    /// Waits until an expression is true.
    #[track_caller]
    pub(super) fn until(&mut self, expression: &str) {
        let begun = Instant::now();
        // While the page loads, its elements are missing.
        while self.eval(&format!("(() => {{ try {{ return Boolean({expression}); }} catch {{ return false; }} }})()"))
            != true
        {
            if begun.elapsed() > PATIENCE {
                let text = self.eval("document.body.innerText");
                panic!("never true: {expression}\n{text}\n{:#?}", self.console);
            }
            std::thread::sleep(Duration::from_millis(20));
        }
    }

    /// Types a text into a field, in place of what it has, as a user does.
    pub(super) fn fill(&mut self, selector: &str, text: &str) {
        self.eval(&format!(
            "document.querySelector({selector:?}).focus(); document.querySelector({selector:?}).select()"
        ));
        self.call("Input.insertText", &json!({ "text": text }));
    }

    pub(super) fn click(&mut self, selector: &str) {
        self.eval(&format!("document.querySelector({selector:?}).click()"));
    }

    /// Returns the text of an element.
    pub(super) fn text(&mut self, selector: &str) -> String {
        let text = self.eval(&format!("document.querySelector({selector:?}).innerText"));
        text.as_str().unwrap_or_else(|| panic!("{selector} has no text")).to_owned()
    }
}

impl Drop for Page {
    fn drop(&mut self) {
        // Ends the processes of its pages, too, unlike a signal.
        let _ = self.socket.send(Message::text(r#"{"id":0,"method":"Browser.close"}"#));
        let begun = Instant::now();
        while !matches!(self.browser.try_wait(), Ok(Some(_))) && begun.elapsed() < Duration::from_secs(5) {
            std::thread::sleep(Duration::from_millis(20));
        }
        let _ = self.browser.kill();
        let _ = self.browser.wait();
    }
}
