use std::{env, fs};

use stagger_core::Policy;
use stagger_core::text::{parse_count, parse_duration};
use stagger_lint::{DeploymentContext, Finding, check};

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
            "budget" => known.budget(value.parse().unwrap()),
            "backlog" => known.backlog(value.parse().unwrap()),
            "hint" => known.retry_after(length()),
            "down" => known.down(length()),
            _ => panic!("unknown key {key}"),
        }
    })
}

/// Returns the codes of all findings.
pub(crate) fn codes(policy: &Policy, context: &DeploymentContext) -> Vec<&'static str> {
    check(policy, context).iter().map(|finding| finding.rule().code()).collect()
}

/// Returns the finding of one rule, if it applies.
pub(crate) fn found(text: &str, words: &str, code: &str) -> Option<Finding> {
    check(&policy(text), &context(words)).into_iter().find(|finding| finding.rule().code() == code)
}

/// Returns the finding of a rule that applies.
#[track_caller]
pub(crate) fn finding(text: &str, words: &str, code: &str) -> Finding {
    found(text, words, code).unwrap_or_else(|| panic!("{code} does not apply to {text}, {words}"))
}

/// Asserts that a rule applies, with a fact that contains `want`.
#[track_caller]
pub(crate) fn assert_fact(text: &str, words: &str, code: &str, want: &str) {
    let finding = finding(text, words, code);
    assert!(finding.facts().iter().any(|fact| fact.contains(want)), "{code}, {text}: {:#?}", finding.facts());
}

/// Builds a context from optional numbers.
pub(crate) fn any_context_from(numbers: [Option<u32>; 11]) -> DeploymentContext {
    let purposes = ["interactive", "serverless", "background", "reconnecting", "near", "far"];
    let words: [(&str, &dyn Fn(u32) -> String); 11] = [
        ("clients", &|n| n.to_string()),
        ("capacity", &|n| format!("{n}/s")),
        // A low rate is fast to simulate.
        ("rps", &|n| format!("{}/s", n % 200 + 1)),
        ("for", &|n| purposes[n as usize % purposes.len()].to_owned()),
        ("deadline", &|n| format!("{n}ms")),
        ("lease", &|n| format!("{n}ms")),
        ("timeout", &|n| format!("{n}ms")),
        ("tick", &|n| format!("{}ms", n % 50)),
        ("layers", &|n| (n % 4 + 1).to_string()),
        ("idempotent", &|n| ["yes", "key", "no"][n as usize % 3].to_owned()),
        ("hint", &|n| format!("{n}ms")),
    ];
    let given = numbers.into_iter().zip(words).filter_map(|(n, (key, value))| Some(format!("{key}={}", value(n?))));
    context(&given.collect::<Vec<_>>().join(" "))
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
