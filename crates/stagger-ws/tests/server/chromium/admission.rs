//! Pages that the server refuses, and that return at the times it has reserved for them.

use serde_json::{Value, json};
use stagger_ws::server::RejectBy;

use super::browser::{Browser, Page};
use super::site::Site;
use crate::reject_by_close::{rejected, serve, strict};
use crate::support::{dial, eventually, unlimited};

/// Opens a WebSocket, and returns how it ends.
async fn closed(browser: &mut Browser, page: &Page, url: &str, protocols: &str) -> Value {
    let open = format!(
        "new Promise(resolve => {{ let opened = false; const socket = new WebSocket('{url}', {protocols}); \
         socket.onopen = () => opened = true; \
         socket.onclose = ({{ code, reason, wasClean }}) => resolve({{ opened, code, reason, wasClean }}) }})"
    );
    browser.eval(page, &open).await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_page_in_chromium_reads_its_reservation_and_returns_by_it() {
    let mut browser = Browser::start().await;
    let page = browser.open("about:blank").await;
    // What this is for: a page learns nothing from a response.
    let silent = strict().reject_by(|_, _| RejectBy::Response).build().unwrap();
    let (address, _silent_tasks) = serve(&silent, false);
    let _first = dial(address).await.unwrap();
    let by_response = closed(&mut browser, &page, &format!("ws://{address}/feed"), "[]").await;
    assert_eq!(by_response, json!({ "opened": false, "code": 1006, "reason": "", "wasClean": false }));

    // A page that offers subprotocols needs a server that selects one.
    for (spoken, want) in [(&[][..], Value::Null), (&["chat"], json!("chat"))] {
        let sockets = unlimited().subprotocols(spoken.iter().copied()).build().unwrap();
        let (address, _tasks) = serve(&sockets, false);
        let open = format!(
            "new Promise(resolve => {{ const socket = new WebSocket('ws://{address}/feed', ['mail', 'chat']); \
             socket.onopen = () => resolve(socket.protocol); socket.onclose = () => resolve(null) }})"
        );
        assert_eq!(browser.eval(&page, &open).await, want);
    }

    for by_axum in [false, true] {
        let sockets = strict().build().unwrap();
        let (address, _tasks) = serve(&sockets, by_axum);
        let url = format!("ws://{address}/feed");
        let _first = dial(address).await.unwrap();
        let by_close = closed(&mut browser, &page, &url, "['mail', 'chat']").await;
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
        let returned = browser.eval(&page, &again).await;
        assert_eq!(returned["protocol"], format!("stagger-reservation.{token}"), "{returned}");
        eventually("the page is admitted", || sockets.snapshot().accepted == 2).await;
        println!("the page's timer was late by {} ms", returned["late"]);
        let seen = sockets.snapshot();
        assert_eq!((seen.accepted, seen.rejected.rate_limited, seen.rejected_by_close), (2, 2, 2));
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_client_in_chromium_returns_by_its_reservation_within_a_tick_of_the_timer() {
    let mut browser = Browser::start().await;
    let site = Site::serve();
    let page = browser.open(&site.url()).await;
    let sockets = strict().build().unwrap();
    // By axum, so that the server selects the application's subprotocol.
    let (address, _tasks) = serve(&sockets, true);
    let _first = dial(address).await.unwrap();
    // The token comes back in the subprotocol, and in the query. The spread would be much too late.
    let open = |protocols: &str| format!("connect('ws://{address}/feed', 'web-socket spread=1h', {protocols})");
    let all = format!("globalThis.all = [{}, {}, {}]; 0", open("'chat'"), open("undefined"), open("['chat']"));
    browser.eval(&page, &all).await;
    browser.until(&page, "all.every(({ record }) => record.controls.length === 1 && record.open === 1)").await;
    eventually("all are admitted", || sockets.snapshot().accepted == 4).await;
    assert_eq!(sockets.snapshot().rejected_by_close, 3);

    let seen = browser.eval(&page, "all.map(({ record }) => record)").await;
    for seen in seen.as_array().unwrap() {
        let closed = &seen["closed"][0];
        let reason: Value = serde_json::from_str(closed["reason"].as_str().unwrap()).unwrap();
        assert_eq!((&closed["code"], &closed["retryInMs"]), (&json!(1013), &reason["retry_after_ms"]), "{seen}");
        let ms = |value: &Value| value.as_f64().unwrap();
        let early = ms(&closed["at"]) + ms(&closed["retryInMs"]) - ms(&seen["attempts"][1]);
        assert!(early <= 1.0, "before its time by {early} ms: {seen}");
        let left = ms(&seen["controls"][0]) - ms(&seen["attempts"][1]);
        println!("{left} ms before a timer that is set for 4 ms later");
        assert!(left >= 0.0, "a tick later than its time: {seen}");
    }
    assert_eq!(browser.console, [""; 0]);
}
