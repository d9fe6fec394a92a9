//! Which calls wait together.

use http::request::Parts;
use stagger::time::Tokio;
use stagger_http::tower::RetryLayer;
use tower::{Layer as _, ServiceExt as _};

use super::*;

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
async fn the_429_of_one_customer_or_origin_does_not_hold_another() {
    let requests = vec![
        with_token(API, "one"),
        with_token(API, "two"),
        get(API),
        with_token("http://other.example/", "one"),
        with_token("http://api.example/another/path", "one"),
    ];
    assert_eq!(arrived(RetryLayer::new(ONCE), requests).await, [0, 1, 1, 1, 10]);
}

#[tokio::test(start_paused = true)]
async fn the_application_chooses_which_calls_wait_together() {
    let tenant = |head: &Parts| head.headers.get("x-tenant").map(|tenant| tenant.as_bytes().to_vec());
    let of = |tenant: &str, token: &str| {
        let mut request = with_token(API, token);
        request.headers_mut().insert("x-tenant", tenant.parse().unwrap());
        request
    };
    let requests = vec![of("a", "one"), of("b", "one"), of("a", "two")];
    assert_eq!(arrived(RetryLayer::new(ONCE).quiet_key(tenant), requests).await, [0, 1, 10]);
}

/// Credentials that are refreshed are others.
#[tokio::test(start_paused = true)]
async fn a_thousand_customers_that_are_limited_do_not_hold_the_next() {
    let (server, arrivals) =
        server(|now, _: &LayerRequest| if now < SECOND { limited("retry-after", "10") } else { ok() });
    let client = RetryLayer::new(ONCE).layer(server);
    for n in 0..1_100 {
        assert_eq!(code(&client.clone().oneshot(with_token(API, &n.to_string())).await), 429);
    }
    tokio::time::sleep(2 * SECOND).await;
    // There is a place for a thousand; those without one follow their own hints, and hold nobody.
    assert_eq!(code(&client.clone().oneshot(with_token(API, "1099")).await), 200);
    assert_eq!(code(&client.clone().oneshot(with_token(API, "new")).await), 200);
    assert_eq!(arrivals.lock().unwrap().last().unwrap().0.as_secs(), 2);
    assert_eq!(code(&client.clone().oneshot(with_token(API, "1")).await), 200);
    assert_eq!(arrivals.lock().unwrap().last().unwrap().0.as_secs(), 10);
}
