use core::num::{NonZeroU32, NonZeroU64};
use core::time::Duration;
use std::{env, fs};

use stagger_core::Policy;
use stagger_core::text::parse_duration;
use stagger_sim::lint::{Budgeted, DeploymentContext, Finding, Rate, check, parse_count};

#[track_caller]
pub(crate) fn policy(text: &str) -> Policy {
    text.parse().unwrap_or_else(|error| panic!("{text}: {error}"))
}

/// Parses a context from text: `for=reconnecting clients=10k capacity=500/s`.
#[track_caller]
pub(crate) fn context(text: &str) -> DeploymentContext {
    text.split_whitespace().fold(DeploymentContext::default(), |known, word| {
        let (key, value) = word.split_once('=').unwrap();
        let length = || parse_duration(value).unwrap().unwrap();
        match key {
            "for" => known.purpose(value.parse().unwrap()),
            "clients" => known.clients(parse_count(value).unwrap()),
            "capacity" => known.capacity(value.parse().unwrap()),
            "rps" => known.requests(value.parse().unwrap()),
            "deadline" => known.deadline(length()),
            "lease" => known.lease(length()),
            "invocation" => known.invocation(length()),
            "timeout" => known.attempt_timeout(length()),
            "tick" => known.tick(length()),
            "layers" => known.layers(value.parse().unwrap()),
            "idempotent" => known.idempotency(value.parse().unwrap()),
            "budget" => known.budget(if value == "yes" { Budgeted::Yes } else { Budgeted::No }),
            "hint" => known.retry_after(length()),
            _ => panic!("unknown key {key}"),
        }
    })
}

/// Returns the codes of all findings.
pub(crate) fn codes(policy: &Policy, context: &DeploymentContext) -> Vec<&'static str> {
    check(policy, context).iter().map(|finding| finding.rule().code()).collect()
}

/// Returns the finding of one rule.
pub(crate) fn found(text: &str, words: &str, code: &str) -> Option<Finding> {
    check(&policy(text), &context(words)).into_iter().find(|finding| finding.rule().code() == code)
}

/// Builds a context from optional numbers.
pub(crate) fn any_context_from(numbers: [Option<u32>; 11]) -> DeploymentContext {
    let [clients, capacity, requests, purpose, deadline, lease, timeout, tick, layers, idempotent, hint] = numbers;
    let purposes = ["interactive", "serverless", "background", "reconnecting", "near", "far"];
    let millis = |n: u32| Duration::from_millis(u64::from(n));
    let rate = |n: u32| Rate::per_second(f64::from(n)).unwrap();
    let mut known = DeploymentContext::default();
    if let Some(n) = clients {
        known = known.clients(NonZeroU64::new(u64::from(n)).unwrap());
    }
    if let Some(n) = capacity {
        known = known.capacity(rate(n));
    }
    if let Some(n) = requests {
        known = known.requests(rate(n));
    }
    if let Some(n) = purpose {
        known = known.purpose(purposes[n as usize % purposes.len()].parse().unwrap());
    }
    if let Some(n) = deadline {
        known = known.deadline(millis(n));
    }
    if let Some(n) = lease {
        known = known.lease(millis(n));
    }
    if let Some(n) = timeout {
        known = known.attempt_timeout(millis(n));
    }
    if let Some(n) = tick {
        known = known.tick(millis(n % 50));
    }
    if let Some(n) = layers {
        known = known.layers(NonZeroU32::new(n % 4 + 1).unwrap());
    }
    if let Some(n) = idempotent {
        known = known.idempotency(["yes", "key", "no"][n as usize % 3].parse().unwrap());
    }
    if let Some(n) = hint {
        known = known.retry_after(millis(n));
    }
    known
}

/// Asserts that a page is up to date; rewrites it if `STAGGER_BLESS` is set.
#[track_caller]
pub(crate) fn published(path: &str, now: &str) {
    if env::var_os("STAGGER_BLESS").is_some() {
        fs::write(path, now).unwrap();
    }
    let page = fs::read_to_string(path).unwrap();
    let (page, now): (Vec<&str>, Vec<&str>) = (page.lines().collect(), now.lines().collect());
    let differs = page.iter().zip(&now).position(|(page, now)| page != now);
    if let Some(at) = differs.or((page.len() != now.len()).then_some(page.len().min(now.len()))) {
        let (was, now) = (page.get(at), now.get(at));
        panic!("{path}, line {}: {was:?} should be {now:?}; see the documentation of this test", at + 1);
    }
}
