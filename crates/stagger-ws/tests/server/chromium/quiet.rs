//! Pages that share quiet periods: what a server tells one of them holds the calls of all.

use core::time::Duration;
use std::time::Instant;

use serde_json::{Value, json};
use tokio::time::sleep;

use super::api::Api;
use super::browser::{Browser, Page};
use super::site::Site;
use crate::support::SECOND;

/// The tabs of a browser, and a server that they call.
struct Tabs {
    browser: Browser,
    api: Api,
    site: Site,
    pages: Vec<Page>,
}

impl Tabs {
    async fn open(count: usize) -> Self {
        // Otherwise hidden tabs have one timer in a second, which costs the tests much time.
        let browser = Browser::start_with(&["--disable-background-timer-throttling"]).await;
        let mut tabs = Self { browser, api: Api::serve(), site: Site::serve(), pages: Vec::new() };
        for _ in 0..count {
            tabs.pages.push(tabs.browser.open(&tabs.site.url()).await);
        }
        tabs
    }

    /// Lets these tabs share quiet periods, and shuts the gate of the server.
    async fn share(&mut self, tabs: &[usize], channel: &str, options: &str) {
        self.api.open(false);
        for &tab in tabs {
            let share = format!("globalThis.it = share('{}', '{channel}', {options}); 0", self.api.url());
            self.eval(tab, &share).await;
        }
    }

    async fn eval(&mut self, tab: usize, expression: &str) -> Value {
        self.browser.eval(&self.pages[tab], expression).await
    }

    /// Makes a call in a tab that the server refuses. Returns when the server received it.
    async fn refused(&mut self, tab: usize, answer: &str) -> Instant {
        let before = self.api.seen("status=").len();
        let status = self.eval(tab, &format!("it.call('/refuse?{answer}', {{ method: 'POST' }})")).await;
        assert!(answer.contains(&format!("status={status}")), "{status}");
        let seen = self.api.seen("status=");
        assert_eq!(seen.len(), before + 1);
        seen[before].at
    }

    /// Waits until a tab has heard of the pause of another.
    async fn told(&mut self, tabs: &[usize]) {
        for &tab in tabs {
            self.browser.until(&self.pages[tab], "it.told.length > 0").await;
        }
    }

    /// Begins a call in a tab; `done` is what becomes of it.
    async fn begin(&mut self, tab: usize, path: &str) {
        self.eval(tab, &format!("globalThis.done = it.call('{path}&tab={tab}&'); 0")).await;
    }

    async fn done(&mut self, tabs: &[usize]) {
        for &tab in tabs {
            assert_eq!(self.eval(tab, "done").await, 200, "tab {tab}");
        }
        assert_eq!(self.browser.console, [""; 0]);
    }

    /// Lets all these tabs make a call. Returns the tab whose request arrives first, and that alone, and when.
    async fn one_probe(&mut self, tabs: &[usize], name: &str) -> (usize, Instant) {
        for &tab in tabs {
            self.begin(tab, &format!("/gated?{name}")).await;
        }
        let first = self.api.until(name, 1).await.remove(0);
        sleep(Duration::from_millis(400)).await;
        assert_eq!(self.api.seen(name).len(), 1, "one tab has the probe");
        (tab_of(&first.query), first.at)
    }
}

