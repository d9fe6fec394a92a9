use object_store::aws::{AmazonS3, AmazonS3Builder};
use object_store::{ObjectStore as _, ObjectStoreExt as _, PutMode, PutOptions, RetryConfig};
use stagger::{Rejected, Retrier, policy};
use stagger_http::object_store::RetryConnector;
use stagger_http::tower::RetryLayer;
use tokio::time::Instant;

use super::super::recipes;
use super::server::{POLICY, Reply, Server, breaker, header, script, tokens};
use super::transport::Transport;

const GOT: Reply = Reply::Response(200, "etag: \"1\"\r\nlast-modified: Sun, 06 Nov 1994 08:49:37 GMT\r\n", "an object");
const PUT: Reply = Reply::Response(200, "etag: \"1\"\r\n", "");
const SLOW_DOWN: Reply = Reply::Response(503, "", "<Error><Code>SlowDown</Code></Error>");
const STARTED: Reply =
    Reply::Response(200, "", "<InitiateMultipartUploadResult><UploadId>u</UploadId></InitiateMultipartUploadResult>");
const COMPLETED: Reply =
    Reply::Response(200, "", "<CompleteMultipartUploadResult><ETag>\"2\"</ETag></CompleteMultipartUploadResult>");

fn s3(url: &str) -> AmazonS3Builder {
    AmazonS3Builder::new().with_bucket_name("bucket").with_endpoint(url).with_allow_http(true).with_skip_signature(true)
}

fn store(server: &Server, retrier: Retrier) -> AmazonS3 {
    recipes::object_store(s3(&server.url()), Transport::new(), retrier).unwrap()
}

#[tokio::test(start_paused = true)]
async fn reads_and_writes_of_an_object_store_are_retried_as_the_policy_says() {
    let server = script(&[SLOW_DOWN, Reply::Cut, GOT, SLOW_DOWN, Reply::Cut, PUT]);
    let store = store(&server, Retrier::new(POLICY));
    let start = Instant::now();
    let object = store.get(&"key".into()).await.unwrap().bytes().await.unwrap();
    assert_eq!((object.as_ref(), start.elapsed().as_secs()), (b"an object".as_slice(), 1 + 2));
    store.put(&"key".into(), "an object".into()).await.unwrap();
    assert_eq!(start.elapsed().as_secs(), 6);
    let lengths: Vec<_> =
        server.requests().iter().map(|head| header(head, "content-length").map(str::to_owned)).collect();
    assert_eq!(
        lengths[3..],
        [Some("9".to_owned()), Some("9".to_owned()), Some("9".to_owned())],
        "the whole body each time"
    );
}

#[tokio::test(start_paused = true)]
async fn an_object_store_honors_server_hints() {
    let server = script(&[Reply::Response(503, "retry-after: 30\r\n", ""), GOT]);
    let start = Instant::now();
    store(&server, Retrier::new(POLICY)).get(&"key".into()).await.unwrap();
    assert_eq!((server.requests().len(), start.elapsed().as_secs()), (2, 30));
}

