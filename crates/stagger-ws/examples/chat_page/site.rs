//! The page, and the modules of the JavaScript client.

use std::fs;
use std::path::Path;

use axum::Router;
use axum::http::header::{CONTENT_SECURITY_POLICY, CONTENT_TYPE};
use axum::routing::get;
use stagger_ws::BoxError;
use stagger_ws::server::Sockets;

/// No other sites, no inline scripts, no `eval`.
const POLICY: &str = "default-src 'self'; connect-src 'self'; img-src data:";

/// Returns the routes of the page.
///
/// # Errors
/// If the JavaScript client is not compiled.
pub(crate) fn pages() -> Result<Router<Sockets>, BoxError> {
    let mut router = Router::new()
        .route("/", file("text/html; charset=utf-8", include_str!("page/index.html").to_owned()))
        .route("/chat.css", file("text/css", include_str!("page/chat.css").to_owned()))
        .route("/chat.js", file("text/javascript", include_str!("page/chat.js").to_owned()));
    let dist = Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../../clients/js/dist"));
    let missing = |error| format!("clients/js/dist: {error}; run `npm install && npm run build` in clients/js");
    for entry in fs::read_dir(dist).map_err(missing)? {
        let path = entry?.path();
        if let Some(name) = path.file_name().and_then(|name| name.to_str()).filter(|name| name.ends_with(".js")) {
            router = router.route(&format!("/client/{name}"), file("text/javascript", fs::read_to_string(&path)?));
        }
    }
    Ok(router)
}

fn file(content_type: &'static str, text: String) -> axum::routing::MethodRouter<Sockets> {
    get(async move || ([(CONTENT_TYPE, content_type), (CONTENT_SECURITY_POLICY, POLICY)], text))
}
