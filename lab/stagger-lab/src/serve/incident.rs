use std::sync::Arc;

use axum::extract::{Path, State};
use axum::http::header::{CONTENT_SECURITY_POLICY, CONTENT_TYPE};
use axum::http::{HeaderMap, StatusCode};
use axum::response::{IntoResponse, Response};
use stagger_sim::Progress;

use super::jobs::Jobs;
use super::origin::is_from_elsewhere;
use super::reply::Failure;
use crate::simulate::{SystemIncident, system_incidents};
use stagger_report::page::security_policy;

/// Answers with the report of an incident that is a system of services, without or with its cure.
///
/// A page of its own, because a system has no clients to watch. Links of other sites to it are refused: it computes.
pub(super) async fn answer(
    State(jobs): State<Arc<Jobs>>,
    headers: HeaderMap,
    Path((name, variant)): Path<(String, String)>,
) -> Result<Response, Failure> {
    if is_from_elsewhere(&headers) {
        return Err(Failure::new(StatusCode::FORBIDDEN, "the link is on another site; open / and choose the preset"));
    }
    let known = SystemIncident::variants().contains(&&*variant);
    let Some(incident) = system_incidents().find(|incident| known && incident.name() == name) else {
        return Err(Failure::new(StatusCode::NOT_FOUND, "there is no such incident; open / and choose a preset"));
    };
    let place = jobs.admit()?;
    let run = place.run(Arc::new(Progress::new()), move |progress| incident.page(&variant, progress));
    let page = run.await??.unwrap_or_default();
    let security = security_policy() + "; frame-ancestors 'none'";
    Ok(([(CONTENT_TYPE, "text/html; charset=utf-8".to_owned()), (CONTENT_SECURITY_POLICY, security)], page)
        .into_response())
}
