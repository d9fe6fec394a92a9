use core::array;
use core::time::Duration;

use serde::Serialize;
use stagger_core::Policy;

use super::forecast::{Forecast, Row, Shown, brief, span};

/// A note on a forecast, for a property that its numbers alone do not make obvious.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub(super) struct Note {
    /// Stable identifier of the note.
    pub code: &'static str,
    /// The text, with the fix if there is one.
    pub text: String,
}

impl Note {
    fn new(code: &'static str, text: impl Into<String>) -> Self {
        Self { code, text: text.into() }
    }
}

pub(super) fn notes(forecast: &Forecast) -> Vec<Note> {
    let (Some(first), Some(last)) = (forecast.rows.first(), forecast.rows.last()) else {
        let text = "the policy makes one attempt and does not retry; there are no delays to show";
        return vec![Note::new("no-retry", text)];
    };
    [
        synchronization(forecast, first),
        at_cap(forecast),
        above_cap(forecast),
        elapsed_limit(forecast, last),
        truncated(forecast),
    ]
    .into_iter()
    .flatten()
    .collect()
}

/// Returns a note on how closely together clients retry after a common failure.
fn synchronization(forecast: &Forecast, first: &Row) -> Option<Note> {
    let spread = forecast.policy.spread();
    if forecast.rows.iter().all(|row| row.delay.max.is_zero()) {
        let text = "no delay: all clients retry immediately and at the same time; set a base";
        return Some(Note::new("no-delay", text));
    }
    let synchronized = forecast.rows.iter().all(|row| row.delay.min == row.delay.max);
    let delay = first.delay;
    match (synchronized, spread.is_zero()) {
        (true, true) => {
            let text = "no jitter: clients that fail at the same time also retry at the same time; add --jitter full";
            Some(Note::new("synchronized", text))
        }
        (true, false) => {
            let spread = brief(spread);
            let text = format!(
                "no jitter: only the spread of {spread} separates clients that fail at the same time; add --jitter full"
            );
            Some(Note::new("synchronized", text))
        }
        (false, true) => {
            let when = if delay.min.is_zero() {
                format!("within {} of", brief(delay.max))
            } else {
                format!("{} after", span(delay.min, delay.max))
            };
            let text = format!(
                "every client makes its first retry {when} a common failure; add --spread if many clients share a \
                 server"
            );
            Some(Note::new("first-retry", text))
        }
        (false, false) => None,
    }
}

/// Returns a note if the jitter can exceed the cap.
fn above_cap(forecast: &Forecast) -> Option<Note> {
    let cap = forecast.policy.cap()?;
    let most = forecast.rows.iter().map(|row| row.delay.max).max()?;
    if most <= cap {
        return None;
    }
    let (jitter, shown_cap, shown_most) = (forecast.policy.jitter(), brief(cap), brief(most));
    let text = format!("jitter {jitter} can exceed the cap of {shown_cap}: delays of up to {shown_most}");
    Some(Note::new("above-cap", text))
}

/// Returns a note if the cap is applied after the jitter, which synchronizes clients again.
fn at_cap(forecast: &Forecast) -> Option<Note> {
    let cap = forecast.policy.cap()?;
    if forecast.rows.iter().all(|row| row.delay.min == row.delay.max) {
        return None;
    }
    let row = forecast.rows.iter().find(|row| row.delay.p90 == cap)?;
    let (retry, longest, jitter) = (row.retry, brief(row.delay.max), forecast.policy.jitter());
    let text = format!(
        "from retry {retry} on, more than 10% of clients wait exactly {longest}: the cap is applied after jitter \
         {jitter}; \
         --jitter full draws within the cap"
    );
    Some(Note::new("at-cap", text))
}

/// Returns a note on the effect of the elapsed-time limit on the retries shown.
fn elapsed_limit(forecast: &Forecast, last: &Row) -> Option<Note> {
    let limit = forecast.policy.max_elapsed()?;
    let never = forecast.rows.iter().find(|row| row.elapsed.min > limit);
    let text = if let Some(row) = never {
        let reached = row.retry - 1;
        format!("max-elapsed {}: no call gets past retry {reached}", brief(limit))
    } else if last.elapsed.max > limit {
        let share = share_within(limit, &forecast.policy, last.retry)?;
        let (limit, share, retry) = (brief(limit), percent(share), last.retry);
        format!(
            "max-elapsed {limit}: {share} of calls that keep failing reach retry {retry}, fewer if attempts take time"
        )
    } else {
        return None;
    };
    Some(Note::new("max-elapsed", text))
}

