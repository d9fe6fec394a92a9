//! The spans of attempts, as a subscriber sees them.

use core::sync::atomic::{AtomicU64, Ordering};
use std::collections::BTreeMap;
use std::io;

use std::sync::{Arc, Mutex};

use http::Method;
use stagger::Retrier;
use stagger_http::tower::RetryLayer;
use tower::{ServiceBuilder, ServiceExt as _};
use tracing::field::{Field, Visit};
use tracing::span::{Attributes, Id, Record};
use tracing::{Event, Metadata, Subscriber};

use super::tower::{POLICY, ms, request, server, status};

type Fields = BTreeMap<&'static str, String>;

/// Keeps the fields of each span, in the order of their beginnings, and how many are open.
#[derive(Clone, Default)]
struct Recorder {
    spans: Arc<Mutex<Vec<Fields>>>,
    open: Arc<AtomicU64>,
}

struct Into<'a>(&'a mut Fields);

impl Visit for Into<'_> {
    fn record_debug(&mut self, field: &Field, value: &dyn core::fmt::Debug) {
        self.0.insert(field.name(), format!("{value:?}").trim_matches('"').to_owned());
    }
}

impl Subscriber for Recorder {
    fn enabled(&self, metadata: &Metadata<'_>) -> bool {
        metadata.target() == "stagger_http"
    }

    fn new_span(&self, span: &Attributes<'_>) -> Id {
        let mut spans = self.spans.lock().unwrap();
        let mut fields = Fields::new();
        span.record(&mut Into(&mut fields));
        spans.push(fields);
        self.open.fetch_add(1, Ordering::SeqCst);
        Id::from_u64(spans.len() as u64)
    }

    fn record(&self, span: &Id, values: &Record<'_>) {
        let mut spans = self.spans.lock().unwrap();
        values.record(&mut Into(&mut spans[span.into_u64() as usize - 1]));
    }

    fn try_close(&self, _: Id) -> bool {
        self.open.fetch_sub(1, Ordering::SeqCst);
        true
    }

    fn record_follows_from(&self, _: &Id, _: &Id) {}
    fn event(&self, _: &Event<'_>) {}
    fn enter(&self, _: &Id) {}
    fn exit(&self, _: &Id) {}
}

#[tokio::test(start_paused = true)]
async fn each_attempt_has_a_span_with_its_number_its_end_and_what_caused_it() {
    let recorder = Recorder::default();
    let _guard = tracing::subscriber::set_default(recorder.clone());
    let (server, _) = server([status(503), Err(io::ErrorKind::ConnectionRefused.into()), status(200)]);
    let client = ServiceBuilder::new().layer(RetryLayer::new(Retrier::new(POLICY))).service(server);
    let call = tokio::spawn(client.oneshot(request(Method::GET, "")));
    tokio::time::sleep(ms(50)).await;
    assert_eq!(recorder.open.load(Ordering::SeqCst), 0, "the span ends before the backoff");
    assert_eq!(call.await.unwrap().unwrap().status(), 200);
    let spans = recorder.spans.lock().unwrap().clone();
    let column = |name: &str| spans.iter().map(|span| span.get(name).map_or("-", String::as_str)).collect::<Vec<_>>();
    assert_eq!(column("http.request.method"), ["GET", "GET", "GET"]);
    assert_eq!(column("http.request.resend_count"), ["-", "1", "2"]);
    assert_eq!(column("http.response.status_code"), ["503", "-", "200"]);
    assert_eq!(column("error.type"), ["503", "_OTHER", "-"]);
    assert_eq!(column("stagger.attempt.cause"), ["-", "503", "_OTHER"]);
    assert_eq!(column("otel.status_code"), ["ERROR", "ERROR", "-"]);
    assert_eq!(recorder.open.load(Ordering::SeqCst), 0);
}

#[tokio::test(start_paused = true)]
async fn an_attempt_that_takes_too_long_ends_with_a_timeout() {
    let recorder = Recorder::default();
    let _guard = tracing::subscriber::set_default(recorder.clone());
    let service = tower::service_fn(|_: super::tower::LayerRequest| async {
        tokio::time::sleep(ms(10_000)).await;
        status(200)
    });
    let retrier = Retrier::new(POLICY.to_builder().max_attempts(2).build().unwrap()).timeout(ms(20));
    let client = ServiceBuilder::new().layer(RetryLayer::new(retrier)).service(service);
    client.oneshot(request(Method::GET, "")).await.unwrap_err();
    let spans = recorder.spans.lock().unwrap().clone();
    let ends: Vec<_> = spans.iter().map(|span| &*span["error.type"]).collect();
    assert_eq!(ends, ["timeout", "timeout"]);
    assert_eq!(spans[1]["stagger.attempt.cause"], "timeout");
}

#[cfg(feature = "reqwest-middleware")]
#[tokio::test(start_paused = true)]
async fn attempts_of_reqwest_have_the_same_spans() {
    let recorder = Recorder::default();
    let _guard = tracing::subscriber::set_default(recorder.clone());
    let away = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let retrier = Retrier::new(POLICY.to_builder().max_attempts(2).build().unwrap());
    let retries = stagger_http::reqwest::RetryMiddleware::new(retrier);
    let client = reqwest_middleware::ClientBuilder::new(reqwest::Client::new()).with(retries).build();
    client.get(format!("http://{away}/")).send().await.unwrap_err();
    let spans = recorder.spans.lock().unwrap().clone();
    let [first, second] = &spans[..] else { panic!("{spans:?}") };
    assert_eq!((&*first["server.address"], &*first["error.type"]), ("127.0.0.1", "_OTHER"));
    assert_eq!((&*second["http.request.resend_count"], &*second["stagger.attempt.cause"]), ("1", "_OTHER"));
    assert_eq!(recorder.open.load(Ordering::SeqCst), 0);
}
