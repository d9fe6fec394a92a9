//! What is at which address, and who may ask for it.

use std::sync::Arc;

use axum::Router;
use axum::extract::{DefaultBodyLimit, Request, State};
use axum::http::header::{
    CACHE_CONTROL, CONTENT_SECURITY_POLICY, CONTENT_TYPE, HOST, HeaderName, HeaderValue, ORIGIN, REFERRER_POLICY,
    X_CONTENT_TYPE_OPTIONS,
};
use axum::http::{HeaderMap, Method, StatusCode};
use axum::middleware::{Next, from_fn_with_state};
use axum::response::{IntoResponse, Response};
use axum::routing::{get, post};
use serde_json::{Value, json};
use stagger_terminal::plan::profiles_json;

use super::limits::{Jobs, MAX_BODY_BYTES};
use super::reply::{Failure, Json};
use super::{export, policy, race};

/// Returns the routes of the server on this port.
pub(super) fn routes(port: u16) -> Router {
    // Findings appear while a race is simulated.
    let (races, forecasts) = (Arc::new(Jobs::new()), Arc::new(Jobs::new()));
    let mut routes = Router::new();
    for asset in ASSETS {
        routes = routes.route(asset.path, get(asset));
    }
    routes
        .route("/api/presets", get(presets))
        .route("/api/race", post(race::answer))
        .route("/api/advise", post(policy::advise))
        .route("/api/export", post(export::answer))
        .with_state(races)
        .merge(Router::new().route("/api/policy", post(policy::answer)).with_state(forecasts))
        .fallback(|| async { Failure::new(StatusCode::NOT_FOUND, "there is nothing at this address; open /") })
        .layer(DefaultBodyLimit::max(MAX_BODY_BYTES))
        .layer(from_fn_with_state(port, own_page_only))
}

/// Answers with the profiles that the page offers.
async fn presets() -> Result<Json, Failure> {
    let profiles: Value = serde_json::from_str(&profiles_json()?).unwrap_or_default();
    Ok(Json(json!({ "version": env!("CARGO_PKG_VERSION"), "profiles": profiles["profiles"] })))
}

/// The media types of the page's files.
const HTML: &str = "text/html; charset=utf-8";
const STYLE: &str = "text/css; charset=utf-8";
const SCRIPT: &str = "text/javascript; charset=utf-8";

/// A file of the page, which is a part of the program.
#[derive(Clone, Copy, Debug)]
struct Asset {
    path: &'static str,
    media_type: &'static str,
    text: &'static str,
}

/// All files of the page.
const ASSETS: [Asset; 10] = [
    Asset { path: "/", media_type: HTML, text: include_str!("page/index.html") },
    Asset { path: "/style.css", media_type: STYLE, text: include_str!("page/style.css") },
    Asset { path: "/main.js", media_type: SCRIPT, text: include_str!("page/main.js") },
    Asset { path: "/address.js", media_type: SCRIPT, text: include_str!("page/address.js") },
    Asset { path: "/server.js", media_type: SCRIPT, text: include_str!("page/server.js") },
    Asset { path: "/replay.js", media_type: SCRIPT, text: include_str!("page/replay.js") },
    Asset { path: "/dots.js", media_type: SCRIPT, text: include_str!("page/dots.js") },
    Asset { path: "/curves.js", media_type: SCRIPT, text: include_str!("page/curves.js") },
    Asset { path: "/units.js", media_type: SCRIPT, text: include_str!("page/units.js") },
    Asset { path: "/panels.js", media_type: SCRIPT, text: include_str!("page/panels.js") },
];

impl IntoResponse for Asset {
    fn into_response(self) -> Response {
        ([(CONTENT_TYPE, self.media_type)], self.text).into_response()
    }
}

/// No inline scripts or styles, nothing from elsewhere, and no frame around the page.
const POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src \
    'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'";

const RESOURCE_POLICY: HeaderName = HeaderName::from_static("cross-origin-resource-policy");
const OPENER_POLICY: HeaderName = HeaderName::from_static("cross-origin-opener-policy");

/// What browsers say about the page that a request comes from.
const FETCH_SITE: &str = "sec-fetch-site";
const FETCH_MODE: &str = "sec-fetch-mode";

/// Refuses requests of other sites, and adds the headers that every response has.
async fn own_page_only(State(port): State<u16>, request: Request, next: Next) -> Response {
    let mut response = match refusal(request.method(), request.headers(), port) {
        Some(reason) => Failure::new(StatusCode::FORBIDDEN, reason).into_response(),
        None => next.run(request).await,
    };
    let headers = response.headers_mut();
    for (name, value) in [
        (CONTENT_SECURITY_POLICY, POLICY),
        (X_CONTENT_TYPE_OPTIONS, "nosniff"),
        (REFERRER_POLICY, "no-referrer"),
        (CACHE_CONTROL, "no-store"),
        (RESOURCE_POLICY, "same-origin"),
        (OPENER_POLICY, "same-origin"),
    ] {
        headers.insert(name, HeaderValue::from_static(value));
    }
    response
}

