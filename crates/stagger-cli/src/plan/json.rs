use core::time::Duration;

use serde::{Serialize, Serializer};
use stagger_core::Seed;

use super::clients::Client;
use super::forecast::{Distribution, Forecast, Shown};
use super::notes::Note;
use super::verdict::{Answer, Check, Verdict};

/// What `stagger plan --json` prints: schema `stagger.plan/1`.
///
/// Durations of time are numbers of seconds, shares lie between 0 and 1. Later versions of the schema
/// may add fields; what is here keeps its name and its meaning.
#[derive(Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema), schemars(rename = "stagger.plan/1"))]
pub(crate) struct Document<'a> {
    /// Always `stagger.plan/1`.
    schema: &'static str,
    /// The policy, in one line of the policy language.
    policy: String,
    /// How often it tries in all, the first attempt included; null if there is no limit.
    max_attempts: Option<u32>,
    /// How long after the start of a call a retry may start; null if there is no limit.
    #[serde(serialize_with = "option_s")]
    #[cfg_attr(test, schemars(with = "Option<f64>"))]
    max_elapsed_s: Option<Duration>,
    /// The longest wait before the first attempt; it is drawn evenly from zero up.
    #[serde(serialize_with = "s")]
    #[cfg_attr(test, schemars(with = "f64"))]
    spread_s: Duration,
    /// Whether `retries` holds all that the policy can make.
    complete: bool,
    /// The forecast of each retry.
    retries: Vec<Retry>,
    /// What the figures do not say by themselves.
    notes: &'a [Note],
    /// What was drawn; with `--sample` only.
    #[serde(skip_serializing_if = "Option::is_none")]
    sample: Option<Sample<'a>>,
}

/// The forecast of one retry.
#[derive(Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
struct Retry {
    /// Its number, from 1.
    retry: u32,
    /// The delay before it.
    delay: Durations,
    /// All that was waited by then: the spread and the delays up to this one. What the attempts
    /// take comes on top.
    elapsed: Durations,
}

/// The forecast of a length of time.
#[derive(Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
struct Durations {
    /// The least it can be.
    #[serde(serialize_with = "s")]
    #[cfg_attr(test, schemars(with = "f64"))]
    min_s: Duration,
    /// The most it can be.
    #[serde(serialize_with = "s")]
    #[cfg_attr(test, schemars(with = "f64"))]
    max_s: Duration,
    /// Its mean.
    #[serde(serialize_with = "s")]
    #[cfg_attr(test, schemars(with = "f64"))]
    mean_s: Duration,
    /// Its quantiles: one draw in ten is at most this.
    #[serde(serialize_with = "s")]
    #[cfg_attr(test, schemars(with = "f64"))]
    p10_s: Duration,
    /// The median.
    #[serde(serialize_with = "s")]
    #[cfg_attr(test, schemars(with = "f64"))]
    p50_s: Duration,
    /// Nine draws in ten are at most this.
    #[serde(serialize_with = "s")]
    #[cfg_attr(test, schemars(with = "f64"))]
    p90_s: Duration,
    /// Ninety-nine draws in a hundred are at most this.
    #[serde(serialize_with = "s")]
    #[cfg_attr(test, schemars(with = "f64"))]
    p99_s: Duration,
}

/// DrawnDelays delays, and whether they are what was forecast.
#[derive(Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
struct Sample<'a> {
    /// Draws them again.
    seed: u64,
    /// How many clients were drawn.
    clients: usize,
    /// Whether the delays span their intervals.
    verdict: VerdictSummary<'a>,
    /// What became of each retry's delays.
    retries: Vec<DrawnDelays>,
    /// The waits of each client.
    series: Vec<ClientDelays>,
}

/// An answer and its grounds.
#[derive(Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
struct VerdictSummary<'a> {
    /// `yes`; `synchronized` where all clients wait the same, as the policy says; `too-few` where so few
    /// draws say nothing; `no` where they contradict the forecast.
    spans: &'static str,
    /// The answer in a sentence.
    text: &'a str,
}

/// The delays drawn for one retry.
#[derive(Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
struct DrawnDelays {
    /// Its number, from 1.
    retry: u32,
    /// The least delay drawn.
    #[serde(serialize_with = "s")]
    #[cfg_attr(test, schemars(with = "f64"))]
    min_s: Duration,
    /// The greatest delay drawn.
    #[serde(serialize_with = "s")]
    #[cfg_attr(test, schemars(with = "f64"))]
    max_s: Duration,
    /// How they lie in their interval; null where all must be one length.
    fit: Option<Fit>,
}

