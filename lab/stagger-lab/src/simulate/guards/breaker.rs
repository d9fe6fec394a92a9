//! The circuit breaker.

use std::sync::Arc;

use stagger_core::breaker::{CircuitBreaker, Window};
use stagger_core::{Policy, Seed};
use stagger_report::parse;

use super::words::{Words, count, ratio};
use super::{AddGuard, Kind};

pub(super) const BREAKER: Kind = Kind {
    keyword: "breaker",
    settings: &[
        "consecutive",
        "failure-ratio",
        "slow-ratio",
        "slow-after",
        "window",
        "min-calls",
        "open",
        "probes",
        "healthy-probes",
        "probe-wait",
    ],
    build: breaker,
};

fn breaker(words: &mut Words<'_>) -> Result<AddGuard, String> {
    let consecutive = words.take("consecutive", count)?;
    let failure_ratio = words.take("failure-ratio", ratio)?;
    let slow = match (words.take("slow-after", parse::duration)?, words.take("slow-ratio", ratio)?) {
        (Some(after), Some(ratio)) => Some((after, ratio)),
        (None, None) => None,
        (None, Some(_)) => return Err(words.wrong("slow-ratio needs slow-after: the length from which a call is slow")),
        (Some(_), None) => {
            return Err(words.wrong("slow-after needs slow-ratio: the share of slow calls that trips it"));
        }
    };
    let window = words.take("window", |text| match count(text) {
        Ok(calls) => Ok(Window::Calls(calls)),
        Err(_) => parse::duration(text).map(Window::Time),
    })?;
    let min_calls = words.take("min-calls", count)?;
    let open = words.take("open", policy)?;
    let probes = words.take("probes", count)?;
    let healthy_probes = words.take("healthy-probes", count)?;
    let probe_wait = words.take("probe-wait", parse::duration)?;
    // Without a rule of its own it has that of the default breaker.
    let has_ratio = failure_ratio.is_some() || slow.is_some();
    let consecutive = if consecutive.is_none() && !has_ratio { Some(5) } else { consecutive };
    let build = move |seed| {
        let mut builder = CircuitBreaker::builder(seed);
        if let Some(failures) = consecutive {
            builder = builder.consecutive(failures);
        }
        if let Some(ratio) = failure_ratio {
            builder = builder.failure_ratio(ratio);
        }
        if let Some((after, ratio)) = slow {
            builder = builder.slow_ratio(after, ratio);
        }
        if let Some(window) = window {
            builder = builder.window(window);
        }
        if let Some(calls) = min_calls {
            builder = builder.min_calls(calls);
        }
        if let Some(policy) = open {
            builder = builder.open(policy);
        }
        if let Some(probes) = probes {
            builder = builder.probes(probes);
        }
        if let Some(probes) = healthy_probes {
            builder = builder.healthy_probes(probes);
        }
        if let Some(longest) = probe_wait {
            builder = builder.probe_wait(longest);
        }
        builder.build()
    };
    build(Seed::new(0)).map_err(|error| words.wrong(&error.to_string()))?;
    Ok(Arc::new(move |process, seed| match build(seed) {
        Ok(breaker) => process.breaker(breaker),
        // The settings are valid, as the call above has shown; they do not depend on the seed.
        Err(_) => process,
    }))
}

/// Parses a policy, which is in parentheses if it has settings.
fn policy(text: &str) -> Result<Policy, String> {
    let inner = text.strip_prefix('(').and_then(|text| text.strip_suffix(')')).unwrap_or(text).trim();
    if inner.is_empty() {
        return Err("the policy is empty; write one such as (constant base=5s)".to_owned());
    }
    inner.parse().map_err(|error: stagger_core::text::ParseError| error.to_string())
}
