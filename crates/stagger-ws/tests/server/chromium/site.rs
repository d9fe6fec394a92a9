//! A site whose pages have the JavaScript client, under a content security policy.

use core::net::SocketAddr;
use std::path::Path;

use axum::Router;
use axum::response::Html;
use axum::routing::get;
use serde_json::json;
use stagger_kit::Program;
use tokio::task::JoinSet;

use super::browser::Browser;
use super::scripted::{Act, Scripted};
use crate::support::{SECOND, on_loopback};

/// No inline scripts, no `eval`, and connections to loopback only.
const POLICY: &str = "default-src 'self'; connect-src 'self' ws://127.0.0.1:* http://127.0.0.1:*";

const PAGE: &str =
    "<!doctype html><title>a test</title><link rel=icon href=data:,><script type=module src=/page.js></script>";

/// The server of the pages. Their WebSockets go to other servers, so that these can be killed.
pub(super) struct Site {
    pub(super) address: SocketAddr,
    _tasks: JoinSet<()>,
}

impl Site {
    pub(super) fn serve() -> Self {
        let script = |text: String| get(async move || ([("content-type", "text/javascript")], text));
        let app = Router::new()
            .route("/", get(async || ([("content-security-policy", POLICY)], Html(PAGE))))
            .route("/page.js", script(include_str!("page.js").to_owned()))
            .route("/feed.js", script(include_str!("../javascript/feed.mjs").to_owned()))
            .route("/worker.js", script(include_str!("worker.js").to_owned()))
            .route("/client.js", script(bundle()));
        let (listener, address) = on_loopback();
        let mut tasks = JoinSet::new();
        tasks.spawn(async move { axum::serve(listener, app).await.unwrap() });
        Self { address, _tasks: tasks }
    }

    pub(super) fn url(&self) -> String {
        format!("http://{}/", self.address)
    }
}

/// Returns `clients/js` as one module, as the bundler of an application makes it.
pub(super) fn bundle() -> String {
    // Where `cargo xtask ci --only packages` unpacks what is not installed.
    let unpacked = Path::new(env!("CARGO_TARGET_TMPDIR")).join("../packages/usr/bin/esbuild");
    let program = if unpacked.is_file() { Program::at(unpacked) } else { Program::find("esbuild").unwrap() };
    let source = concat!(env!("CARGO_MANIFEST_DIR"), "/../../clients/js/src/index.ts");
    let run = program.args([source, "--bundle", "--format=esm", "--target=es2022"]).run(20 * SECOND).unwrap();
    assert_eq!(run.code(), Some(0), "{}", run.stderr_text());
    run.stdout_text()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_client_runs_under_a_content_security_policy_without_eval() {
    let (server, site, mut browser) = (Scripted::serve([Act::Echo]), Site::serve(), Browser::start().await);
    let page = browser.open(&site.url()).await;
    assert_eq!(browser.eval(&page, "isEvalBlocked").await, true, "otherwise the test says nothing");
    let connect = |host: &str| format!("connect('ws://{host}:{}/0', 'web-socket')", server.address.port());
    // The policy names 127.0.0.1 only. Chromium reports what it blocks by `error` without `close`.
    let both = format!("globalThis.all = [{}, {}]; 0", connect("127.0.0.1"), connect("localhost"));
    browser.eval(&page, &both).await;
    browser.until(&page, "all[0].record.open === 1 && all[1].record.errors === 1").await;
    browser.eval(&page, "all[0].ws.send('hello'); 0").await;
    browser.until(&page, "all[0].record.messages === 1").await;
    assert_eq!(browser.eval(&page, "violations").await, json!(["eval", "connect-src"]));
    assert_eq!(browser.console, [""; 0]);
}
