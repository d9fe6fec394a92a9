//! A client by default, and one that was given a quiet period, on tokio's paused clock.

use core::pin::Pin;
use core::sync::atomic::{AtomicUsize, Ordering};
use core::task::{Context, Poll};

use http::request::Parts;
use http_body::{Body as HttpBody, Frame};
use stagger::budget::Tokens;
use stagger::guard::{Pacer, QuietPeriod};
use stagger::observe::Action;
use stagger::testing::Recorder;
use stagger::time::Tokio;
use stagger::{Rejected, StopReason};
use stagger_http::tower::RetryLayer;
use stagger_http::{Deadline, key};
use tower::{Layer as _, ServiceBuilder, ServiceExt as _};

use super::*;
use crate::suite::tower::POLICY;

fn client() -> RetryLayer<Tokio> {
    RetryLayer::new(quiet(ONCE))
}

#[tokio::test(start_paused = true)]
async fn one_429_holds_the_other_calls_to_its_origin_until_its_end() {
    let (server, arrivals) = server(limited_until(SECOND, "10"));
    let client = client().layer(server);
    assert_eq!(code(&client.clone().oneshot(get(API)).await), 429);
    let calls: Vec<_> = (0..3).map(|_| tokio::spawn(client.clone().oneshot(get(API)))).collect();
    for call in calls {
        assert_eq!(code(&call.await.unwrap()), 200);
    }
    // The probe, and then one per second and a little more, because no success was seen before.
    assert_eq!(seconds(&arrivals), [0, 10, 11, 11]);
}

#[tokio::test(start_paused = true)]
async fn a_503_with_a_hint_holds_as_well_and_one_without_holds_nobody() {
    for (hint, want) in [(Some("10"), vec![0, 10]), (None, vec![0, 0])] {
        let (server, arrivals) = server(move |now, _: &LayerRequest| match (now, hint) {
            (Duration::ZERO, Some(hint)) => {
                Response::builder().status(503).header("retry-after", hint).body(Full::default()).unwrap()
            }
            (Duration::ZERO, None) => Response::builder().status(503).body(Full::default()).unwrap(),
            _ => ok(),
        });
        let client = client().layer(server);
        for _ in 0..2 {
            let _ = client.clone().oneshot(get(API)).await;
        }
        assert_eq!(seconds(&arrivals), want, "{hint:?}");
    }
}

