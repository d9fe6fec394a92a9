use http::Request;
use opendal::services::Webdav;
use opendal::{Buffer, ErrorKind, HttpTransporter, OperationContext, Operator};
use stagger::{Rejected, Retrier, policy};
use tokio::time::Instant;

use super::super::recipes;
use super::server::{POLICY, Reply, Server, breaker, header, script, tokens};
use super::transport::Transport;

const GOT: Reply = Reply::Response(200, "etag: \"1\"\r\n", "an object");
const PUT: Reply = Reply::Response(200, "etag: \"1\"\r\n", "");
const ROOT: Reply = Reply::Response(
    207,
    "",
    "<D:multistatus xmlns:D=\"DAV:\"><D:response><D:href>/</D:href><D:propstat><D:prop>\
     <D:getlastmodified>Sun, 06 Nov 1994 08:49:37 GMT</D:getlastmodified>\
     <D:resourcetype><D:collection/></D:resourcetype></D:prop><D:status>HTTP/1.1 200 OK</D:status></D:propstat></D:response></D:multistatus>",
);
const SLOW_DOWN: Reply = Reply::Response(503, "", "<Error><Code>SlowDown</Code></Error>");

fn store(server: &Server, retrier: Retrier) -> Operator {
    let service = Webdav::default().endpoint(&server.url());
    let context = OperationContext::new().with_http_transport(HttpTransporter::new(Transport::new()));
    recipes::opendal(Operator::new(service).unwrap().with_context(context), retrier)
}

#[tokio::test(start_paused = true)]
async fn reads_and_writes_of_opendal_are_retried_as_the_policy_says() {
    // The service looks for the directory before it writes.
    let server = script(&[SLOW_DOWN, ROOT, SLOW_DOWN, Reply::Cut, PUT, SLOW_DOWN, Reply::Cut, GOT]);
    let store = store(&server, Retrier::new(POLICY));
    let start = Instant::now();
    store.write("key", "an object").await.unwrap();
    assert_eq!(start.elapsed().as_secs(), 1 + (1 + 2));
    assert_eq!(store.read("key").await.unwrap().to_vec(), b"an object");
    assert_eq!(start.elapsed().as_secs(), 1 + 2 * (1 + 2));
    let requests = server.requests();
    let methods: Vec<_> = requests.iter().filter_map(|head| head.split(' ').next()).collect();
    assert_eq!(methods, ["propfind", "propfind", "put", "put", "put", "get", "get", "get"]);
    assert!(requests[2..5].iter().all(|head| header(head, "content-length") == Some("9")), "the whole body each time");
}

#[tokio::test(start_paused = true)]
async fn opendal_honors_server_hints() {
    let server = script(&[Reply::Response(429, "retry-after: 30\r\n", ""), GOT]);
    let start = Instant::now();
    store(&server, Retrier::new(POLICY)).read("key").await.unwrap();
    assert_eq!((server.requests().len(), start.elapsed().as_secs()), (2, 30));
}

#[tokio::test(start_paused = true)]
async fn opendal_fails_once_with_its_own_error_when_the_policy_stops() {
    for (reply, requests, kind) in [
        (SLOW_DOWN, 5, ErrorKind::Unexpected),
        (Reply::Cut, 5, ErrorKind::Unexpected),
        (Reply::Response(404, "", ""), 1, ErrorKind::NotFound),
    ] {
        let server = Server::start(move |_| reply);
        let error = store(&server, Retrier::new(POLICY)).read("key").await.unwrap_err();
        assert_eq!((server.requests().len(), error.kind()), (requests, kind), "{reply:?}: {error}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_conditional_write_of_opendal_is_not_repeated_after_a_lost_response() {
    for (condition, requests) in [("if-none-match", 1), ("x-other", 2)] {
        let server = script(&[Reply::Cut, PUT]);
        let store = store(&server, Retrier::new(POLICY));
        // As the services send it; that of WebDAV has no such writes.
        let request = Request::put(server.url()).header(condition, "*").body(Buffer::from("mine")).unwrap();
        let end = store.context().http_transport().send(request).await;
        assert_eq!((server.requests().len(), end.is_ok()), (requests, requests > 1), "{condition}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_body_of_opendal_that_breaks_off_is_an_error_of_the_read() {
    let server = script(&[Reply::CutBody("", "an obj"), GOT]);
    store(&server, Retrier::new(POLICY)).read("key").await.unwrap_err();
    assert_eq!(server.requests().len(), 1);
}

#[tokio::test(start_paused = true)]
async fn two_stores_of_opendal_share_a_budget() {
    let tokens = tokens(15);
    let retrier = Retrier::new(POLICY).shared_guard(tokens);
    let servers = [script(&[SLOW_DOWN]), script(&[SLOW_DOWN])];
    let stores = [0, 1].map(|number: usize| store(&servers[number], retrier.clone()));
    for store in stores.iter().cycle().take(10) {
        store.read("key").await.unwrap_err();
    }
    let requests: usize = servers.iter().map(|server| server.requests().len()).sum();
    assert_eq!(requests, 10 + 3, "ten reads, and the three retries of the budget");
}

#[tokio::test(start_paused = true)]
async fn the_error_of_a_rejected_request_of_opendal_says_so() {
    let server = script(&[SLOW_DOWN]);
    let store = store(&server, Retrier::new(policy!(zero().max_attempts(2))).breaker(breaker()));
    store.read("key").await.unwrap_err();
    let error = store.read("key").await.unwrap_err();
    assert_eq!(server.requests().len(), 2);
    assert!(stagger::classify::links(&error).any(|link| link.is::<Rejected>()), "{error:?}");
}
