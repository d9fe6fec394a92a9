//! An HTTP server of another origin, which refuses requests and notes when they arrive.

use core::net::SocketAddr;
use std::sync::{Arc, Mutex};
use std::time::Instant;

use axum::Router;
use axum::extract::RawQuery;
use axum::http::header::{ACCESS_CONTROL_ALLOW_ORIGIN, ACCESS_CONTROL_EXPOSE_HEADERS, HeaderValue, RETRY_AFTER};
use axum::http::{HeaderMap, StatusCode};
use axum::routing::get;
use tokio::task::JoinSet;

use crate::support::on_loopback;

/// The server; dropping it ends what it serves.
pub(super) struct Api {
    address: SocketAddr,
    seen: Arc<Mutex<Vec<(Instant, String)>>>,
    _tasks: JoinSet<()>,
}

impl Api {
    /// Serves `/refuse?status=429&after=1`: it has the status and `Retry-After`, and with `ms=300` `retry-after-ms`;
    /// pages may read them with `&expose`.
    pub(super) fn serve() -> Self {
        let seen = Arc::new(Mutex::new(Vec::new()));
        let noted = Arc::clone(&seen);
        let refuse = async move |RawQuery(query): RawQuery| {
            let query = query.unwrap_or_default();
            noted.lock().unwrap().push((Instant::now(), query.clone()));
            refusal(&query)
        };
        let app = Router::new().route("/refuse", get(refuse));
        let (listener, address) = on_loopback();
        let mut tasks = JoinSet::new();
        tasks.spawn(async move { axum::serve(listener, app).await.unwrap() });
        Self { address, seen, _tasks: tasks }
    }

    pub(super) fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    /// Returns when the requests with this query have arrived.
    pub(super) fn seen(&self, query: &str) -> Vec<Instant> {
        let seen = self.seen.lock().unwrap();
        seen.iter().filter(|(_, had)| had == query).map(|(at, _)| *at).collect()
    }
}

fn refusal(query: &str) -> (HeaderMap, StatusCode) {
    let mut headers = HeaderMap::from_iter([(ACCESS_CONTROL_ALLOW_ORIGIN, HeaderValue::from_static("*"))]);
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
