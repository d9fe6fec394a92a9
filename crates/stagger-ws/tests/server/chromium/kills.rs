//! A server that is killed under pages, each in a tab of its own.

use core::time::Duration;
use std::collections::HashMap;
use std::time::Instant;

use serde_json::json;
use stagger_kit::{Port, Ready, Server, Signal, Stream};
use tokio::time::sleep;

use super::browser::{Browser, Page};
use super::site::Site;
use crate::soak::plan::Plan;
use crate::soak::{server, store};
use crate::support::SECOND;

/// The spread is as short as the test: a fleet needs seconds or minutes.
const POLICY: &str = "exponential base=100ms cap=1s spread=500ms max-attempts=inf";

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_tab_returns_after_every_kill_with_one_connection_and_every_message() {
    kill(Plan { clients: 4, kills: 3, calm: Duration::ZERO, ..Plan::from_env() }).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "takes minutes: see CONTRIBUTING.md"]
async fn many_tabs_return_after_many_kills_with_one_connection_each_and_every_message() {
    kill(Plan::from_env()).await;
}

async fn kill(Plan { clients: tabs, kills, calm, .. }: Plan) {
    let directory = tempfile::tempdir().unwrap();
    let (stored, port) = (directory.path().join("store"), Port::reserve().unwrap());
    let ready = Ready::Line(Stream::Stdout, server::READY.into());
    let mut server = Server::start(server::program(port.number(), &stored), ready, 30 * SECOND).unwrap();
    let mut browser = Browser::start().await;
    let site = Site::serve();
    let mut pages = Vec::new();
    for n in 0..tabs {
        let page = browser.open(&site.url()).await;
        let connect = format!("globalThis.it = count('ws://{}/tab-{n}', '{POLICY}'); 0", port.address());
        browser.eval(&page, &connect).await;
        pages.push(page);
    }
    all_open(&mut browser, &pages, 1).await;
    let mut back = Vec::new();
    for kill in 1..=kills {
        // The kills come in different parts of what a page does.
        sleep(calm + Duration::from_millis(97) * (kill % 8)).await;
        // Messages are in flight when it is killed.
        server.running().unwrap().signal(Signal::STOP).unwrap();
        sleep(Duration::from_millis(150)).await;
        server.kill();
        // Some attempts fail.
        sleep(Duration::from_millis(300)).await;
        server.restart().unwrap();
        let restarted = Instant::now();
        all_open(&mut browser, &pages, kill + 1).await;
        back.push(restarted.elapsed());
    }
    let (mut attempts, mut messages) = (0, HashMap::new());
    for (n, page) in pages.iter().enumerate() {
        messages.insert(format!("tab-{n}"), browser.eval(page, "it.stop()").await.as_u64().unwrap());
        let seen = browser.eval(page, "it.record").await;
        attempts += seen["attempts"].as_array().unwrap().len();
        assert_eq!((&seen["open"], &seen["mostOpen"]), (&json!(1), &json!(1)), "{seen}");
        assert_eq!(seen["opened"].as_array().unwrap().len(), kills as usize + 1);
    }
    assert_eq!(browser.console, [""; 0]);
    server.kill();
    // It fails if the server has seen two connections of one tab.
    let mut kept: HashMap<String, Vec<u64>> = HashMap::new();
    for (tab, number) in store::read(&stored).unwrap() {
        kept.entry(tab).or_default().push(number);
    }
    for (tab, last) in &messages {
        assert_eq!(kept[tab], Vec::from_iter(1..=*last), "{tab}");
    }
    back.sort();
    println!(
        "{kills} kills under {tabs} tabs: {attempts} attempts for {} connections, {} messages stored once; all tabs \
         were back {:?} (median) and {:?} (at most) after the restart",
        tabs * (kills as usize + 1),
        messages.values().sum::<u64>(),
        back[back.len() / 2],
        back[back.len() - 1],
    );
}

/// Waits until each page has had so many connections, and the last is open.
async fn all_open(browser: &mut Browser, pages: &[Page], connections: u32) {
    for page in pages {
        browser.until(page, &format!("it.record.opened.length === {connections} && it.record.open === 1")).await;
    }
}
