//! Pages in a real browser, driven through its DevTools protocol.

use std::fs;

use futures_util::{SinkExt as _, StreamExt as _};
use serde_json::{Value, json};
use stagger_kit::{Program, Ready, Server, Stream};
use stagger_ws::server::RejectBy;
use tempfile::TempDir;
use tokio::net::TcpStream;
use tokio::time::timeout;
use tokio_tungstenite::tungstenite::Message;
use tokio_tungstenite::{WebSocketStream, client_async};

use crate::reject_by_close::{rejected, serve, strict};
use crate::support::{SECOND, dial, eventually, unlimited};

/// Names under which the browser may be installed.
const BROWSERS: [&str; 3] = ["chromium", "chromium-browser", "google-chrome"];

/// An empty page in a browser of its own, which is killed when it is dropped.
struct Page {
    socket: WebSocketStream<TcpStream>,
    session: Value,
    calls: u64,
    _browser: Server,
    _profile: TempDir,
}

impl Page {
    async fn open() -> Self {
        let profile = tempfile::tempdir().unwrap();
        let program = BROWSERS.iter().find_map(|name| Program::find(name).ok());
        let program = program
            .unwrap_or_else(|| panic!("requires one of {BROWSERS:?}"))
            .args(["--headless", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--no-first-run"])
            .args(["--disable-background-networking", "--disable-component-update", "--disable-sync"])
            .args(["--disable-extensions", "--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE 127.0.0.1"])
            .args(["--remote-debugging-port=0", "about:blank"])
            .arg(format!("--user-data-dir={}", profile.path().display()));
        let ready = Ready::Line(Stream::Stderr, "DevTools listening on".to_owned());
        let browser = Server::start(program, ready, 60 * SECOND).unwrap();
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
        let mut page = Self { socket, session: Value::Null, calls: 0, _browser: browser, _profile: profile };
        let target = page.call("Target.createTarget", json!({ "url": "about:blank" })).await;
        let params = json!({ "targetId": target["targetId"], "flatten": true });
        page.session = page.call("Target.attachToTarget", params).await["sessionId"].take();
        page
    }

    /// Calls a method of the protocol, and returns its result.
    async fn call(&mut self, method: &str, params: Value) -> Value {
        self.calls += 1;
        let mut message = json!({ "id": self.calls, "method": method, "params": params });
        if self.session.is_string() {
            message["sessionId"] = self.session.clone();
        }
        self.socket.send(Message::text(message.to_string())).await.unwrap();
        loop {
            let answer = timeout(60 * SECOND, self.socket.next()).await.expect("in time").expect("an answer").unwrap();
            let Message::Text(text) = answer else { continue };
            let mut answer: Value = serde_json::from_str(&text).unwrap();
            if answer["id"] == self.calls {
                assert_eq!(answer["error"], Value::Null, "{method}");
                return answer["result"].take();
            }
        }
    }

    /// Evaluates an expression, waits for its promise, and returns the value.
    async fn eval(&mut self, expression: &str) -> Value {
        let params = json!({ "expression": expression, "awaitPromise": true, "returnByValue": true });
        let mut result = self.call("Runtime.evaluate", params).await;
        assert_eq!(result["exceptionDetails"], Value::Null, "{expression}");
        result["result"]["value"].take()
    }

    /// Opens a WebSocket, and returns how it ends.
    async fn closed(&mut self, url: &str, protocols: &str) -> Value {
        let open = format!(
            "new Promise(resolve => {{ let opened = false; const socket = new WebSocket('{url}', {protocols}); \
             socket.onopen = () => opened = true; \
             socket.onclose = ({{ code, reason, wasClean }}) => resolve({{ opened, code, reason, wasClean }}) }})"
        );
        self.eval(&open).await
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_page_in_chromium_reads_its_reservation_and_returns_by_it() {
    let mut page = Page::open().await;
    // What this is for: a page learns nothing from a response.
    let silent = strict().reject_by(|_, _| RejectBy::Response).build().unwrap();
    let (address, _silent_tasks) = serve(&silent, false);
    let _first = dial(address).await.unwrap();
    let by_response = page.closed(&format!("ws://{address}/feed"), "[]").await;
    assert_eq!(by_response, json!({ "opened": false, "code": 1006, "reason": "", "wasClean": false }));

    // A page that offers subprotocols needs a server that selects one.
    for (spoken, want) in [(&[][..], Value::Null), (&["chat"], json!("chat"))] {
        let sockets = unlimited().subprotocols(spoken.iter().copied()).build().unwrap();
        let (address, _tasks) = serve(&sockets, false);
        let open = format!(
            "new Promise(resolve => {{ const socket = new WebSocket('ws://{address}/feed', ['mail', 'chat']); \
             socket.onopen = () => resolve(socket.protocol); socket.onclose = () => resolve(null) }})"
        );
        assert_eq!(page.eval(&open).await, want);
    }

    for by_axum in [false, true] {
        let sockets = strict().build().unwrap();
        let (address, _tasks) = serve(&sockets, by_axum);
        let url = format!("ws://{address}/feed");
        let _first = dial(address).await.unwrap();
        let by_close = page.closed(&url, "['mail', 'chat']").await;
        assert_eq!((&by_close["code"], &by_close["wasClean"]), (&json!(1013), &json!(true)), "{by_close}");
        let reason: Value = serde_json::from_str(by_close["reason"].as_str().unwrap()).unwrap();
        let (after, token) = (reason["retry_after_ms"].as_u64().unwrap(), reason["reservation"].as_str().unwrap());
        // The next time is another client's, so the page would be rejected without its token.
        let _next = rejected(address, "/feed", "").await;
        let again = format!(
            "new Promise(resolve => {{ const began = performance.now(); setTimeout(() => {{ \
             const late = performance.now() - began - {after}; \
             const socket = new WebSocket('{url}', 'stagger-reservation.{token}'); \
             socket.onopen = () => resolve({{ late, protocol: socket.protocol }}); \
             socket.onclose = ({{ code, reason }}) => resolve({{ code, reason }}) }}, {after}) }})"
        );
        let returned = page.eval(&again).await;
        assert_eq!(returned["protocol"], format!("stagger-reservation.{token}"), "{returned}");
        eventually("the page is admitted", || sockets.snapshot().accepted == 2).await;
        println!("the page's timer was late by {} ms", returned["late"]);
        let seen = sockets.snapshot();
        assert_eq!((seen.accepted, seen.rejected.rate_limited, seen.rejected_by_close), (2, 2, 2));
    }
}
