use core::time::Duration;

use serde::Serialize;
use stagger_core::{Policy, Seed};

use super::forecast::{Client, Distribution, Forecast, Shown};
use super::notes::{Note, notes};
use super::verdict::{Answer, Check, Verdict};
use crate::output::error::CliError;

/// The output of `stagger plan --json`: schema `stagger.plan/1`.
///
/// Durations are in seconds, shares are between 0 and 1. Later versions of the schema may add fields; existing fields
/// keep their names and meanings.
#[derive(Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema), schemars(rename = "stagger.plan/1"))]
pub(super) struct Document<'a> {
    /// Always `stagger.plan/1`.
    schema: &'static str,
    /// The policy, as one line of the policy language.
    policy: String,
    /// Maximum number of attempts, including the first; null for no limit.
    max_attempts: Option<u32>,
    /// Latest start of a retry, measured from the start of the call; null for no limit.
    max_elapsed_s: Option<f64>,
    /// Upper bound of the wait before the first attempt, which is drawn uniformly from zero.
    spread_s: f64,
    /// Whether `retries` contains all retries of the policy.
    complete: bool,
    /// The forecast of each retry.
    retries: Vec<Retry>,
    /// Notes on the forecast.
    notes: &'a [Note],
    /// The drawn delays; only with `--sample`.
    #[serde(skip_serializing_if = "Option::is_none")]
    sample: Option<Sample<'a>>,
}

/// The forecast of one retry.
#[derive(Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
struct Retry {
    /// Number of the retry, from 1.
    retry: u32,
    /// Delay before the retry.
    delay: Durations,
    /// Total wait up to the retry: the spread and all delays up to this one, without the duration of the attempts.
    elapsed: Durations,
}

/// The distribution of a duration.
#[derive(Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
struct Durations {
    /// Minimum.
    min_s: f64,
    /// Maximum.
    max_s: f64,
    /// Mean.
    mean_s: f64,
    /// 10th percentile.
    p10_s: f64,
    /// Median.
    p50_s: f64,
    /// 90th percentile.
    p90_s: f64,
    /// 99th percentile.
    p99_s: f64,
}

/// Drawn delays, and whether they match the forecast.
#[derive(Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
struct Sample<'a> {
    /// Seed that reproduces them.
    seed: u64,
    /// Number of clients drawn.
    clients: usize,
    /// Whether the delays match the forecast.
    verdict: VerdictSummary<'a>,
    /// The drawn delays of each retry.
    retries: Vec<DrawnDelays>,
    /// The waits of each client.
    series: Vec<ClientDelays>,
}

/// The verdict on drawn delays.
#[derive(Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
struct VerdictSummary<'a> {
    /// Whether the delays span their intervals: `yes`; `synchronized` if all clients wait the same, as the policy
    /// specifies; `too-few` if there are too few draws to tell; `no` if they contradict the forecast.
    spans: &'static str,
    /// The verdict as a sentence.
    text: &'a str,
}

/// The delays drawn for one retry.
#[derive(Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
struct DrawnDelays {
    /// Number of the retry, from 1.
    retry: u32,
    /// Shortest delay drawn.
    min_s: f64,
    /// Longest delay drawn.
    max_s: f64,
    /// How the delays are distributed over their interval; null if the interval is a single duration.
    fit: Option<Fit>,
}

/// The distribution of drawn delays over their interval.
#[derive(Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
struct Fit {
    /// Position of the shortest delay in the interval, from 0 to 1.
    reach_from: f64,
    /// Position of the longest delay in the interval, from 0 to 1.
    reach_to: f64,
    /// The statistic of the Kolmogorov–Smirnov test against the forecast.
    ks: f64,
    /// The p-value of that test: the probability of a statistic at least this large for draws from the forecast.
    ks_p: f64,
    /// Expected share of delays below the shortest or above the longest drawn, whichever is larger.
    missed: f64,
}

/// The waits of one client whose attempts all fail.
#[derive(Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
struct ClientDelays {
    /// Wait before the first attempt.
    spread_s: f64,
    /// Delay before each retry.
    delays_s: Vec<f64>,
}

impl<'a> Document<'a> {
    /// Creates the document of a forecast.
    pub(super) fn new(forecast: &Forecast, notes: &'a [Note]) -> Self {
        let policy = &forecast.policy;
        let retries = forecast.rows.iter().map(|row| Retry {
            retry: row.retry,
            delay: durations(row.delay),
            elapsed: durations(row.elapsed),
        });
        Self {
            schema: "stagger.plan/1",
            policy: policy.to_string(),
            max_attempts: policy.max_attempts().map(Into::into),
            max_elapsed_s: policy.max_elapsed().map(s),
            spread_s: s(policy.spread()),
            complete: forecast.shown == Shown::All,
            retries: retries.collect(),
            notes,
            sample: None,
        }
    }