/// The call itself is not repeated, since it is not safe, but the server has spoken to all.
#[tokio::test(start_paused = true)]
async fn the_429_of_a_request_that_is_not_repeated_holds_too() {
    for shared in [false, true] {
        let (server, arrivals) = server(limited_until(SECOND, "10"));
        let layer = match shared {
            true => RetryLayer::new(Retrier::new(POLICY).shared_guard(Arc::new(QuietPeriod::new()))),
            false => RetryLayer::new(quiet(POLICY)),
        };
        let client = layer.layer(server);
        let post = Request::post(API).body(Full::default()).unwrap();
        assert_eq!(code(&client.clone().oneshot(post).await), 429);
        assert_eq!(code(&client.clone().oneshot(get(API)).await), 200);
        assert_eq!(seconds(&arrivals), [0, 10], "shared: {shared}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_hint_that_the_policy_does_not_follow_holds_nobody() {
    for request in [get(API), Request::post(API).body(Full::default()).unwrap()] {
        let (server, arrivals) = server(limited_until(SECOND, "10"));
        let policy = POLICY.to_builder().max_hint(9 * SECOND).build().unwrap();
        let client = RetryLayer::new(quiet(policy)).layer(server);
        for _ in 0..2 {
            assert_eq!(code(&client.clone().oneshot(request.clone()).await), 429);
        }
        assert_eq!(seconds(&arrivals), [0, 0]);
    }
}

#[tokio::test(start_paused = true)]
async fn a_reservation_and_a_prohibition_hold_nobody_else() {
    for (header, value) in [("stagger-reservation", "10000"), ("x-should-retry", "false")] {
        let (server, arrivals) = server(move |now, _: &LayerRequest| match now {
            Duration::ZERO => limited(header, value),
            _ => ok(),
        });
        let client = client().layer(server);
        for _ in 0..2 {
            let _ = client.clone().oneshot(get(API)).await;
        }
        assert_eq!(seconds(&arrivals), [0, 0], "{header}");
    }
}

/// The usual limit is one of a route, a method or a customer.
#[tokio::test(start_paused = true)]
async fn by_default_a_hint_delays_the_call_that_got_it_and_no_other() {
    let (server, arrivals) = server(limited_until(SECOND, "10"));
    let client = RetryLayer::new(POLICY).layer(server);
    let calls: Vec<_> =
        (0..3).map(|n| tokio::spawn(later(500 * n * ms(1), client.clone().oneshot(get(API))))).collect();
    for call in calls {
        assert_eq!(code(&call.await.unwrap()), 200);
    }
    let arrived = seconds(&arrivals);
    assert_eq!(arrived[..3], [0, 0, 1]);
    assert!(arrived[3..].iter().all(|second| *second >= 10), "{arrived:?}");
}

/// A healthy route of a server that limits another: all of its calls are served, at once.
#[tokio::test(start_paused = true)]
async fn by_default_a_limited_route_takes_no_other_route_down() {
    let (server, _) = server(|_, request: &LayerRequest| match request.uri().path() {
        "/busy" => Response::builder().status(503).header("retry-after", "1").body(Full::default()).unwrap(),
        _ => ok(),
    });
    const POLICY: Policy = policy!(exponential(ms(100), secs(2)).max_attempts(3));
    let client = RetryLayer::new(POLICY).layer(server);
    let call = |path: &str, at: Duration| {
        let request = get(&format!("http://api.example{path}"));
        let call = client.clone().oneshot(request);
        tokio::spawn(later(at, async {
            let start = Instant::now();
            (code(&call.await), start.elapsed())
        }))
    };
    let busy: Vec<_> = (0..60).map(|n| call("/busy", ms(500) * n)).collect();
    let healthy: Vec<_> = (0..600).map(|n| call("/ok", ms(50) * n)).collect();
    for call in healthy {
        assert_eq!(call.await.unwrap(), (200, Duration::ZERO));
    }
    for call in busy {
        assert_eq!(call.await.unwrap().0, 503);
    }
}

/// The page on HTTP says when.
#[tokio::test(start_paused = true)]
async fn a_call_with_the_default_policy_ends_before_a_server_that_asks_for_five_seconds_for_ever() {
    let unavailable = || Response::builder().status(503).header("retry-after", "5").body(Full::default()).unwrap();
    for _ in 0..20 {
        let (server, arrivals) = server(move |_, _: &LayerRequest| unavailable());
        let start = Instant::now();
        assert_eq!(code(&RetryLayer::new(Policy::DEFAULT).layer(server).oneshot(get(API)).await), 503);
        let took = start.elapsed();
        assert!((ms(15_000)..=ms(22_510)).contains(&took), "{took:?}");
        assert_eq!(arrivals.lock().unwrap().len(), 4);
    }
}

#[tokio::test(start_paused = true)]
async fn it_can_fail_fast_with_the_remaining_time() {
    let (server, arrivals) = server(limited_until(SECOND, "10"));
    let quiet = QuietPeriod::builder().max_waiting(0).build().unwrap();
    let client = RetryLayer::new(Retrier::new(ONCE).guard(quiet)).layer(server);
    assert_eq!(code(&client.clone().oneshot(get(API)).await), 429);
    tokio::time::sleep(SECOND).await;
    let second = client.clone().oneshot(get(API)).await;
    let Err(Error::Rejected(rejected)) = second else { panic!("{second:?}") };
    let Rejected::ByGuard { guard, retry_in } = rejected else { panic!("{rejected:?}") };
    assert_eq!((guard, retry_in.as_millis()), ("quiet", 9_000));
    assert_eq!(seconds(&arrivals), [0]);
}

#[tokio::test(start_paused = true)]
async fn a_call_whose_deadline_ends_before_its_turn_is_rejected_at_once_with_the_remaining_time() {
    let (server, arrivals) = server(limited_until(SECOND, "10"));
    let recorder = Recorder::new();
    let retrier = quiet(ONCE).on_event(recorder.listener());
    let client = RetryLayer::new(retrier).layer(server);
    let _ = client.clone().oneshot(get(API)).await;
    let mut request = get(API);
    request.extensions_mut().insert(Deadline::within(Duration::from_secs(3)));
    let start = Instant::now();
    let Err(Error::Rejected(rejected)) = client.clone().oneshot(request).await else { panic!() };
    let Rejected::ByGuard { guard, retry_in } = rejected else { panic!("{rejected:?}") };
    assert_eq!((start.elapsed(), guard, retry_in.as_secs()), (Duration::ZERO, "quiet", 10));
    let stopped = recorder.events().pop().unwrap();
    assert_eq!((stopped.action, stopped.retry_in.unwrap().as_secs()), (Action::Stop(StopReason::QUIET), 10));
    // A call that waits says so, and when it goes on.
    assert_eq!(code(&client.clone().oneshot(get(API)).await), 200);
    let actions: Vec<_> = recorder.events().iter().map(|event| event.action).skip(2).collect();
    let [Action::Held { after }, Action::Resumed, Action::Done] = actions[..] else { panic!("{actions:?}") };
    assert_eq!(after.as_secs(), 10);
    assert_eq!(seconds(&arrivals), [0, 10]);
}

/// The longest of several hints counts, of those that the policy follows.
#[tokio::test(start_paused = true)]
async fn the_longest_hint_wins_and_one_that_is_too_long_for_the_policy_holds_nobody() {
    let hints = Arc::new(Mutex::new(vec!["3", "10", "5"]));
    let (server, arrivals) = server(move |_, _: &LayerRequest| match hints.lock().unwrap().pop() {
        Some(hint) => limited("retry-after", hint),
        None => ok(),
    });
    let policy = ONCE.to_builder().max_hint(Duration::from_secs(8)).build().unwrap();
    let slow = RetryLayer::new(quiet(policy)).layer(ServiceBuilder::new().map_future(slowly).service(server));
    // All three are in flight when the first hint arrives.
    let calls: Vec<_> = (0..3).map(|n| tokio::spawn(later(ms(50) * n, slow.clone().oneshot(get(API))))).collect();
    for call in calls {
        assert_eq!(code(&call.await.unwrap()), 429);
    }
    assert_eq!(code(&slow.oneshot(get(API)).await), 200);
    // The first hint, of 5 s, was received at 200 ms.
    let at = arrivals.lock().unwrap().last().unwrap().0;
    assert!((ms(5_200)..ms(5_205)).contains(&at), "{at:?}");
}

async fn slowly<T>(response: impl Future<Output = T>) -> T {
    let response = response.await;
    tokio::time::sleep(ms(200)).await;
    response
}

async fn later<T>(after: Duration, call: impl Future<Output = T>) -> T {
    tokio::time::sleep(after).await;
    call.await
}

/// A waiting call holds no place of the services below the layer, and a call that waited for such a place asks only
/// when it has it.
#[tokio::test(start_paused = true)]
async fn a_waiting_call_holds_no_permit_of_the_inner_service_and_none_starts_late() {
    let (server, arrivals) = server(limited_until(SECOND, "10"));
    let inner = ServiceBuilder::new().concurrency_limit(2).map_future(slowly).service(server);
    let client = client().layer(inner.clone());
    let calls: Vec<_> = (0..6).map(|_| tokio::spawn(client.clone().oneshot(get(API)))).collect();
    tokio::time::sleep(SECOND).await;
    // Two were in flight. The other four wait for the pause, and neither holds one of the two permits.
    assert_eq!(seconds(&arrivals), [0, 0]);
    let mut other = inner.clone();
    let ready = tokio::time::timeout(ms(1), futures_ready(&mut other)).await;
    assert!(ready.is_ok(), "a permit is free");
    let codes: Vec<_> = {
        let mut codes = Vec::new();
        for call in calls {
            codes.push(code(&call.await.unwrap()));
        }
        codes
    };
    assert_eq!(codes, [429, 429, 200, 200, 200, 200]);
    assert!(arrivals.lock().unwrap()[2..].iter().all(|(at, _)| *at >= 10 * SECOND));
}

async fn futures_ready<S: Service<LayerRequest>>(service: &mut S) {
    core::future::poll_fn(|cx| service.poll_ready(cx)).await.ok().unwrap();
}

/// A body that counts how often it is polled.
struct Counted(Arc<AtomicUsize>);

impl HttpBody for Counted {
    type Data = Bytes;
    type Error = std::io::Error;

    fn poll_frame(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, std::io::Error>>> {
        self.0.fetch_add(1, Ordering::Relaxed);
        Poll::Ready(None)
    }
}

#[tokio::test(start_paused = true)]
async fn the_body_of_a_waiting_call_is_not_read_and_a_dropped_call_leaves_its_place() {
    let (start, polled) = (Instant::now(), Arc::new(AtomicUsize::new(0)));
    let server = tower::service_fn(move |_: Request<stagger_http::tower::ReplayBody<Counted>>| async move {
        Ok::<_, std::io::Error>(if start.elapsed() < SECOND { limited("retry-after", "10") } else { ok() })
    });
    let quiet = QuietPeriod::builder().max_waiting(1).build().unwrap();
    let client = RetryLayer::new(Retrier::new(ONCE).guard(quiet)).layer(server);
    let request = || Request::get(API).body(Counted(Arc::clone(&polled))).unwrap();
    assert_eq!(code(&client.clone().oneshot(request()).await), 429);
    let waiting = tokio::spawn(client.clone().oneshot(request()));
    tokio::time::sleep(SECOND).await;
    assert_eq!(polled.load(Ordering::Relaxed), 0);
    assert_eq!(code(&client.clone().oneshot(request()).await), 0, "one may wait, and one does");
    waiting.abort();
    assert!(waiting.await.is_err());
    assert_eq!(code(&client.clone().oneshot(request()).await), 200, "its place is free");
}

/// A retry that sleeps when another call meets the hint waits on, uses no attempt, and pays its budget once.
#[tokio::test(start_paused = true)]
async fn a_sleeping_retry_waits_on_and_gives_back_what_it_holds_if_it_is_dropped() {
    let (server, arrivals) = server(|now, request: &LayerRequest| match (now, request.uri().path()) {
        (Duration::ZERO, "/slow") => Response::builder().status(503).body(Full::default()).unwrap(),
        (at, _) if at < SECOND => limited("retry-after", "10"),
        _ => ok(),
    });
    let budget = Arc::new(Tokens::builder().capacity(1).cost(1).build().unwrap());
    let retrier = quiet(POLICY).shared_guard(Arc::clone(&budget) as _);
    let client = RetryLayer::new(retrier).layer(server);
    let retry = tokio::spawn(client.clone().oneshot(get("http://api.example/slow")));
    tokio::time::sleep(ms(50)).await;
    // It has paid, so that this call cannot retry.
    assert_eq!(code(&client.clone().oneshot(get(API)).await), 429);
    tokio::time::sleep(SECOND).await;
    assert_eq!(seconds(&arrivals), [0, 0]);
    retry.abort();
    assert!(retry.await.is_err());
    assert_eq!(stagger::Guard::available(&*budget), Some(1));
    assert_eq!(code(&client.clone().oneshot(get(API)).await), 200);
    assert_eq!(seconds(&arrivals), [0, 0, 10]);
}

#[tokio::test(start_paused = true)]
async fn a_shared_quiet_period_holds_all_origins_beside_a_budget_by_origin() {
    let (server, arrivals) = server(limited_until(SECOND, "10"));
    let retrier = Retrier::new(ONCE).budget(Tokens::new()).shared_guard(Arc::new(QuietPeriod::new()));
    let client = RetryLayer::new(retrier).layer(server);
    assert_eq!(code(&client.clone().oneshot(get(API)).await), 429);
    assert_eq!(code(&client.clone().oneshot(get("http://other.example/")).await), 200);
    assert_eq!(seconds(&arrivals), [0, 10]);
}

#[tokio::test(start_paused = true)]
async fn a_pacer_holds_the_calls_of_a_client_with_and_without_a_budget_for_each_origin() {
    for with_budget in [false, true] {
        let count = Arc::new(AtomicUsize::new(0));
        let (server, _) = server(move |_, _: &LayerRequest| {
            let n = count.fetch_add(1, Ordering::Relaxed);
            if n < 120 && n % 2 == 0 { Response::builder().status(429).body(Full::default()).unwrap() } else { ok() }
        });
        let pacer = Arc::new(Pacer::new());
        let retrier = Retrier::new(ONCE).shared_guard(pacer.clone());
        let retrier = if with_budget { retrier.budget(Tokens::new()) } else { retrier };
        let client = RetryLayer::new(retrier).layer(server);
        for _ in 0..120 {
            tokio::time::sleep(Duration::from_millis(10)).await;
            let _ = client.clone().oneshot(get(API)).await;
        }
        let start = Instant::now();
        for _ in 0..50 {
            assert_eq!(code(&client.clone().oneshot(get(API)).await), 200);
        }
        let passed = start.elapsed();
        let range = Duration::from_millis(900)..Duration::from_millis(1_050);
        assert!(range.contains(&passed), "{passed:?}, with a budget: {with_budget}");
        assert_eq!(pacer.snapshot().waiting, 0);
    }
}

/// Sends the requests one after the other to a server that answers the first with `429`, and each second later with
/// 200. Returns in which second each arrived.
async fn arrived(layer: RetryLayer<Tokio>, requests: Vec<Request<Full<Bytes>>>) -> Vec<u64> {
    let (server, arrivals) =
        server(|now, _: &LayerRequest| if now.is_zero() { limited("retry-after", "10") } else { ok() });
    let client = layer.layer(server);
    for (n, request) in requests.into_iter().enumerate() {
        let _ = client.clone().oneshot(request).await;
        if n == 0 {
            tokio::time::sleep(SECOND).await;
        }
    }
    seconds(&arrivals)
}

#[tokio::test(start_paused = true)]
async fn the_429_of_one_origin_does_not_hold_another() {
    let requests = vec![
        with_token(API, "one"),
        with_token("http://other.example/", "one"),
        with_token("http://api.example/another/path", "two"),
    ];
    assert_eq!(arrived(client(), requests).await, [0, 1, 10]);
}

#[tokio::test(start_paused = true)]
async fn by_credentials_the_429_of_one_customer_or_origin_does_not_hold_another() {
    let requests = vec![
        with_token(API, "one"),
        with_token(API, "two"),
        get(API),
        with_token("http://other.example/", "one"),
        with_token("http://api.example/another/path", "one"),
    ];
    assert_eq!(arrived(client().guards_by(key::credentials), requests).await, [0, 1, 1, 1, 10]);
}

#[tokio::test(start_paused = true)]
async fn by_route_the_429_of_one_route_does_not_hold_another() {
    let route = |head: &Parts| format!("{} {}", head.method, head.uri.path());
    let post = Request::post(API).body(Full::default()).unwrap();
    let requests = vec![get(API), get("http://api.example/other"), post, get("http://api.example/?another=query")];
    assert_eq!(arrived(client().guards_by(route), requests).await, [0, 1, 1, 10]);
}

#[tokio::test(start_paused = true)]
async fn the_application_chooses_which_calls_wait_together() {
    let tenant = |head: &Parts| head.headers["x-tenant"].to_str().unwrap().to_owned();
    let of = |tenant: &str, token: &str| {
        let mut request = with_token(API, token);
        request.headers_mut().insert("x-tenant", tenant.parse().unwrap());
        request
    };
    let requests = vec![of("a", "one"), of("b", "one"), of("a", "two")];
    assert_eq!(arrived(client().guards_by(tenant), requests).await, [0, 1, 10]);
}
