//! What is told if the store is none, or not the right one.

use core::time::Duration;
use std::io::Write as _;
use std::net::TcpListener;
use std::sync::{Arc, Mutex};
use std::thread;

use stagger_redis::{Fleet, FleetEvent};

use super::sharing::until;
use super::worker::Redis;

/// Returns why the store at this address is lost.
pub(crate) async fn reason(url: &str) -> String {
    let told = Arc::new(Mutex::new(None));
    let reason = Arc::clone(&told);
    let fleet = Fleet::builder(url, 1).patience(Duration::from_secs(3)).on_event(move |event| {
        if let FleetEvent::StoreLost { reason } = event {
            *told.lock().unwrap() = Some(reason.clone());
        }
    });
    let fleet = fleet.build().unwrap();
    let _tokens = fleet.tokens("t").build().unwrap();
    until(|| reason.lock().unwrap().is_some()).await;
    let reason = reason.lock().unwrap().clone().unwrap_or_default();
    assert_eq!(reason.lines().count(), 1, "{reason}");
    reason
}

/// A server that says this to everyone, or nothing.
fn stranger(greeting: &'static str) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("redis://{}", listener.local_addr().unwrap());
    thread::spawn(move || {
        let mut open = Vec::new();
        for mut client in listener.incoming().map_while(Result::ok) {
            let _ = client.write_all(greeting.as_bytes());
            open.push(client);
        }
    });
    url
}

#[tokio::test]
async fn the_reason_says_what_is_wrong_with_the_store_and_how_to_mend_it() {
    let plain = Redis::start(&[]);
    let secret = Redis::start(&["--requirepass", "secret"]);
    let [node, _other] = Redis::cluster(["", "0 16383"]).await;
    let replica = Redis::start(&["--replicaof", "127.0.0.1", &plain.port.number().to_string()]);
    plain.run("ACL SETUSER shop on >secret ~* +evalsha");
    let (password, user) = ("redis://:wrong@", "redis://shop:secret@");
    let cases = [
        #[cfg(feature = "rustls")]
        (plain.url().replace("redis:", "rediss:"), "no connection within 500ms: use redis:// if this port has no TLS"),
        (secret.url(), "asks for a password: write it into the address, redis://:password@host"),
        (secret.url().replace("redis://", password), "rejects the name or the password of the address"),
        (plain.url().replace("redis://", user), "allow the commands that the documentation of stagger-redis names"),
        (node.url(), "a node of a cluster, and another node has the keys: use Fleet::cluster, or one server"),
        (replica.url(), "a replica, which takes no writes: use the address of its primary"),
        (stranger("SSH-2.0-OpenSSH_9.2\r\n"), "what answers at this address is not Redis"),
        (stranger("HTTP/1.1 400 Bad Request\r\n\r\n"), "what answers at this address is not Redis"),
        (stranger("one\ntwo\u{1b}[2J\nthree\n"), "what answers at this address is not Redis"),
        (stranger(""), "there was no connection within 500ms"),
        ("redis://127.0.0.1:1".to_owned(), "Connection refused"),
        ("redis://store.invalid".to_owned(), "failed to lookup"),
    ];
    let told = cases.map(|(url, expected)| (expected, tokio::spawn(async move { (reason(&url).await, url) })));
    for (expected, told) in told {
        let (reason, url) = told.await.unwrap();
        assert!(reason.contains(expected) && !reason.contains(char::is_control), "{url}: {reason}");
    }
}
