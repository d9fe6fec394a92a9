//! Requests of the page as JSON, and what they ask for.

use core::time::Duration;

use axum::body::Bytes;
use axum::extract::{FromRequest, Request};
use axum::http::StatusCode;
use axum::http::header::CONTENT_TYPE;
use axum::response::IntoResponse;
use serde::Deserialize;
use serde::de::DeserializeOwned;
use stagger_core::Policy;

use super::limits::{BODY_TIMEOUT, MAX_BODY_BYTES, MAX_CLIENTS};
use super::reply::Failure;
use crate::simulate::Race;

/// The body of a request, in JSON.
#[derive(Debug)]
pub(super) struct Question<T>(pub(super) T);

/// What to race: one policy, or two.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct RaceQuestion {
    pub(super) policies: Vec<String>,
    #[serde(default)]
    pub(super) settings: Vec<(String, String)>,
    /// A text, because numbers of JavaScript have 53 bits.
    #[serde(default)]
    pub(super) seed: Option<String>,
}

/// The settings of a scenario that the page knows: those of `stagger simulate reconnect` without guards.
const SETTINGS: [&str; 11] = [
    "clients",
    "capacity",
    "backlog",
    "down",
    "one-way",
    "disconnect-window",
    "first-attempt",
    "retry-after",
    "crash-loop",
    "crash-above",
    "horizon",
];

/// The default seed, as of `stagger simulate`.
const SEED: u64 = 1;

impl<T: DeserializeOwned, S: Send + Sync> FromRequest<S> for Question<T> {
    type Rejection = Failure;

    async fn from_request(request: Request, state: &S) -> Result<Self, Failure> {
        // A form of another site cannot send this type.
        if request.headers().get(CONTENT_TYPE).is_none_or(|given| given != "application/json") {
            return Err(Failure::new(
                StatusCode::UNSUPPORTED_MEDIA_TYPE,
                "the body must be JSON; send content-type: application/json",
            ));
        }
        let body = tokio::time::timeout(BODY_TIMEOUT, Bytes::from_request(request, state)).await;
        let body = body.map_err(|_| {
            let limit = Duration::as_secs(&BODY_TIMEOUT);
            Failure::new(
                StatusCode::REQUEST_TIMEOUT,
                format_args!("the body took longer than {limit} s; send it again"),
            )
        })?;
        let body = body.map_err(|rejected| match rejected.into_response().status() {
            status @ StatusCode::PAYLOAD_TOO_LARGE => {
                Failure::new(status, format_args!("the body is longer than {MAX_BODY_BYTES} bytes; shorten the policy"))
            }
            status => Failure::new(status, "the body cannot be read; send it again"),
        })?;
        serde_json::from_slice(&body).map(Self).map_err(|error| {
            Failure::new(StatusCode::BAD_REQUEST, format_args!("the body is not as expected: {error}"))
        })
    }
}

/// Parses a policy of the policy language, or the name of a profile with settings. A file is never read.
pub(super) fn parse_policy(text: &str) -> Result<Policy, Failure> {
    if text.trim().is_empty() {
        return Err(Failure::wrong(
            "the policy is empty; write one such as `exponential base=1s spread=10s`, or the name of a profile",
        ));
    }
    text.parse().map_err(Failure::wrong)
}

impl RaceQuestion {
    /// Returns the race.
    pub(super) fn race(&self) -> Result<Race, Failure> {
        if !(1..=2).contains(&self.policies.len()) {
            let count = self.policies.len();
            return Err(Failure::wrong(format_args!("{count} policies cannot race; give one or two")));
        }
        if let Some((name, _)) = self.settings.iter().find(|(name, _)| !SETTINGS.contains(&&**name)) {
            return Err(Failure::wrong(format_args!(
                "the page has no setting `{name}`; remove it or use one of {}",
                SETTINGS.join(", ")
            )));
        }
        let parsed = self.policies.iter().map(|text| parse_policy(text).map(|policy| (text.clone(), policy)));
        let race = Race::new(&parsed.collect::<Result<Vec<_>, _>>()?, &self.settings, self.seed()?)?;
        match race.scenario().clients() {
            0..=MAX_CLIENTS => Ok(race),
            clients => Err(Failure::wrong(format_args!(
                "{clients} clients are more than the {MAX_CLIENTS} that the page simulates; lower clients, or run: {}",
                race.command()
            ))),
        }
    }

    /// Returns the seed.
    fn seed(&self) -> Result<u64, Failure> {
        let Some(text) = &self.seed else { return Ok(SEED) };
        text.parse().map_err(|_| Failure::wrong(format_args!("`{text}` is not a seed; use a whole number from 0")))
    }
}
