//! Requests of pages and workers to another origin.

use core::time::Duration;

use super::api::Api;
use super::browser::Browser;
use super::site::Site;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_page_and_its_worker_follow_the_hints_that_they_may_read() {
    let (api, site, mut browser) = (Api::serve(), Site::serve(), Browser::start().await);
    let page = browser.open(&site.url()).await;
    let start = "new Promise(resolve => { globalThis.worker = new Worker('/worker.js', { type: 'module' }); \
                 worker.onmessage = ({ data }) => resolve(data) })";
    assert_eq!(browser.eval(&page, start).await, "ready");
    let by_page = "stagger.fetchRetry('URL', {}, { policy: stagger.parsePolicy('default max-attempts=2') }) \
                   .then(({ status }) => status)";
    let by_worker =
        "new Promise(resolve => { worker.onmessage = ({ data }) => resolve(data); worker.postMessage('URL') })";
    for (caller, call) in [("page", by_page), ("worker", by_worker)] {
        // A hint that they could read would end the call, because it is above `max-hint`.
        for (hint, least) in [("after=60", 0), ("after=60&ms=300&expose", 300)] {
            let query = format!("status=503&{hint}&by={caller}");
            let status = browser.eval(&page, &call.replace("URL", &format!("{}/refuse?{query}", api.url()))).await;
            let seen = api.seen(&query);
            assert_eq!((status.as_u64(), seen.len()), (Some(503), 2), "{query}");
            let waited = seen[1] - seen[0];
            assert!(waited >= Duration::from_millis(least), "{query}: {waited:?}");
        }
    }
    assert_eq!(browser.console, [""; 0]);
}
