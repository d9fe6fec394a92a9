//! Pages without a network, hidden pages and frozen pages.

use serde_json::json;
use tokio::time::sleep;

use super::browser::{Browser, Page};
use super::scripted::{Act, Scripted};
use super::site::Site;
use crate::support::SECOND;

/// Opens a page with so many clients, which have a connection each.
async fn connected(browser: &mut Browser, site: &Site, server: &Scripted, policy: &str, clients: usize) -> Page {
    let page = browser.open(&site.url()).await;
    let connect = format!("connect('ws://{}/0', '{policy}')", server.address);
    browser.eval(&page, &format!("globalThis.all = Array.from({{ length: {clients} }}, () => {connect}); 0")).await;
    browser.until(&page, "all.every(({ ws }) => ws.state.kind === 'open')").await;
    page
}

const LOSE: &str = "all.forEach(({ ws }) => ws.send('lose')); 0";

/// Returns the milliseconds from the loss to the next attempt, with the wait that the client wanted, and the time of a
/// bare timer for 4 ms later.
async fn returns(browser: &mut Browser, page: &Page) -> Vec<[f64; 3]> {
    let rows = "all.map(({ record: { closed, attempts, controls } }) => \
                [closed[0].retryInMs, attempts[1] - closed[0].at, controls[0] - closed[0].at])";
    // More than one if the first attempt fails: chromium may learn later than its page that there is a network.
    browser.until(page, "all.every(({ record }) => record.open === 1 && record.controls.length > 0)").await;
    let rows: Vec<[f64; 3]> = serde_json::from_value(browser.eval(page, rows).await).unwrap();
    let most = browser.eval(page, "Math.max(...all.map(({ record }) => record.mostOpen))").await;
    assert_eq!((most, &browser.console), (json!(1), &vec![]));
    println!("wanted, attempt and bare timer in ms after the loss: {rows:?}");
    rows
}

/// A browser takes more time than all of them.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_page_returns_after_it_was_without_a_network_or_hidden_or_frozen() {
    let (server, site, mut browser) = (Scripted::serve([Act::Echo]), Site::serve(), Browser::start().await);
    attempts_nothing_without_a_network(&mut browser, &site, &server).await;
    returns_hidden_with_the_turn_that_its_timers_get(&mut browser, &site, &server).await;
    is_spread_again_when_it_thaws(&mut browser, &site, &server).await;
}

async fn attempts_nothing_without_a_network(browser: &mut Browser, site: &Site, server: &Scripted) {
    let page = connected(browser, site, server, "web-socket spread=200ms stable-after=1ms", 3).await;
    let network =
        |offline| json!({ "offline": offline, "latency": 0, "downloadThroughput": -1, "uploadThroughput": -1 });
    browser.call(&page, "Network.enable", json!({})).await;
    browser.call(&page, "Network.emulateNetworkConditions", network(true)).await;
    // The open connections are not touched.
    browser.eval(&page, LOSE).await;
    browser.until(&page, "all.every(({ ws }) => ws.state.kind === 'offline')").await;
    sleep(SECOND).await;
    assert_eq!(browser.eval(&page, "all.map(({ record }) => record.attempts.length)").await, json!([1, 1, 1]));
    browser.call(&page, "Network.emulateNetworkConditions", network(false)).await;
    for [wanted, attempt, _] in returns(browser, &page).await {
        assert!(wanted <= 200.0 && attempt > 1_000.0, "{wanted} {attempt}");
    }
}

async fn returns_hidden_with_the_turn_that_its_timers_get(browser: &mut Browser, site: &Site, server: &Scripted) {
    let page = connected(browser, site, server, "web-socket spread=2s stable-after=1ms", 9).await;
    let _other = browser.open("about:blank").await;
    browser.until(&page, "document.visibilityState === 'hidden'").await;
    browser.eval(&page, LOSE).await;
    let rows = returns(browser, &page).await;
    for [wanted, attempt, timer] in rows {
        // `wanted` is rounded up, and the page's clock counts tenths of a millisecond.
        assert!(attempt - wanted >= -1.0, "{attempt} ms, wanted {wanted}");
        // The timers of one turn fire in order. A turn comes once in a second and, on a busy machine, a little later: a
        // wait that is more than a second late counts as overslept, and is spread again.
        let may_be_overslept = timer - wanted >= 999.0;
        assert!(
            attempt <= timer || may_be_overslept,
            "{attempt} ms, wanted {wanted}, the bare timer fired after {timer}"
        );
    }
}

async fn is_spread_again_when_it_thaws(browser: &mut Browser, site: &Site, server: &Scripted) {
    let page = connected(browser, site, server, "web-socket spread=1s stable-after=1ms", 20).await;
    let _other = browser.open("about:blank").await;
    browser.until(&page, "document.visibilityState === 'hidden'").await;
    browser.eval(&page, LOSE).await;
    browser.until(&page, "all.every(({ record }) => record.closed.length === 1)").await;
    browser.call(&page, "Page.setWebLifecycleState", json!({ "state": "frozen" })).await;
    // Longer than the longest wait, and than the second of delay that counts as sleep.
    sleep(3 * SECOND).await;
    browser.call(&page, "Page.setWebLifecycleState", json!({ "state": "active" })).await;
    browser.show(&page).await;
    let rows = returns(browser, &page).await;
    let after_timer = rows.iter().map(|[_, attempt, timer]| attempt - timer);
    let (least, most) = (after_timer.clone().fold(f64::MAX, f64::min), after_timer.fold(0.0, f64::max));
    // The bare timers fire in one instant. The bounds hold for 20 draws from a second but for one run in 10^9.
    assert!(least >= -1.0 && most >= 350.0, "from {least} to {most} ms after the thaw");
}
