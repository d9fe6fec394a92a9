use std::sync::Arc;

use axum::Router;
use axum::extract::DefaultBodyLimit;
use axum::http::StatusCode;
use axum::middleware::from_fn_with_state;
use axum::routing::{get, post};

use super::assets::ASSETS;
use super::jobs::Jobs;
use super::limits::MAX_BODY_BYTES;
use super::origin::own_page_only;
use super::reply::Failure;
use super::{advise, export, policy, presets, race};

/// Returns the routes of the server on this port.
pub(super) fn routes(port: u16) -> Router {
    // Findings appear while a race is simulated.
    let (races, forecasts) = (Arc::new(Jobs::new()), Arc::new(Jobs::new()));
    let mut routes = Router::new();
    for asset in ASSETS {
        routes = routes.route(asset.path, get(asset));
    }
    routes
        .route("/api/presets", get(presets::answer))
        .route("/api/race", post(race::answer))
        .route("/api/advise", post(advise::answer))
        .route("/api/export", post(export::answer))
        .with_state(races)
        .merge(Router::new().route("/api/policy", post(policy::answer)).with_state(forecasts))
        .fallback(|| async { Failure::new(StatusCode::NOT_FOUND, "there is nothing at this address; open /") })
        .layer(DefaultBodyLimit::max(MAX_BODY_BYTES))
        .layer(from_fn_with_state(port, own_page_only))
}
