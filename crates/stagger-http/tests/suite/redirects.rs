//! reqwest follows redirects within an attempt: what is believed about an attempt that failed on another hop. On
//! sockets.

use core::net::SocketAddr;
use core::sync::atomic::{AtomicU32, Ordering};
use std::sync::Arc;

use axum::Router;
use axum::routing::{MethodRouter, any, get, post};
use http::{Extensions, HeaderMap, StatusCode};
use reqwest::redirect::Policy as RedirectPolicy;
use reqwest::{Client, Request, Response};
use reqwest_middleware::{ClientBuilder, ClientWithMiddleware, Middleware, Next};
use stagger::{Policy, policy};
use stagger_http::reqwest::{Redirects, RetryMiddleware, within_origin};
use tokio::net::TcpListener;

const POLICY: Policy = policy!(constant(ms(1)).jitter(Jitter::None).max_attempts(3));

/// The statuses with which a server redirects a POST.
const REDIRECTS: [u16; 5] = [301, 302, 303, 307, 308];

/// Counts requests.
#[derive(Clone, Default)]
struct Count(Arc<AtomicU32>);

impl Count {
    fn add(&self) -> u32 {
        self.0.fetch_add(1, Ordering::Relaxed) + 1
    }

    fn seen(&self) -> u32 {
        self.0.load(Ordering::Relaxed)
    }
}

/// Serves until the runtime ends.
async fn serve(app: Router) -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    tokio::spawn(axum::serve(listener, app).into_future());
    address
}

/// Returns an address at which no server listens.
async fn nowhere() -> SocketAddr {
    TcpListener::bind("127.0.0.1:0").await.unwrap().local_addr().unwrap()
}

/// Counts a POST, and redirects it.
fn redirecting(status: u16, to: String, payments: &Count) -> MethodRouter {
    let payments = payments.clone();
    post(move || {
        payments.add();
        async move { (StatusCode::from_u16(status).unwrap(), [("location", to)]) }
    })
}

/// Rejects every request as admission control does, with a reservation that is due at once.
async fn rejects() -> (StatusCode, [(&'static str, &'static str); 1]) {
    (StatusCode::SERVICE_UNAVAILABLE, [("stagger-reservation", "1;token=0123456789abcdef0123456789abcdef")])
}

/// Clients that follow redirects: one of which nothing is known, and one that counts them.
fn clients() -> [ClientWithMiddleware; 2] {
    let retry = || RetryMiddleware::new(POLICY);
    let watched = retry().build_client(Client::builder(), RedirectPolicy::default()).unwrap();
    [ClientBuilder::new(Client::new()).with(retry()).build(), watched]
}

/// Counts the attempts, and runs each in a task of its own.
#[derive(Clone, Default)]
struct Spawning(Count);

#[async_trait::async_trait]
impl Middleware for Spawning {
    async fn handle(
        &self,
        request: Request,
        extensions: &mut Extensions,
        _: Next<'_>,
    ) -> reqwest_middleware::Result<Response> {
        self.0.add();
        let client = extensions.get::<Client>().unwrap().clone();
        Ok(tokio::spawn(client.execute(request)).await.unwrap()?)
    }
}

#[tokio::test]
async fn a_post_that_was_redirected_to_a_dead_host_is_not_sent_again() {
    for (status, client) in REDIRECTS.into_iter().flat_map(|status| clients().map(|client| (status, client))) {
        let (payments, dead) = (Count::default(), nowhere().await);
        let pay = redirecting(status, format!("http://{dead}/"), &payments);
        let server = serve(Router::new().route("/pay", pay)).await;
        let error = client.post(format!("http://{server}/pay")).body("pay").send().await.unwrap_err();
        assert!(error.is_connect(), "{error:?}");
        assert_eq!(payments.seen(), 1, "{status}");
    }
}

