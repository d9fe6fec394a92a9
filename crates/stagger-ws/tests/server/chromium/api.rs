//! An HTTP server of another origin, which notes when requests arrive.

use core::net::SocketAddr;
use std::sync::{Arc, Mutex};
use std::time::Instant;

use axum::Router;
use axum::extract::{RawQuery, State};
use axum::http::header::{ACCESS_CONTROL_ALLOW_ORIGIN, ACCESS_CONTROL_EXPOSE_HEADERS, HeaderValue, RETRY_AFTER};
use axum::http::{HeaderMap, StatusCode};
use axum::routing::any;
use tokio::sync::watch;
use tokio::task::JoinSet;

use crate::support::{eventually, on_loopback};

/// The server; dropping it ends what it serves.
pub(super) struct Api {
    address: SocketAddr,
    state: Arc<Shared>,
    _tasks: JoinSet<()>,
}

struct Shared {
    seen: Mutex<Vec<Arrival>>,
    is_open: watch::Sender<bool>,
}

/// A request.
#[derive(Clone, Debug)]
pub(super) struct Arrival {
    pub(super) at: Instant,
    pub(super) query: String,
}

impl Api {
    /// Serves any method with `Access-Control-Allow-Origin: *`:
    ///
    /// - `/now` is answered at once, and `/gated` while the gate is open.
    /// - `/refuse?status=429&after=1` has the status and `Retry-After`, and with `ms=300` `retry-after-ms`; pages may
    ///   read them with `&expose`.
    pub(super) fn serve() -> Self {
        let state = Arc::new(Shared { seen: Mutex::default(), is_open: watch::Sender::new(false) });
        let app = Router::new()
            .route(
                "/now",
                any(async |State(state): State<Arc<Shared>>, query| {
                    state.note(query);
                    (cors(), StatusCode::OK)
                }),
            )
            .route(
                "/gated",
                any(async |State(state): State<Arc<Shared>>, query| {
                    state.note(query);
                    // The sender is in the state.
                    _ = state.is_open.subscribe().wait_for(|is_open| *is_open).await;
                    (cors(), StatusCode::OK)
                }),
            )
            .route("/refuse", any(async |State(state): State<Arc<Shared>>, query| refusal(&state.note(query))))
            .with_state(Arc::clone(&state));
        let (listener, address) = on_loopback();
        let mut tasks = JoinSet::new();
        tasks.spawn(async move { axum::serve(listener, app).await.unwrap() });
        Self { address, state, _tasks: tasks }
    }

    pub(super) fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    /// Opens the gate or shuts it.
    pub(super) fn open(&self, is_open: bool) {
        self.state.is_open.send_replace(is_open);
    }

    /// Returns the requests whose query contains this, in the order of their arrival.
    pub(super) fn seen(&self, part: &str) -> Vec<Arrival> {
        let seen = self.state.seen.lock().unwrap();
        seen.iter().filter(|arrival| arrival.query.contains(part)).cloned().collect()
    }

    /// Waits until so many such requests have arrived, and returns them.
    pub(super) async fn until(&self, part: &str, count: usize) -> Vec<Arrival> {
        eventually(&format!("{count} requests with {part}"), || self.seen(part).len() >= count).await;
        self.seen(part)
    }
}

impl Shared {
    fn note(&self, RawQuery(query): RawQuery) -> String {
        let query = query.unwrap_or_default();
        self.seen.lock().unwrap().push(Arrival { at: Instant::now(), query: query.clone() });
        query
    }
}

fn cors() -> HeaderMap {
    HeaderMap::from_iter([(ACCESS_CONTROL_ALLOW_ORIGIN, HeaderValue::from_static("*"))])
}

fn refusal(query: &str) -> (HeaderMap, StatusCode) {
    let mut headers = cors();
    let mut status = StatusCode::TOO_MANY_REQUESTS;
    for part in query.split('&') {
        match part.split_once('=').unwrap_or((part, "")) {
            ("status", value) => status = value.parse().unwrap(),
            ("after", value) => _ = headers.insert(RETRY_AFTER, value.parse().unwrap()),
            ("ms", value) => _ = headers.insert("retry-after-ms", value.parse().unwrap()),
            ("expose", _) => {
                let exposed = HeaderValue::from_static("Retry-After, retry-after-ms");
                headers.insert(ACCESS_CONTROL_EXPOSE_HEADERS, exposed);
            }
            _ => {}
        }
    }
    (headers, status)
}