/// Returns the share of calls that have waited at most `limit` up to a retry, to half a percent.
fn share_within(limit: Duration, policy: &Policy, retry: u32) -> Option<f64> {
    const STEPS: usize = 200;
    let shares = array::from_fn::<_, STEPS, _>(|step| (step as f64 + 0.5) / STEPS as f64);
    let quantiles = policy.elapsed_quantiles(retry, shares)?;
    Some(quantiles.partition_point(|waited| *waited <= limit) as f64 / STEPS as f64)
}

fn percent(share: f64) -> String {
    match share * 100.0 {
        p if p < 1.0 => "less than 1%".to_owned(),
        p if p > 99.0 => "more than 99%".to_owned(),
        p => format!("{p:.0}%"),
    }
}

fn truncated(forecast: &Forecast) -> Option<Note> {
    let shown = forecast.rows.len();
    let text = match forecast.shown {
        Shown::All => return None,
        Shown::FirstOf(all) => format!("showing the first {shown} of {all} retries; --retries {all} shows all"),
        Shown::FirstOfUnlimited => {
            format!("attempts are unlimited; showing the first {shown} retries; --retries N shows more")
        }
    };
    Some(Note::new("truncated", text))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn notes_on(policy: &str) -> Vec<(&'static str, String)> {
        let forecast = Forecast::new(policy.parse().unwrap(), None);
        notes(&forecast).into_iter().map(|note| (note.code, note.text)).collect()
    }

    fn codes(policy: &str) -> Vec<&'static str> {
        notes_on(policy).into_iter().map(|(code, _)| code).collect()
    }

    #[test]
    fn each_note_is_made_only_if_it_applies() {
        for (policy, want) in [
            ("exponential base=1s cap=30s", &["first-retry"][..]),
            ("exponential base=1s cap=30s spread=30s", &[]),
            ("exponential base=1s cap=30s jitter=none", &["synchronized"]),
            ("exponential base=1s cap=30s jitter=none spread=30s", &["synchronized"]),
            ("zero", &["no-delay"]),
            ("stop", &["no-retry"]),
            ("exponential max-attempts=1", &["no-retry"]),
            ("exponential spread=1s max-attempts=inf", &["truncated"]),
            ("exponential spread=1s max-attempts=100", &["truncated"]),
            ("exponential base=1s cap=2s jitter=±20% spread=1s", &["above-cap"]),
            ("exponential base=1s cap=30s jitter=±20% spread=1s max-attempts=3", &[]),
            ("socket.io spread=1s max-attempts=9", &["at-cap"]),
            ("socket.io spread=1s max-attempts=3", &[]),
            ("tenacity cap=60s spread=1s max-attempts=9", &["at-cap"]),
            ("aws-mqtt5 spread=1s max-attempts=9", &[]),
            ("exponential base=1s cap=30s spread=1s max-attempts=6 max-elapsed=20s", &["max-elapsed"]),
            ("exponential base=1s cap=30s spread=1s max-attempts=6 max-elapsed=32s", &[]),
        ] {
            assert_eq!(codes(policy), want, "{policy}");
        }
    }

    #[test]
    fn the_note_on_the_first_retry_has_its_time() {
        let text = |policy| notes_on(policy).swap_remove(0).1;
        assert!(text("exponential base=1s cap=30s").contains("within 1s of a common failure"));
        assert!(text("constant delay=4s").contains("2s–4s after a common failure"));
    }

    #[test]
    fn the_note_on_the_cap_has_the_first_affected_retry() {
        let note = notes_on("socket.io spread=1s max-attempts=9").swap_remove(0);
        assert_eq!(note.0, "at-cap");
        assert!(note.1.starts_with("from retry 3 on, more than 10% of clients wait exactly 5s"), "{}", note.1);
    }

    #[test]
    fn the_elapsed_time_limit_is_reported_as_a_share_of_calls() {
        let text = |policy: &str| notes_on(policy).into_iter().find(|(code, _)| *code == "max-elapsed").unwrap().1;
        let never = text("constant delay=10s jitter=none max-attempts=9 max-elapsed=35s");
        assert!(never.contains("no call gets past retry 3"), "{never}");
        // The distribution of the sum is symmetric, so half of the calls are within the limit.
        let half = text("exponential base=1s cap=30s max-attempts=6 max-elapsed=15500ms");
        let share = half.split(' ').find_map(|word| word.strip_suffix('%')).unwrap();
        assert!((49..=51).contains(&share.parse().unwrap()), "{half}");
    }
}
