//! A page with acknowledgements, a heartbeat and a position, whose server stops answering and is killed.

use core::time::Duration;

use serde_json::json;
use stagger_kit::{Port, Ready, Server, Signal, Stream};
use tokio::time::sleep;

use super::browser::Browser;
use super::site::Site;
use crate::javascript::{READY, read, server};
use crate::support::SECOND;

const HEARTBEAT_MS: f64 = 250.0;
const KILLS: u32 = 6;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_page_gives_up_a_server_that_stops_answering_and_resumes_at_the_right_message_after_every_kill() {
    let directory = tempfile::tempdir().unwrap();
    let (store, port) = (directory.path().join("store"), Port::reserve().unwrap());
    let ready = Ready::Line(Stream::Stdout, READY.into());
    let mut server = Server::start(server(port.number(), &store), ready, 30 * SECOND).unwrap();
    let (site, mut browser) = (Site::serve(), Browser::start().await);
    let page = browser.open(&site.url()).await;
    browser.eval(&page, &format!("globalThis.it = feed('ws://{}/', {HEARTBEAT_MS}); 0", port.address())).await;
    browser.until(&page, "it.record.received.length > 0 && it.record.pongs > 0").await;

    // The kernel goes on accepting connections and acknowledging segments.
    let stopped = browser.eval(&page, "performance.now()").await.as_f64().unwrap();
    server.running().unwrap().signal(Signal::STOP).unwrap();
    browser.until(&page, "it.record.closed.length > 0").await;
    server.running().unwrap().signal(Signal::CONT).unwrap();
    let closed = browser.eval(&page, "it.record.closed[0]").await;
    let noticed = closed["at"].as_f64().unwrap() - stopped;
    println!("the heartbeat noticed after {noticed} ms that the server had stopped");
    assert_eq!(closed["code"], json!(1006));
    assert_eq!(closed["reason"], format!("nothing was received for {HEARTBEAT_MS} ms after a heartbeat"));
    // The last heartbeat before it may have been answered, or may be on its way.
    assert!(noticed <= 2.0 * HEARTBEAT_MS + 1_000.0, "{noticed} ms");

    for kill in 1..=KILLS {
        // On a connection of its own, something has been received.
        let before = browser.eval(&page, "it.record.last").await;
        let is_back = format!("it.ws.state.kind === 'open' && it.record.opened > {kill} && it.record.last > {before}");
        browser.until(&page, &is_back).await;
        sleep(Duration::from_millis(17) * (kill % 4)).await;
        server.kill();
        server.restart().unwrap();
    }
    let last = browser.eval(&page, "it.stop()").await.as_u64().unwrap();
    browser.until(&page, &format!("it.record.received.length >= {last}")).await;
    let seen = browser.eval(&page, "it.record").await;
    let all: Vec<u64> = (1..=last).collect();
    assert_eq!(read(&store), all, "stored once and in order");
    assert_eq!(seen["received"], json!(all), "received once and in order");
    let (opened, resumed) = (seen["opened"].as_u64().unwrap(), seen["resumed"].as_u64().unwrap());
    println!("{KILLS} kills: {last} messages, {opened} connections, {resumed} resumed, {} pongs", seen["pongs"]);
    assert_eq!(resumed, opened - 1, "every connection but the first resumed");
    assert!(opened >= u64::from(KILLS) + 2, "{opened}");
    assert_eq!(browser.console, [""; 0]);
}