    /// Adds the delays drawn from `seed`.
    pub(super) fn with_sample(mut self, seed: Seed, clients: &[Client], verdict: &'a Verdict) -> Self {
        let spans = match verdict.answer {
            Answer::Yes => "yes",
            Answer::Synchronized => "synchronized",
            Answer::TooFew => "too-few",
            Answer::No => "no",
        };
        let series = clients.iter().map(|client| ClientDelays {
            spread_s: s(client.spread),
            delays_s: client.delays.iter().copied().map(s).collect(),
        });
        self.sample = Some(Sample {
            seed: seed.get(),
            clients: clients.len(),
            verdict: VerdictSummary { spans, text: &verdict.text },
            retries: verdict.checks.iter().map(drawn_delays).collect(),
            series: series.collect(),
        });
        self
    }
}

/// Returns the document of the forecast of a policy.
pub fn forecast_of(policy: Policy) -> Result<serde_json::Value, CliError> {
    let forecast = Forecast::new(policy, None);
    let notes = notes(&forecast);
    serde_json::to_value(Document::new(&forecast, &notes)).map_err(|error| CliError::io("cannot write JSON", error))
}

fn durations(distribution: Distribution) -> Durations {
    let Distribution { min, max, mean, p10, p50, p90, p99 } = distribution;
    let [min_s, max_s, mean_s, p10_s, p50_s, p90_s, p99_s] = [min, max, mean, p10, p50, p90, p99].map(s);
    Durations { min_s, max_s, mean_s, p10_s, p50_s, p90_s, p99_s }
}

fn drawn_delays(check: &Check) -> DrawnDelays {
    let fit = check.fit.as_ref().map(|fit| Fit {
        reach_from: fit.reach.0,
        reach_to: fit.reach.1,
        ks: fit.distance,
        ks_p: fit.p_value,
        missed: fit.missed,
    });
    DrawnDelays { retry: check.retry, min_s: s(check.drawn_min), max_s: s(check.drawn_max), fit }
}

fn s(length: Duration) -> f64 {
    length.as_secs_f64()
}

#[cfg(test)]
mod tests {
    use serde_json::Value;
    use stagger_kit::assert_published_schema;

    use super::*;
    use crate::plan::forecast::draw;
    use crate::plan::notes::notes;

    fn document(policy: &str, sample: Option<usize>) -> Value {
        let forecast = Forecast::new(policy.parse().unwrap(), None);
        let notes = notes(&forecast);
        let seed = Seed::new(5);
        let clients = draw(&forecast.policy, seed, sample.unwrap_or(0), forecast.rows.len());
        let verdict = Verdict::new(&forecast, &clients);
        let mut document = Document::new(&forecast, &notes);
        if sample.is_some() {
            document = document.with_sample(seed, &clients, &verdict);
        }
        serde_json::to_value(&document).unwrap()
    }

    #[test]
    fn forecasts_are_in_seconds() {
        let document = document("exponential base=1s cap=30s max-attempts=4 max-elapsed=1m", None);
        assert_eq!(document["schema"], "stagger.plan/1");
        assert_eq!(document["max_attempts"], 4);
        assert_eq!(document["max_elapsed_s"], 60.0);
        let third = &document["retries"][2];
        assert_eq!(third["retry"], 3);
        assert_eq!((&third["delay"]["min_s"], &third["delay"]["max_s"]), (&Value::from(0.0), &Value::from(4.0)));
        assert_eq!(third["delay"]["p90_s"], 3.6);
        assert_eq!(third["elapsed"]["max_s"], 7.0);
        assert_eq!(document.get("sample"), None);
    }

    #[test]
    fn the_policy_is_parsed_back() {
        let policy = "exponential base=1s cap=30s jitter=±20% spread=5s max-attempts=inf";
        let document = document(policy, None);
        let text = document["policy"].as_str().unwrap();
        assert_eq!(text.parse::<Policy>(), policy.parse());
        assert_eq!(document["max_attempts"], Value::Null);
        assert_eq!(document["complete"], false);
    }

    #[test]
    fn a_sample_contains_every_client_and_every_delay() {
        let document = document("exponential base=1s cap=30s spread=2s max-attempts=6", Some(3));
        let sample = &document["sample"];
        assert_eq!((&sample["seed"], &sample["clients"]), (&Value::from(5), &Value::from(3)));
        let series = sample["series"].as_array().unwrap();
        assert_eq!(series.len(), 3);
        for client in series {
            assert_eq!(client["delays_s"].as_array().unwrap().len(), 5);
            assert!((0.0..=2.0).contains(&client["spread_s"].as_f64().unwrap()));
        }
        let least = series.iter().map(|client| client["delays_s"][4].as_f64().unwrap()).fold(f64::MAX, f64::min);
        assert_eq!(sample["retries"][4]["min_s"], least);
    }

    #[test]
    fn the_published_schema_matches_the_output() {
        assert_published_schema::<Document<'_>>(env!("CARGO_MANIFEST_DIR"), "src/plan/stagger.plan-1.schema.json");
    }
}