/// How drawn delays lie in their interval.
#[derive(Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
struct Fit {
    /// Where in the interval the least delay lies.
    reach_from: f64,
    /// Where in the interval the greatest delay lies.
    reach_to: f64,
    /// The statistic of the Kolmogorov–Smirnov test against the forecast.
    ks: f64,
    /// How often draws that follow the forecast would lie at least so far from it.
    ks_p: f64,
    /// The share of delays that were to be expected beyond the least or beyond the greatest of
    /// these, whichever is larger.
    missed: f64,
}

/// The waits of one client that never succeeds.
#[derive(Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
struct ClientDelays {
    /// Before its first attempt.
    #[serde(serialize_with = "s")]
    #[cfg_attr(test, schemars(with = "f64"))]
    spread_s: Duration,
    /// Before each of its retries.
    delays_s: Vec<f64>,
}

impl<'a> Document<'a> {
    /// The document of a forecast.
    pub(crate) fn new(forecast: &Forecast, notes: &'a [Note]) -> Self {
        let policy = &forecast.policy;
        let retry = |row: &super::forecast::Row| Retry {
            retry: row.retry,
            delay: row.delay.into(),
            elapsed: row.elapsed.into(),
        };
        Self {
            schema: "stagger.plan/1",
            policy: policy.to_string(),
            max_attempts: policy.max_attempts().map(Into::into),
            max_elapsed_s: policy.max_elapsed(),
            spread_s: policy.spread(),
            complete: forecast.shown == Shown::All,
            retries: forecast.rows.iter().map(retry).collect(),
            notes,
            sample: None,
        }
    }

    /// The same with what was drawn from `seed`.
    pub(crate) fn with_sample(mut self, seed: Seed, clients: &[Client], verdict: &'a Verdict) -> Self {
        let series = clients.iter().map(|client| ClientDelays {
            spread_s: client.spread,
            delays_s: client.delays.iter().map(Duration::as_secs_f64).collect(),
        });
        self.sample = Some(Sample {
            seed: seed.get(),
            clients: clients.len(),
            verdict: VerdictSummary { spans: answer_name(verdict.answer), text: &verdict.text },
            retries: verdict.checks.iter().map(Into::into).collect(),
            series: series.collect(),
        });
        self
    }
}

fn answer_name(answer: Answer) -> &'static str {
    match answer {
        Answer::Yes => "yes",
        Answer::Synchronized => "synchronized",
        Answer::TooFew => "too-few",
        Answer::No => "no",
    }
}

impl From<Distribution> for Durations {
    fn from(distribution: Distribution) -> Self {
        let Distribution { min, max, mean, p10, p50, p90, p99 } = distribution;
        Self { min_s: min, max_s: max, mean_s: mean, p10_s: p10, p50_s: p50, p90_s: p90, p99_s: p99 }
    }
}

impl From<&Check> for DrawnDelays {
    fn from(check: &Check) -> Self {
        let fit = check.fit.as_ref().map(|fit| Fit {
            reach_from: fit.reach.0,
            reach_to: fit.reach.1,
            ks: fit.distance,
            ks_p: fit.p_value,
            missed: fit.missed,
        });
        Self { retry: check.retry, min_s: check.drawn_min, max_s: check.drawn_max, fit }
    }
}

fn s<S: Serializer>(length: &Duration, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_f64(length.as_secs_f64())
}

fn option_s<S: Serializer>(length: &Option<Duration>, serializer: S) -> Result<S::Ok, S::Error> {
    length.map(|length| length.as_secs_f64()).serialize(serializer)
}

#[cfg(test)]
mod tests {
    use serde_json::Value;

    use super::*;
    use crate::output::assert_published_schema;
    use crate::plan::clients::draw;
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
    fn forecasts_are_numbers_of_seconds() {
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
    fn the_policy_reads_back() {
        let policy = "exponential base=1s cap=30s jitter=±20% spread=5s max-attempts=inf";
        let document = document(policy, None);
        let text = document["policy"].as_str().unwrap();
        assert_eq!(text.parse::<stagger_core::Policy>(), policy.parse());
        assert_eq!(document["max_attempts"], Value::Null);
        assert_eq!(document["complete"], false);
    }

    #[test]
    fn a_sample_has_every_client_and_every_delay() {
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

    /// The schema that is published. After a change: `STAGGER_BLESS=1 cargo test -p stagger-cli schema`.
    #[test]
    fn the_published_schema_is_that_of_what_is_printed() {
        let path = concat!(env!("CARGO_MANIFEST_DIR"), "/src/plan/stagger.plan-1.schema.json");
        assert_published_schema::<Document<'_>>(path);
    }
}
