//! The requests: providers, credentials, reservations, and what is not sent twice; on tokio's paused clock.

use std::sync::{Arc, Mutex};

use bytes::Bytes;
use http::{Method, Request};
use http_body_util::Full;
use stagger::{Policy, StopReason, policy};
use stagger_http::sse::{ConnectAttempt, ConnectionError};

use super::scripted_server::{Reply, Server, open, run, status, stream, take};
use super::secs;

const EXACT: Policy = policy!(constant(secs(1)).jitter(Jitter::None).unlimited_attempts());
const RESERVATION: &str = "1520;token=000102030405060708090a0b0c0d0e0f";

fn post(key: Option<&str>) -> Request<Full<Bytes>> {
    let mut request = Request::post("http://server.test/ask");
    if let Some(key) = key {
        request = request.header("idempotency-key", key);
    }
    request.body(Full::from("a question")).unwrap()
}

fn get(path: &str) -> Request<Full<Bytes>> {
    Request::get(format!("http://server.test{path}")).body(Full::default()).unwrap()
}

#[tokio::test(start_paused = true)]
async fn a_post_that_may_have_been_processed_is_not_sent_again() {
    let replies =
        [stream("data: x\n\n"), status(503), Reply::Fails(std::io::ErrorKind::ConnectionRefused), Reply::Silence];
    for reply in replies {
        let server = Server::always(reply.clone());
        let client = server.client().retrier(EXACT).request(|_| async { Ok(post(None)) }).connect();
        let (_, fatal) = run(client).await;
        let fatal = fatal.unwrap();
        assert!(matches!(fatal.cause(), ConnectionError::UnsafeToRetry), "{reply:?}: {fatal:#}");
        assert_eq!((fatal.stop_reason(), server.times().len()), (StopReason::UnsafeToRetry, 1), "{reply:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_post_that_was_cancelled_underway_is_not_sent_again() {
    let server = Server::new([Reply::Silence]);
    let mut client = server.client().retrier(EXACT).request(|_| async { Ok(post(None)) }).connect();
    assert!(tokio::time::timeout(secs(1), client.next()).await.is_err());
    client.reconnect_now();
    let (_, fatal) = run(client).await;
    assert_eq!((fatal.unwrap().stop_reason(), server.times().len()), (StopReason::UnsafeToRetry, 1));
}

#[tokio::test(start_paused = true)]
async fn a_post_with_a_key_or_that_is_declared_idempotent_is_sent_again() {
    let server = Server::new([stream("")]);
    let client = server.client().retrier(EXACT).request(|_| async { Ok(post(Some("k"))) });
    take(&mut client.connect(), 3).await;
    let declared = Server::new([stream("")]);
    let client = declared.client().retrier(EXACT).idempotent().request(|_| async { Ok(post(None)) });
    take(&mut client.connect(), 3).await;
    assert_eq!([server.times().len(), declared.times().len()], [2, 2]);
}

#[tokio::test(start_paused = true)]
async fn a_post_that_was_certainly_not_processed_is_sent_again() {
    let reserved = Reply::Head(503, vec![("stagger-reservation", RESERVATION.to_owned())]);
    for reply in [reserved, status(401)] {
        let server = Server::new([reply.clone(), stream("")]);
        let client = server.client().retrier(EXACT).request(|_| async { Ok(post(None)) }).connect();
        let (_, fatal) = run(client).await;
        assert_eq!((fatal.unwrap().stop_reason(), server.times().len()), (StopReason::UnsafeToRetry, 2), "{reply:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_stream_that_a_post_began_is_continued_with_a_get() {
    let continued = |attempt: &ConnectAttempt| match attempt.last_event_id() {
        "" => post(None),
        _ => get("/continue"),
    };
    let server = Server::new([stream("id: 1\ndata: a\n\n"), stream("id: 2\ndata: b\n\n")]);
    let client = server.client().retrier(EXACT).request(move |attempt| {
        let request = continued(&attempt);
        async { Ok(request) }
    });
    take(&mut client.connect(), 7).await;
    let methods: Vec<_> = server.arrived().into_iter().map(|arrived| (arrived.method, arrived.path)).collect();
    let get = (Method::GET, "/continue".to_owned());
    assert_eq!(methods, [(Method::POST, "/ask".to_owned()), get.clone(), get]);
}

#[tokio::test(start_paused = true)]
async fn a_denied_get_does_not_make_an_earlier_post_safe() {
    let requests = Arc::new(Mutex::new(vec![post(None), get("/"), post(None)].into_iter()));
    let server = Server::new([stream(""), status(401)]);
    let client = server.client().retrier(EXACT).request(move |_| {
        let next = requests.lock().unwrap().next();
        async { next.ok_or_else(|| ConnectionError::InvalidRequest("no more requests").into()) }
    });
    let (_, fatal) = run(client.connect()).await;
    assert_eq!((fatal.unwrap().stop_reason(), server.times().len()), (StopReason::UnsafeToRetry, 2));
}

#[tokio::test(start_paused = true)]
async fn rejected_credentials_are_refreshed_once() {
    let seen = Arc::new(Mutex::new(Vec::new()));
    let server = Server::new([status(401), stream(""), status(403), status(503), status(403)]);
    let record = Arc::clone(&seen);
    let client = server.client().retrier(EXACT).request(move |attempt| {
        record.lock().unwrap().push(attempt.auth_rejection());
        let token = format!("Bearer {}", attempt.number());
        async move { Ok(Request::get("http://server.test/").header("authorization", token).body(Full::default())?) }
    });
    let (told, fatal) = run(client.connect()).await;
    assert_eq!(told.last().unwrap(), "closed: rejected with 403 Forbidden");
    assert_eq!(fatal.map(|fatal| fatal.stop_reason()), Some(StopReason::Permanent));
    assert_eq!(*seen.lock().unwrap(), [None, Some(401), None, Some(403), Some(403)]);
    assert_eq!(server.headers("authorization")[..2], [Some("Bearer 1".to_owned()), Some("Bearer 2".to_owned())]);

    let patient = Server::new([status(401), status(401), status(401)]);
    take(&mut patient.client().retrier(EXACT).max_auth_retries(3).connect(), 4).await;
}

#[tokio::test(start_paused = true)]
async fn a_reservation_is_kept_and_shown_to_its_server_alone() {
    let reserved = || Reply::Head(503, vec![("stagger-reservation", RESERVATION.to_owned())]);
    let server = Server::new([reserved(), open("")]);
    take(&mut server.client().retrier(EXACT).connect(), 2).await;
    assert_eq!(server.times()[1].as_millis(), 1520);
    let token = Some("000102030405060708090a0b0c0d0e0f".to_owned());
    assert_eq!(server.headers("stagger-reservation-token"), [None, token]);

    let server = Server::new([reserved(), open("")]);
    let client = server.client().retrier(EXACT).request(|attempt| async move {
        Ok(Request::get(format!("http://server{}.test/", attempt.number())).body(Full::default())?)
    });
    take(&mut client.connect(), 2).await;
    assert_eq!(server.headers("stagger-reservation-token"), [None, None]);
}

/// Something else than admission control has sent it.
#[tokio::test(start_paused = true)]
async fn a_reservation_with_another_status_is_not_kept_and_proves_nothing() {
    let reserved = || Reply::Head(500, vec![("stagger-reservation", RESERVATION.to_owned())]);
    let server = Server::new([reserved(), open("")]);
    take(&mut server.client().retrier(EXACT).connect(), 2).await;
    assert_eq!(server.headers("stagger-reservation-token"), [None, None]);

    let server = Server::new([reserved(), open("")]);
    let client = server.client().retrier(EXACT).request(|_| async { Ok(post(None)) }).connect();
    let (_, fatal) = run(client).await;
    assert_eq!((fatal.unwrap().stop_reason(), server.times().len()), (StopReason::UnsafeToRetry, 1));
}

#[tokio::test(start_paused = true)]
async fn an_error_of_the_provider_is_transient() {
    let server = Server::new([]);
    let client = server
        .client()
        .retrier(EXACT)
        .request(|attempt| async move { if attempt.number() < 3 { Err("no token".into()) } else { Ok(get("/")) } });
    let told = take(&mut client.connect(), 3).await;
    assert_eq!(
        told,
        ["closed: the request provider failed", "closed: the request provider failed", "open by attempt 3"]
    );
}

#[tokio::test(start_paused = true)]
async fn headers_of_the_provider_are_kept() {
    let server = Server::new([]);
    let client = server.client().last_event_id("7").request(|_| async {
        let accept = "application/json, text/event-stream";
        let request = Request::post("http://server.test/mcp").header("accept", accept).header("last-event-id", "old");
        Ok(request.header("cache-control", "no-cache").body(Full::default())?)
    });
    take(&mut client.connect(), 1).await;
    assert_eq!(server.headers("accept"), [Some("application/json, text/event-stream".to_owned())]);
    assert_eq!(server.headers("cache-control"), [Some("no-cache".to_owned())]);
    assert_eq!(server.headers("last-event-id"), [Some("7".to_owned())]);
}

#[tokio::test(start_paused = true)]
async fn a_client_that_can_send_no_request_says_why() {
    let server = Server::new([]);
    let too_long = "x".repeat(4097);
    let why = "the initial id of the last event is too long or has control characters";
    let cases = [
        (server.client().last_event_id("a\nb"), why),
        (server.client().last_event_id(too_long), why),
        (server.client().url("http://[nowhere"), "the URL cannot be parsed"),
        (stagger_http::sse::Client::with_service(server.service()), "no URL is set; call url or request"),
    ];
    for (client, why) in cases {
        let mut client = client.connect();
        for again in ["", "again"] {
            let fatal = loop {
                if let Err(fatal) = client.next().await.unwrap() {
                    break fatal;
                }
            };
            assert_eq!(fatal.cause().to_string(), format!("invalid request: {why}"), "{again}");
            assert_eq!(fatal.stop_reason(), StopReason::Permanent);
            client.reconnect_now();
        }
    }
    const SHORT: Policy = policy!(constant(secs(1)).jitter(Jitter::None).max_elapsed(secs(5)));
    let (_, fatal) = run(server.client().retrier(SHORT).spread(secs(10)).connect()).await;
    let text = fatal.unwrap().cause().to_string();
    assert!(
        text.starts_with("invalid policy: ") && text.contains("spread 10s is longer than max-elapsed 5s"),
        "{text}"
    );
    assert_eq!(server.times().len(), 0);
}
