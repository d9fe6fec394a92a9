use std::sync::Arc;

use axum::extract::State;
use serde::Deserialize;
use serde_json::json;
use stagger_core::text::{ParseValueError, Rate, parse_count};
use stagger_lint::{DeploymentContext, Purpose};
use stagger_sim::Progress;

use super::jobs::Jobs;
use super::question::{Question, parse_policy};
use super::reply::{Failure, Json};
use crate::check::findings_of;
use stagger_terminal::plan::forecast_of;

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
    let place = jobs.admit()?;
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