// The rejection with a reservation is of the request that followed the redirect, and not of the POST.
#[tokio::test]
async fn a_post_whose_redirect_was_rejected_with_a_reservation_is_not_sent_again() {
    for (status, client) in REDIRECTS.into_iter().flat_map(|status| clients().map(|client| (status, client))) {
        let payments = Count::default();
        let other = serve(Router::new().route("/receipt", any(rejects))).await;
        let to_another = redirecting(status, format!("http://{other}/receipt"), &payments);
        let to_the_same = redirecting(status, "/receipt".to_owned(), &payments);
        let app = Router::new().route("/a", to_another).route("/b", to_the_same).route("/receipt", any(rejects));
        let server = serve(app).await;
        for path in ["a", "b"] {
            let response = client.post(format!("http://{server}/{path}")).body("pay").send().await.unwrap();
            assert_eq!(
                (response.status().as_u16(), payments.0.swap(0, Ordering::Relaxed)),
                (503, 1),
                "{status} {path}"
            );
        }
    }
}

// POST /x, redirected to GET /x: the URL of the response is that of the request.
#[tokio::test]
async fn a_post_that_was_redirected_to_its_own_url_is_not_sent_again() {
    for (status, client) in [301, 302, 303].into_iter().flat_map(|status| clients().map(|client| (status, client))) {
        let payments = Count::default();
        let app = Router::new().route("/x", redirecting(status, "/x".to_owned(), &payments).get(rejects));
        let url = format!("http://{}/x", serve(app).await);
        let response = client.post(url).body("pay").send().await.unwrap();
        assert_eq!((response.status().as_u16(), payments.seen()), (503, 1), "{status}");
    }
}

// reqwest does not send `Authorization` to the host that it is redirected to, so that one denies the request.
#[tokio::test]
async fn a_post_whose_redirect_was_denied_is_not_sent_again_with_fresh_credentials() {
    let refreshing = || RetryMiddleware::new(POLICY).refresh_credentials(|_| async { Some(HeaderMap::new()) });
    let watched = refreshing().build_client(Client::builder(), RedirectPolicy::default()).unwrap();
    for client in [ClientBuilder::new(Client::new()).with(refreshing()).build(), watched.clone()] {
        let payments = Count::default();
        let other = serve(Router::new().route("/", any(|| async { StatusCode::UNAUTHORIZED }))).await;
        let pay = redirecting(303, format!("http://{other}/"), &payments);
        let url = format!("http://{}/", serve(Router::new().route("/", pay)).await);
        let response = client.post(url).body("pay").send().await.unwrap();
        assert_eq!((response.status().as_u16(), payments.seen()), (401, 1));
    }
    // Denied by the server itself, it was not processed.
    let denials = Count::default();
    let count = denials.clone();
    let deny = post(move || async move { if count.add() == 1 { StatusCode::UNAUTHORIZED } else { StatusCode::OK } });
    let url = format!("http://{}/", serve(Router::new().route("/", deny)).await);
    assert_eq!(watched.post(url).body("pay").send().await.unwrap().status(), 200);
    assert_eq!(denials.seen(), 2);
}

#[tokio::test]
async fn a_post_whose_connection_was_refused_is_retried_if_no_redirect_was_followed() {
    for watches in [true, false] {
        let (client, redirects) = if watches {
            let (policy, redirects) = Redirects::watch(RedirectPolicy::default());
            (Client::builder().redirect(policy).build().unwrap(), redirects)
        } else {
            (Client::builder().redirect(RedirectPolicy::none()).build().unwrap(), Redirects::none())
        };
        // A redirect of an earlier request says nothing about this one.
        let page = redirecting(303, "/receipt".to_owned(), &Count::default());
        let server = serve(Router::new().route("/", page).route("/receipt", get(|| async { "paid" }))).await;
        client.post(format!("http://{server}/")).send().await.unwrap();

        let attempts = Spawning::default();
        let retry = RetryMiddleware::new(POLICY).redirects(redirects);
        let retrying = ClientBuilder::new(client.clone()).with(retry).with(attempts.clone()).build();
        let url = format!("http://{}/", nowhere().await);
        let error = retrying.post(url).body("pay").with_extension(client).send().await.unwrap_err();
        assert!(error.is_connect(), "{error:?}");
        assert_eq!(attempts.0.seen(), 3, "watched: {watches}");
    }
}

