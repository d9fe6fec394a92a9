use axum::extract::{Request, State};
use axum::http::header::{
    CACHE_CONTROL, CONTENT_SECURITY_POLICY, HOST, HeaderName, HeaderValue, ORIGIN, REFERRER_POLICY,
    X_CONTENT_TYPE_OPTIONS,
};
use axum::http::{HeaderMap, Method, StatusCode};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};

use super::reply::Failure;

/// No inline scripts or styles, nothing from elsewhere, and no frame around the page.
const POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; \
                      base-uri 'none'; form-action 'none'; frame-ancestors 'none'";

const RESOURCE_POLICY: HeaderName = HeaderName::from_static("cross-origin-resource-policy");
const OPENER_POLICY: HeaderName = HeaderName::from_static("cross-origin-opener-policy");

/// What browsers say about the page that a request comes from.
const FETCH_SITE: &str = "sec-fetch-site";
const FETCH_MODE: &str = "sec-fetch-mode";

/// Refuses requests of other sites, and adds the headers that every response has.
pub(super) async fn own_page_only(State(port): State<u16>, request: Request, next: Next) -> Response {
    let mut response = match refusal(request.method(), request.headers(), port) {
        Some(reason) => Failure::new(StatusCode::FORBIDDEN, reason).into_response(),
        None => next.run(request).await,
    };
    let headers = response.headers_mut();
    // A report has one of its own, with the hash of its script.
    headers.entry(CONTENT_SECURITY_POLICY).or_insert(HeaderValue::from_static(POLICY));
    for (name, value) in [
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
/// `Origin`; an image or a form of another site is told by `Sec-Fetch-Site`. A link from another site to the page is allowed.
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
pub(super) fn is_from_elsewhere(headers: &HeaderMap) -> bool {
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