/// Returns why a request is refused.
///
/// A name that another site has pointed at this address (DNS rebinding) is in `Host`; a script of another site has its
/// `Origin`; an image or a form of another site is told by `Sec-Fetch-Site`. A link from another site to the page is
/// allowed.
fn refusal(method: &Method, headers: &HeaderMap, port: u16) -> Option<String> {
    let hosts = ["127.0.0.1", "localhost"].map(|name| format!("{name}:{port}"));
    // Browsers leave out the port of the scheme.
    let is_host = |text: &str| hosts.iter().any(|host| host == text || (port == 80 && format!("{text}:80") == *host));
    let texts = |name: &HeaderName| headers.get_all(name).iter().map(|value| value.to_str().unwrap_or("?"));
    let host = texts(&HOST).next().unwrap_or("");
    if texts(&HOST).count() != 1 || !is_host(host) {
        return Some(format!("the host `{host}` is not this server; open http://127.0.0.1:{port}/"));
    }
    let is_own = |origin: &str| origin.strip_prefix("http://").is_some_and(is_host);
    if let Some(origin) = texts(&ORIGIN).find(|origin| !is_own(origin)) {
        return Some(format!("the origin `{origin}` is another site; open http://127.0.0.1:{port}/"));
    }
    let is_link = method == Method::GET && headers.get(FETCH_MODE).is_some_and(|mode| mode == "navigate");
    if is_from_elsewhere(headers) && !is_link {
        return Some(format!("the request comes from another site; open http://127.0.0.1:{port}/"));
    }
    None
}

/// Returns whether a browser says that another site is the reason for a request.
fn is_from_elsewhere(headers: &HeaderMap) -> bool {
    headers.get(FETCH_SITE).is_some_and(|site| site != "same-origin" && site != "none")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refused(method: &Method, pairs: &[(&'static str, &str)]) -> Option<String> {
        let mut headers = HeaderMap::new();
        for (name, value) in pairs {
            headers.append(*name, value.parse().unwrap());
        }
        refusal(method, &headers, 4711)
    }

    #[test]
    fn requests_of_the_own_page_and_of_programs_are_answered() {
        for pairs in [
            &[("host", "127.0.0.1:4711")][..],
            &[("host", "localhost:4711")],
            &[("host", "localhost:4711"), ("origin", "http://localhost:4711"), ("sec-fetch-site", "same-origin")],
            &[("host", "127.0.0.1:4711"), ("sec-fetch-site", "none"), ("sec-fetch-mode", "navigate")],
        ] {
            assert_eq!(refused(&Method::POST, pairs), None, "{pairs:?}");
        }
        let link = [("host", "127.0.0.1:4711"), ("sec-fetch-site", "cross-site"), ("sec-fetch-mode", "navigate")];
        assert_eq!(refused(&Method::GET, &link), None);
        assert!(refused(&Method::POST, &link).is_some(), "a form of another site");
    }

    #[test]
    fn names_and_pages_of_others_are_refused() {
        let own = ("host", "127.0.0.1:4711");
        for (pairs, want) in [
            (&[][..], "the host ``"),
            (&[("host", "evil.example:4711")], "the host `evil.example:4711`"),
            (&[("host", "127.0.0.1:4712")], "the host `127.0.0.1:4712`"),
            (&[("host", "127.0.0.1")], "the host"),
            (&[("host", "127.0.0.1:4711.evil.example")], "the host"),
            (&[own, ("host", "evil.example")], "the host"),
            (&[own, ("origin", "http://evil.example")], "the origin `http://evil.example`"),
            (&[own, ("origin", "https://127.0.0.1:4711")], "the origin"),
            (&[own, ("origin", "null")], "the origin `null`"),
            (&[own, ("origin", "http://127.0.0.1:4711"), ("origin", "http://evil.example")], "the origin"),
            (&[own, ("sec-fetch-site", "cross-site"), ("sec-fetch-mode", "no-cors")], "the request comes from"),
            (&[own, ("sec-fetch-site", "same-site")], "the request comes from"),
        ] {
            let reason = refused(&Method::GET, pairs);
            assert!(reason.as_ref().is_some_and(|reason| reason.starts_with(want)), "{pairs:?}: {reason:?}");
        }
    }
}
