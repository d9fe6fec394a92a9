use std::sync::Arc;

use axum::extract::State;
use axum::response::Response;
use serde::Deserialize;
use serde_json::Value;
use stagger_lint::advise::Question as Asked;
use stagger_sim::Progress;

use super::events;
use super::jobs::Jobs;
use super::question::Question;
use super::reply::Failure;
use crate::advise::recommend;

/// The seed of the search, as of `stagger advise`.
const SEED: u64 = 1;

/// For which circumstances a policy is wanted: the answers of `stagger advise`.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct AdviseQuestion {
    purpose: String,
    clients: String,
    capacity: String,
    #[serde(default)]
    outage: Option<String>,
}

/// Answers with the recommended policy, as `stagger advise --json`.
pub(super) async fn answer(
    State(jobs): State<Arc<Jobs>>,
    Question(question): Question<AdviseQuestion>,
) -> Result<Response, Failure> {
    let place = jobs.admit()?;
    Ok(events::answer(move |events| async move {
        let progress = Arc::new(Progress::new());
        let search = place.run(Arc::clone(&progress), move |progress| {
            let AdviseQuestion { purpose, clients, capacity, outage } = &question;
            let answers = [(Asked::Purpose, purpose), (Asked::Clients, clients), (Asked::Capacity, capacity)];
            let outage = outage.iter().map(|outage| (Asked::Outage, outage));
            let answers: Vec<_> = answers.into_iter().chain(outage).map(|(asked, text)| (asked, &**text)).collect();
            recommend(&answers, SEED, progress)
        });
        let document = match events.with_progress(&progress, search).await? {
            Ok(Ok(document)) => document,
            Ok(Err(error)) => return Ok(Err(error.into())),
            Err(failure) => return Ok(Err(failure)),
        };
        let advice: Value = serde_json::from_str(&document).unwrap_or_default();
        events.send("advice", &advice).await?;
        Ok(Ok(()))
    }))
}
