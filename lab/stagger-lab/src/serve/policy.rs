//! What the page says about one policy: findings, a forecast, and advice.

use std::sync::Arc;

use axum::extract::State;
use axum::response::Response;
use serde::Deserialize;
use serde_json::{Value, json};
use stagger_core::text::{ParseValueError, Rate, parse_count};
use stagger_lint::advise::Question as Asked;
use stagger_lint::{DeploymentContext, Purpose};
use stagger_sim::Progress;
use stagger_terminal::plan::forecast_of;

use super::limits::{Jobs, Work};
use super::question::{Question, parse_policy};
use super::reply::{Failure, Json, answer_with_events};
use crate::advise::recommend;
use crate::check::findings_of;

/// Which policy, and where it is used.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct PolicyQuestion {
    policy: String,
    #[serde(default)]
    purpose: Option<String>,
    #[serde(default)]
    clients: Option<String>,
    #[serde(default)]
    capacity: Option<String>,
}

/// Answers with what `plan` and `check` say about a policy.
pub(super) async fn answer(
    State(jobs): State<Arc<Jobs>>,
    Question(question): Question<PolicyQuestion>,
) -> Result<Json, Failure> {
    let policy = parse_policy(&question.policy)?;
    let context = question.context()?;
    // The forecast of some policies takes seconds.
    let place = jobs.admit(Work::Forecast)?;
    let forecast = place.run(Arc::new(Progress::new()), move |_| {
        let (plan, check) = (forecast_of(policy)?, findings_of(policy, &context)?);
        Ok::<_, Failure>(json!({ "policy": policy.to_string(), "plan": plan, "check": check }))
    });
    forecast.await?.map(Json)
}

impl PolicyQuestion {
    fn context(&self) -> Result<DeploymentContext, Failure> {
        let expected = |name: &'static str, text: &str| {
            let text = text.to_owned();
            move |error: ParseValueError| {
                Failure::wrong(format_args!("{name}: `{text}` is not as expected: {}", error.expected()))
            }
        };
        let mut context = DeploymentContext::default();
        if let Some(text) = &self.purpose {
            context = context.purpose(text.parse::<Purpose>().map_err(expected("purpose", text))?);
        }
        if let Some(text) = &self.clients {
            context = context.clients(parse_count(text).map_err(expected("clients", text))?);
        }
        if let Some(text) = &self.capacity {
            context = context.capacity(text.parse::<Rate>().map_err(expected("capacity", text))?);
        }
        Ok(context)
    }
}

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
pub(super) async fn advise(
    State(jobs): State<Arc<Jobs>>,
    Question(question): Question<AdviseQuestion>,
) -> Result<Response, Failure> {
    let place = jobs.admit(Work::Search)?;
    Ok(answer_with_events(move |events| async move {
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
