use serde_json::{Value, json};
use stagger_core::Policy;

use super::delays::PROFILES;
use crate::shell::Result;

/// Texts of policies, right and wrong: one in a line, the first of them empty.
const TEXTS: &str = include_str!("policies.txt");

/// Texts with white space that a file would hide.
const SPACES: [&str; 3] =
    [" exponential \u{2003} base=1s\u{a0}cap=2s\n", "exponential\u{85}base=1s", "exponential\u{feff}base=1s"];

/// Documents of JSON, right and wrong.
const DOCUMENTS: &[&str] = &[
    r#""web-socket""#,
    r#"{}"#,
    r#"{"backoff":"exponential","base":"500ms","cap":"30s","multiplier":2,"max-attempts":8}"#,
    r#"{"base":5,"jitter":0.2}"#,
    r#"{"base":0.25,"jitter":"±20%"}"#,
    r#"{"backoff":"list","delays":["1s",2,"5s"]}"#,
    r#"{"backoff":"list","delays":[1,[2,3]]}"#,
    r#"{"backoff":"list","delays":[]}"#,
    r#"{"backoff":"1s..5s"}"#,
    r#"{"backoff":"web-socket","spread":"30s"}"#,
    r#"{"backoff":"web-socket","max-attempts":"inf"}"#,
    r#"{"bas":"1s"}"#,
    r#"{"max-retries":3}"#,
    r#"{"base":true}"#,
    r#"{"base":null}"#,
    r#"{"base":{}}"#,
    r#"{"base":"1s","delay":"2s"}"#,
    r#"{"base":1e21}"#,
    r#"{"base":-1}"#,
    r#"{"multiplier":1.5}"#,
    r#"{"backoff":7}"#,
    "7",
    "7.5",
    "true",
    "null",
    "[]",
    r#""exponential base=x""#,
];

/// Returns the canonical text and the JSON of each policy, or the message of its error.
pub(super) fn vectors() -> Result<Value> {
    let texts = TEXTS
        .lines()
        .chain(SPACES)
        .chain(PROFILES)
        .map(|text| row(text, text.parse().map_err(|error| format!("{error}"))));
    let long = format!(r#"{{"base":"{}"}}"#, "1".repeat(600));
    let documents = DOCUMENTS.iter().copied().chain([&*long]).map(|document| {
        let policy = serde_json::from_str(document).map_err(|error| {
            let text = error.to_string();
            // JavaScript parses the document before the policy, so there is no position.
            text.split_once(" at line ").map_or(text.clone(), |(message, _)| message.to_owned())
        });
        row(document, policy)
    });
    let (texts, documents): (Vec<_>, Vec<_>) = (texts.collect(), documents.collect());
    Ok(json!({ "texts": texts, "documents": documents }))
}

fn row(given: &str, policy: core::result::Result<Policy, String>) -> Value {
    match policy {
        Ok(policy) => json!({ "given": given, "canonical": policy.to_string(), "json": policy }),
        Err(error) => json!({ "given": given, "error": error }),
    }
}
