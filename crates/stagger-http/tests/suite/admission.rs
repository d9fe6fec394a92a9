//! The server's side: whom it lets in, and when the others come back.

use core::convert::Infallible;
use core::pin::pin;
use core::time::Duration;

use bytes::Bytes;
use http::{Request, Response};
use http_body_util::Full;
use stagger::admission::Admission;
use stagger_http::advice::{TICKET, slot};
use stagger_http::tower::AdmissionLayer;
use tokio::time::sleep;
use tower::{Layer as _, Service as _, ServiceExt as _, service_fn};

/// The example, which prints what is held here.
#[path = "../../examples/herd.rs"]
#[allow(dead_code, reason = "an example has a main")]
mod herd;

use herd::{LIMIT, PER_SECOND, Says};

type Body = Full<Bytes>;

fn request() -> Request<Body> {
    Request::new(Body::default())
}

/// Ten thousand clients at once before a server that takes 500 a second, through both layers as they are shipped.
#[tokio::test(start_paused = true)]
async fn a_herd_that_reads_its_appointments_comes_back_as_a_line() {
    let line = herd::run(Says::Reservation).await.unwrap();
    assert!(line.attempts <= 2.2, "{line:?}");
    let most = PER_SECOND as usize * 11 / 10;
    assert!(line.admitted <= most && line.then <= most, "{line:?}");
    assert!(line.took <= LIMIT * 6 / 5, "{line:?}");
}

/// The same clients with less to go by: more attempts, more of them at once, and a server that is idle meanwhile.
#[tokio::test(start_paused = true)]
async fn without_appointments_the_same_herd_takes_longer_and_comes_more_often() {
    let told = herd::run(Says::RetryAfter).await.unwrap();
    assert!(told.attempts > 2.2 && told.then > PER_SECOND as usize * 11 / 10 && told.took > LIMIT * 6 / 5, "{told:?}");
    let alone = herd::run(Says::Nothing).await.unwrap();
    assert!(alone.attempts > 1.5 * told.attempts && alone.then > told.then && alone.took > told.took, "{alone:?}");
}

#[tokio::test(start_paused = true)]
async fn places_are_limited_and_free_again_however_a_request_ends() {
    let handler = service_fn(|_: Request<Body>| async {
        sleep(Duration::from_secs(1)).await;
        Ok::<_, Infallible>(Response::new(Body::default()))
    });
    let layer = AdmissionLayer::new(Admission::per_second(1000).build().unwrap()).concurrency(2);
    let server = layer.layer(handler);
    let first = tokio::spawn(server.clone().oneshot(request()));
    let second = tokio::spawn(server.clone().oneshot(request()));
    sleep(Duration::from_millis(1)).await;
    assert_eq!(layer.inside(), 2);
    let refused = server.clone().oneshot(request()).await.unwrap();
    assert_eq!((refused.status().as_u16(), refused.headers().contains_key("stagger-slot")), (503, true));
    first.abort();
    second.await.unwrap().unwrap();
    assert_eq!(layer.inside(), 0);
    assert_eq!(server.oneshot(request()).await.unwrap().status(), 200);
}

/// Others have appointments, too, so whoever comes without a ticket would take what is theirs.
#[tokio::test(start_paused = true)]
async fn a_ticket_is_what_lets_in_at_its_time() {
    let admission = Admission::per_second(1).burst(1).build().unwrap();
    let handler = service_fn(|_: Request<Body>| async { Ok::<_, Infallible>(Response::new(Body::default())) });
    let server = AdmissionLayer::new(admission).layer(handler);
    let status_with = async |ticket: Option<&str>| {
        let mut request = request();
        request.headers_mut().extend(ticket.map(|ticket| (Some(TICKET.parse().unwrap()), ticket.parse().unwrap())));
        server.clone().oneshot(request).await.unwrap().status().as_u16()
    };
    assert_eq!(status_with(None).await, 200);
    let refused = server.clone().oneshot(request()).await.unwrap();
    let ticket = slot(refused.headers()).unwrap().token.to_string();
    assert_eq!(status_with(None).await, 503, "it has the appointment after that");
    assert_eq!(status_with(Some(&ticket)).await, 503, "too early");
    sleep(Duration::from_secs(1)).await;
    assert_eq!([status_with(None).await, status_with(Some(&ticket)).await], [503, 200]);
}

/// However long its future is kept after its end, as something that joins many does.
#[tokio::test(start_paused = true)]
async fn a_place_is_free_as_soon_as_there_is_an_answer() {
    let handler = service_fn(|_: Request<Body>| async { Ok::<_, Infallible>(Response::new(Body::default())) });
    let layer = AdmissionLayer::new(Admission::per_second(1000).build().unwrap()).concurrency(1);
    let mut server = layer.layer(handler);
    let mut call = pin!(server.call(request()));
    call.as_mut().await.unwrap();
    assert_eq!(layer.inside(), 0);
}

/// Whole seconds, so that nobody comes too early, and never "now": that would be a rendezvous.
#[tokio::test(start_paused = true)]
async fn a_wait_is_told_in_whole_seconds_rounded_up_and_one_at_least() {
    // Three appointments in two seconds.
    let admission = Admission::per_second(3).burst(1).build().unwrap();
    let handler = service_fn(|_: Request<Body>| async { Ok::<_, Infallible>(Response::new(Body::default())) });
    let server = AdmissionLayer::new(admission).layer(handler);
    let mut told = Vec::new();
    for _ in 0..6 {
        let answer = server.clone().oneshot(request()).await.unwrap();
        told.extend(answer.headers().get("retry-after").map(|wait| wait.to_str().unwrap().to_owned()));
    }
    // 334, 667, 1001, 1334 and 1667 ms.
    assert_eq!(told, ["1", "1", "2", "2", "2"]);

    let full = AdmissionLayer::new(Admission::per_second(3).build().unwrap()).concurrency(0);
    let at_once =
        full.layer(service_fn(|_: Request<Body>| async { Ok::<_, Infallible>(Response::new(Body::default())) }));
    let answer = at_once.oneshot(request()).await.unwrap();
    assert!(answer.headers()["stagger-slot"].to_str().unwrap().starts_with("0;"));
    assert_eq!(answer.headers()["retry-after"], "1");
}

/// Beyond the longest appointment the answer is no, with a wait for everybody's clients.
#[tokio::test(start_paused = true)]
async fn a_queue_that_is_too_long_says_so() {
    let admission = Admission::per_second(1).burst(1).max_wait(Duration::from_secs(2)).build().unwrap();
    let handler = service_fn(|_: Request<Body>| async { Ok::<_, Infallible>(Response::new(Body::default())) });
    let server = AdmissionLayer::new(admission).layer(handler);
    let mut told = Vec::new();
    for _ in 0..5 {
        let answer = server.clone().oneshot(request()).await.unwrap();
        let text =
            |name: &str| Some(answer.headers().get(name)?.to_str().unwrap().split(';').next().unwrap().to_owned());
        told.push((answer.status().as_u16(), text("retry-after"), text("stagger-slot")));
    }
    let some = |text: &str| Some(text.to_owned());
    assert_eq!(told[0], (200, None, None));
    assert_eq!(told[1..3], [(503, some("1"), some("1000")), (503, some("2"), some("2000"))]);
    assert_eq!(told[3..], [(503, some("2"), None), (503, some("2"), None)]);
    let answer = server.oneshot(request()).await.unwrap();
    assert_eq!(answer.headers()["retry-after-ms"], "2000");
}