#[tokio::test(start_paused = true)]
async fn an_object_store_fails_once_with_its_own_error_when_the_policy_stops() {
    for (reply, requests, text) in [
        (SLOW_DOWN, 5, "SlowDown"),
        (Reply::Cut, 5, "connection closed"),
        (Reply::Response(403, "", "<Error><Code>AccessDenied</Code></Error>"), 1, "AccessDenied"),
    ] {
        let server = Server::start(move |_| reply);
        let error = store(&server, Retrier::new(POLICY)).get(&"key".into()).await.unwrap_err();
        assert_eq!(server.requests().len(), requests, "{reply:?}");
        let links = stagger::classify::links(&error).map(|link| format!("{link}, ")).collect::<String>();
        assert!(links.contains(text), "{links}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_conditional_write_is_not_repeated_after_a_lost_response() {
    for reply in [Reply::Cut, SLOW_DOWN] {
        let server = Server::start(move |number| if number == 0 { reply } else { Reply::Response(412, "", "") });
        let store = store(&server, Retrier::new(POLICY));
        let error = store.put_opts(&"key".into(), "mine".into(), PutOptions::from(PutMode::Create)).await.unwrap_err();
        assert!(!matches!(error, object_store::Error::AlreadyExists { .. }), "{error}");
        assert_eq!(server.requests().len(), 1, "{reply:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_conditional_write_is_repeated_if_declared_and_then_finds_its_own_object() {
    let server = script(&[Reply::Cut, Reply::Response(412, "", "")]);
    let layer = RetryLayer::new(Retrier::new(POLICY)).idempotent_if(|head| head.method == http::Method::PUT);
    let store = s3(&server.url()).with_http_connector(RetryConnector::new(Transport::new(), layer));
    let store = store.with_retry(RetryConfig { max_retries: 0, ..RetryConfig::default() }).build().unwrap();
    let error = store.put_opts(&"key".into(), "mine".into(), PutOptions::from(PutMode::Create)).await.unwrap_err();
    assert!(matches!(error, object_store::Error::AlreadyExists { .. }), "{error}");
    assert_eq!(server.requests().len(), 2);
}

#[tokio::test(start_paused = true)]
async fn a_conditional_write_is_repeated_if_nothing_listens() {
    let store = recipes::object_store(s3("http://127.0.0.1:1"), Transport::new(), Retrier::new(POLICY)).unwrap();
    let start = Instant::now();
    store.put_opts(&"key".into(), "mine".into(), PutOptions::from(PutMode::Create)).await.unwrap_err();
    assert_eq!(start.elapsed().as_secs(), 1 + 2 + 4 + 8);
}

#[tokio::test(start_paused = true)]
async fn an_upload_in_parts_is_retried_in_each_of_its_steps() {
    let server = script(&[SLOW_DOWN, STARTED, SLOW_DOWN, PUT, Reply::Cut, COMPLETED]);
    let store = store(&server, Retrier::new(POLICY));
    let mut upload = store.put_multipart(&"key".into()).await.unwrap();
    upload.put_part("part".into()).await.unwrap();
    upload.complete().await.unwrap();
    let methods: Vec<_> = server.requests().iter().map(|head| head.split(' ').next().unwrap().to_owned()).collect();
    assert_eq!(methods, ["post", "post", "put", "put", "post", "post"]);
}

#[tokio::test(start_paused = true)]
async fn a_body_that_breaks_off_is_an_error_of_the_read() {
    let server =
        script(&[Reply::CutBody("etag: \"1\"\r\nlast-modified: Sun, 06 Nov 1994 08:49:37 GMT\r\n", "an obj"), GOT]);
    let store = store(&server, Retrier::new(POLICY));
    store.get(&"key".into()).await.unwrap().bytes().await.unwrap_err();
    assert_eq!(server.requests().len(), 1);
}

#[tokio::test(start_paused = true)]
async fn two_object_stores_share_a_budget() {
    let tokens = tokens(15);
    let retrier = Retrier::new(POLICY).shared_guard(tokens);
    let servers = [script(&[SLOW_DOWN]), script(&[SLOW_DOWN])];
    let stores = [0, 1].map(|number: usize| store(&servers[number], retrier.clone()));
    for store in stores.iter().cycle().take(10) {
        store.get(&"key".into()).await.unwrap_err();
    }
    let requests: usize = servers.iter().map(|server| server.requests().len()).sum();
    assert_eq!(requests, 10 + 3, "ten reads, and the three retries of the budget");
}

#[tokio::test(start_paused = true)]
async fn the_error_of_a_rejected_request_to_an_object_store_says_so() {
    let server = script(&[SLOW_DOWN]);
    let store = store(&server, Retrier::new(policy!(zero().max_attempts(2))).breaker(breaker()));
    store.get(&"key".into()).await.unwrap_err();
    let error = store.get(&"key".into()).await.unwrap_err();
    assert_eq!(server.requests().len(), 2);
    assert!(stagger::classify::links(&error).any(|link| link.is::<Rejected>()), "{error:?}");
}