fn tab_of(query: &str) -> usize {
    query.split('&').find_map(|part| part.strip_prefix("tab=")).unwrap().parse().unwrap()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_a_server_asks_of_one_tab_holds_the_calls_of_another_and_of_workers() {
    let mut tabs = Tabs::open(2).await;
    holds_the_other_tab(&mut tabs).await;
    holds_nothing_if_the_page_may_not_read_it(&mut tabs).await;
    an_abort_sends_nothing_and_leaves_the_probe_to_the_other_tab(&mut tabs).await;
    is_not_changed_by_what_other_scripts_send(&mut tabs).await;
    holds_a_worker_and_its_page(&mut tabs).await;
}

async fn holds_the_other_tab(tabs: &mut Tabs) {
    tabs.share(&[0, 1], "two", "{}").await;
    let refused = tabs.refused(0, "status=429&after=1&expose").await;
    tabs.told(&[1]).await;
    let (_, at) = tabs.one_probe(&[0, 1], "two").await;
    assert!(at - refused >= SECOND, "{:?}", at - refused);
    tabs.api.open(true);
    tabs.done(&[0, 1]).await;
    assert_eq!(tabs.api.seen("two").len(), 2);
}

async fn holds_nothing_if_the_page_may_not_read_it(tabs: &mut Tabs) {
    tabs.share(&[0, 1], "cors", "{}").await;
    let refused = tabs.refused(0, "status=503&after=60").await;
    for tab in [0, 1] {
        tabs.begin(tab, "/now?cors").await;
    }
    tabs.done(&[0, 1]).await;
    let late = tabs.api.seen("cors").iter().map(|call| call.at - refused).max().unwrap();
    assert!(late < 30 * SECOND, "{late:?}");
    assert_eq!(tabs.eval(1, "it.told").await, json!([]));
}

async fn an_abort_sends_nothing_and_leaves_the_probe_to_the_other_tab(tabs: &mut Tabs) {
    tabs.share(&[0, 1], "abort", "{}").await;
    _ = tabs.refused(0, "status=429&ms=300&expose").await;
    tabs.told(&[1]).await;
    let aborted = "(() => { const aborting = new AbortController(); globalThis.abort = () => aborting.abort(); \
                   globalThis.done = it.call('/gated?PATH', { signal: aborting.signal }); return 0 })()";
    tabs.eval(1, &aborted.replace("PATH", "waiting")).await;
    assert_eq!(tabs.eval(1, "abort(); done").await, "AbortError");
    tabs.eval(0, &aborted.replace("PATH", "probe")).await;
    tabs.api.until("probe", 1).await;
    tabs.begin(1, "/gated?next").await;
    sleep(Duration::from_millis(200)).await;
    assert_eq!(tabs.api.seen("next").len(), 0);
    assert_eq!(tabs.eval(0, "abort(); done").await, "AbortError");
    tabs.api.until("next", 1).await;
    tabs.api.open(true);
    tabs.done(&[1]).await;
    assert_eq!(tabs.api.seen("waiting").len(), 0, "a call that was aborted while it waited");
}

async fn is_not_changed_by_what_other_scripts_send(tabs: &mut Tabs) {
    tabs.share(&[0, 1], "hostile", "{ maxSharedMs: 500 }").await;
    tabs.api.open(true);
    _ = tabs.refused(0, "status=429&ms=100&expose").await;
    tabs.told(&[1]).await;
    tabs.begin(1, "/now?before").await;
    tabs.done(&[1]).await;
    let target = tabs.eval(1, "it.told[0].target").await;
    let pause = |ms: &str| format!("{{ stagger: 'pause', target: {target}, ms: {ms} }}");
    // A page of another origin does not reach the channel.
    let other = Site::serve();
    let stranger = tabs.browser.open(&other.url()).await;
    let send = format!("new BroadcastChannel('hostile').postMessage({}); 0", pause("1e9"));
    tabs.browser.eval(&stranger, &send).await;
    // Wrong types, wrong targets, pauses that are none.
    let wrong = format!(
        "[null, 7, 'pause', [], {{ stagger: 'pause' }}, new Map(), new Date(NaN), {}, {}, {}, {}, {{ stagger: 'pause', \
         target: 'http://127.0.0.1', ms: 9 }}, {{ stagger: 'pause', target: {{}}, ms: 9 }}, {{ stagger: 'other', target: {target}, \
         ms: 9e9 }}, {{ stagger: 'answered', target: {target} }}, 'last'].forEach(data => it.spy.postMessage(data)); 0",
        pause("NaN"),
        pause("-1"),
        pause("'9'"),
        pause("9n"),
    );
    tabs.eval(0, &wrong).await;
    tabs.browser.until(&tabs.pages[1], "it.told.includes('last')").await;
    let began = Instant::now();
    tabs.begin(1, "/now?ignored").await;
    tabs.done(&[1]).await;
    let ignored = tabs.api.seen("ignored")[0].at - began;
    // The longest pause that a message can cause, which reports of answers do not shorten.
    let longest = format!(
        "for (let n = 0; n < 1000; n += 1) it.spy.postMessage({}); \
         for (let n = 0; n < 1000; n += 1) it.spy.postMessage({{ stagger: 'answered', target: {target} }}); \
         it.spy.postMessage('end'); 0",
        pause("Infinity"),
    );
    let began = Instant::now();
    tabs.eval(0, &longest).await;
    tabs.browser.until(&tabs.pages[1], "it.told.includes('end')").await;
    tabs.begin(1, "/now?bounded").await;
    tabs.done(&[1]).await;
    let bounded = tabs.api.seen("bounded")[0].at - began;
    println!("after messages without a meaning {ignored:?}, after a pause without end {bounded:?}");
    assert!(ignored < 20 * SECOND && bounded >= SECOND / 2 && bounded < 20 * SECOND);
    tabs.browser.close(&stranger).await;
}

async fn holds_a_worker_and_its_page(tabs: &mut Tabs) {
    tabs.share(&[0], "worker", "{}").await;
    let start = "new Promise(resolve => { globalThis.worker = new Worker('/worker.js', { type: 'module' }); \
                 worker.onmessage = ({ data }) => resolve(data) })";
    assert_eq!(tabs.eval(0, start).await, "ready");
    let ask = |url: String, init: &str| {
        format!(
            "new Promise(resolve => {{ worker.onmessage = ({{ data }}) => resolve(data); \
             worker.postMessage({{ url: '{url}', init: {init} }}) }})"
        )
    };
    tabs.api.open(true);
    // The page holds the worker, then the worker the page.
    let refused = tabs.refused(0, "status=429&ms=300&expose").await;
    let call = ask(format!("{}/now?from=worker", tabs.api.url()), "{}");
    assert_eq!(tabs.eval(0, &call).await, 200);
    let held = tabs.api.seen("from=worker")[0].at - refused;
    assert!(held >= Duration::from_millis(300), "{held:?}");

    tabs.eval(0, "it.told.length = 0").await;
    let call = ask(format!("{}/refuse?status=503&ms=300&expose&by=worker", tabs.api.url()), "{ method: 'POST' }");
    assert_eq!(tabs.eval(0, &call).await, 503);
    let refused = tabs.api.seen("by=worker")[0].at;
    tabs.browser.until(&tabs.pages[0], "it.told.some(({ stagger }) => stagger === 'pause')").await;
    tabs.begin(0, "/now?from=page").await;
    tabs.done(&[0]).await;
    let held = tabs.api.seen("from=page")[0].at - refused;
    assert!(held >= Duration::from_millis(300), "{held:?}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn one_of_ten_tabs_sends_the_first_request_after_a_pause_also_if_another_is_closed_or_frozen() {
    let mut tabs = Tabs::open(10).await;
    all_follow_the_probe_of_one(&mut tabs).await;
    another_follows_a_tab_that_is_closed(&mut tabs).await;
    another_follows_a_tab_that_is_frozen(&mut tabs).await;
}

async fn all_follow_the_probe_of_one(tabs: &mut Tabs) {
    let all = [0, 1, 2, 3, 4, 5, 6, 7, 8, 9];
    tabs.share(&all, "ten", "{}").await;
    let refused = tabs.refused(0, "status=503&ms=500&expose").await;
    tabs.told(&all[1..]).await;
    let (_, at) = tabs.one_probe(&all, "ten").await;
    assert!(at - refused >= SECOND / 2, "{:?}", at - refused);
    let opened = Instant::now();
    tabs.api.open(true);
    tabs.done(&all).await;
    let arrivals = tabs.api.seen("ten");
    assert_eq!(arrivals.len(), 10);
    let after: Vec<_> = arrivals[1..].iter().map(|call| (call.at - opened).as_millis()).collect();
    println!("the others came {after:?} ms after the answer to the probe");
}

async fn another_follows_a_tab_that_is_closed(tabs: &mut Tabs) {
    let some = [0, 1, 2];
    tabs.share(&some, "closed", "{}").await;
    _ = tabs.refused(0, "status=429&ms=300&expose").await;
    tabs.told(&some[1..]).await;
    let (first, _) = tabs.one_probe(&some, "closed").await;
    let closed = Instant::now();
    let page = tabs.pages[first].clone();
    tabs.browser.close(&page).await;
    let next = tabs.api.until("closed", 2).await[1].clone();
    println!("another tab had the probe {:?} after the first was closed", next.at - closed);
    assert!(tab_of(&next.query) != first);
    sleep(Duration::from_millis(300)).await;
    assert_eq!(tabs.api.seen("closed").len(), 2);
    tabs.api.open(true);
    let rest: Vec<_> = some.into_iter().filter(|tab| *tab != first).collect();
    tabs.done(&rest).await;
}

async fn another_follows_a_tab_that_is_frozen(tabs: &mut Tabs) {
    let some = [5, 6, 7, 8, 9];
    // The 30 s after which a probe is passed over take 2 s.
    tabs.share(&some, "frozen", "{ speed: 15 }").await;
    _ = tabs.refused(5, "status=429&after=1&expose").await;
    tabs.told(&some[1..]).await;
    for tab in some {
        tabs.begin(tab, "/gated?frozen").await;
    }
    let probe = tabs.api.until("frozen", 1).await.remove(0);
    let first = tab_of(&probe.query);
    let (page, other) = (tabs.pages[first].clone(), tabs.pages[if first == 9 { 8 } else { 9 }].clone());
    tabs.browser.show(&other).await;
    tabs.browser.until(&page, "document.visibilityState === 'hidden'").await;
    let state = |state| json!({ "state": state });
    tabs.browser.call(&page, "Page.setWebLifecycleState", state("frozen")).await;
    let next = tabs.api.until("frozen", 2).await[1].clone();
    println!("another tab had the probe {:?} after the first, which was frozen", next.at - probe.at);
    assert!(tab_of(&next.query) != first && next.at - probe.at >= SECOND * 19 / 10);
    // The frozen tab has not released its lock.
    let held = "navigator.locks.query().then(({ held }) => held.filter(({ name }) => name.includes('frozen')).length)";
    assert_eq!(tabs.browser.eval(&other, held).await, 2);
    tabs.api.open(true);
    let rest: Vec<_> = some.into_iter().filter(|tab| *tab != first).collect();
    tabs.done(&rest).await;
    tabs.browser.call(&page, "Page.setWebLifecycleState", state("active")).await;
    tabs.done(&[first]).await;
}