// The count is that of the client, wherever its requests run.
#[tokio::test]
async fn a_redirect_is_noticed_below_middleware_that_spawns() {
    let (policy, redirects) = Redirects::watch(RedirectPolicy::default());
    let client = Client::builder().redirect(policy).build().unwrap();
    let (payments, dead) = (Count::default(), nowhere().await);
    let pay = redirecting(303, format!("http://{dead}/"), &payments);
    let url = format!("http://{}/", serve(Router::new().route("/", pay)).await);
    let retry = RetryMiddleware::new(POLICY).redirects(redirects);
    let retrying = ClientBuilder::new(client.clone()).with(retry).with(Spawning::default()).build();
    retrying.post(url).body("pay").with_extension(client).send().await.unwrap_err();
    assert_eq!(payments.seen(), 1);
}

#[tokio::test]
async fn a_watched_policy_decides_as_before() {
    for (policy, want) in [(RedirectPolicy::none(), 302), (RedirectPolicy::limited(1), 200)] {
        let page = get(|| async { (StatusCode::FOUND, [("location", "/there")]) });
        let server = serve(Router::new().route("/", page).route("/there", get(|| async { "there" }))).await;
        let client = RetryMiddleware::new(POLICY).build_client(Client::builder(), policy).unwrap();
        assert_eq!(client.get(format!("http://{server}/")).send().await.unwrap().status(), want);
    }
}

#[tokio::test]
async fn a_get_that_was_redirected_to_a_dead_host_is_retried() {
    for client in clients() {
        let (pages, dead) = (Count::default(), nowhere().await);
        let count = pages.clone();
        let page = get(move || {
            count.add();
            async move { (StatusCode::FOUND, [("location", format!("http://{dead}/"))]) }
        });
        let url = format!("http://{}/", serve(Router::new().route("/", page)).await);
        client.get(url).send().await.unwrap_err();
        assert_eq!(pages.seen(), 3);
    }
}

/// Answers with the secret that has arrived; nothing if there is none.
async fn tells_key(headers: HeaderMap) -> String {
    headers.get("x-api-key").map_or_else(String::new, |key| key.to_str().unwrap().to_owned())
}

#[tokio::test]
async fn no_header_follows_a_redirect_to_another_origin() {
    let other = serve(Router::new().route("/", get(tells_key))).await;
    let app = Router::new()
        .route("/", get(tells_key))
        .route("/within", get(|| async { (StatusCode::FOUND, [("location", "/")]) }))
        .route("/other", get(move || async move { (StatusCode::FOUND, [("location", format!("http://{other}/"))]) }))
        .route("/loop", get(|| async { (StatusCode::FOUND, [("location", "/loop")]) }));
    let first = serve(app).await;
    let ask = async |policy: RedirectPolicy, path: &str| {
        let client = RetryMiddleware::new(POLICY).build_client(Client::builder(), policy).unwrap();
        let request = client.get(format!("http://{first}/{path}")).header("x-api-key", "secret");
        let response = request.send().await?;
        let status = response.status().as_u16();
        Ok::<_, reqwest_middleware::Error>((status, response.text().await.unwrap()))
    };
    let answer = |status, text: &str| (status, text.to_owned());
    assert_eq!(ask(RedirectPolicy::default(), "other").await.unwrap(), answer(200, "secret"), "what reqwest does");
    assert_eq!(ask(within_origin(), "other").await.unwrap(), answer(302, ""));
    assert_eq!(ask(within_origin(), "within").await.unwrap(), answer(200, "secret"));
    let error = ask(within_origin(), "loop").await.unwrap_err();
    assert!(matches!(&error, reqwest_middleware::Error::Reqwest(error) if error.is_redirect()), "{error:?}");
}
