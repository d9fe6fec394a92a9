//! The presets of close codes, which the client in JavaScript has, too.

use std::path::Path;
use std::{env, fs};

use serde_json::{Value, json};
use stagger_ws::codes::{CloseAction, CloseCodes, centrifugo, discord, graphql_ws, pusher, rfc6455};

/// What close frames mean in each preset, without a reason: one row for each run of codes with the same action.
fn runs(name: &str, codes: &CloseCodes) -> Vec<Value> {
    let mut runs: Vec<(u16, u16, Value)> = Vec::new();
    for code in 1000..=4999 {
        let action = shown(codes.action(code, ""));
        match runs.last_mut() {
            Some((_, last, of_run)) if *of_run == action => *last = code,
            _ => runs.push((code, code, action)),
        }
    }
    runs.into_iter().map(|(first, last, action)| json!([name, first, last, action])).collect()
}

/// Returns the name of an action, or the wait in milliseconds.
fn shown(action: CloseAction) -> Value {
    match action {
        CloseAction::End => json!("end"),
        CloseAction::Fatal => json!("fatal"),
        CloseAction::Reconnect => json!("reconnect"),
        CloseAction::ReconnectUnhealthy => json!("unhealthy"),
        CloseAction::Reauthenticate => json!("reauthenticate"),
        CloseAction::ReconnectWithin { from, to } => json!([from.as_millis(), to.as_millis()]),
        other => panic!("the client in JavaScript has no {other:?}"),
    }
}

fn rows(rows: &[Value]) -> String {
    rows.iter().map(|row| format!("    {row}")).collect::<Vec<_>>().join(",\n")
}

/// Compares the vectors of `clients/js` with the presets. After a change: `STAGGER_BLESS=1 cargo test -p stagger-ws
/// --all-features --test client close_codes`.
#[test]
fn the_vectors_of_the_client_in_javascript_are_those_of_the_presets() {
    let presets = [
        ("rfc6455", rfc6455()),
        ("graphqlWs", graphql_ws()),
        ("centrifugo", centrifugo()),
        ("pusher", pusher()),
        ("discord", discord()),
    ];
    let all: Vec<_> = presets.iter().flat_map(|(name, codes)| runs(name, codes)).collect();
    let reasons = [
        r#"{"reason":"x","reconnect":true}"#,
        r#"{"reason":"x","reconnect":false}"#,
        r#"{"reason":"x","reconnect":1}"#,
        r#"{"reason":"x"}"#,
        "null",
        "not json",
    ];
    let with_reasons: Vec<_> = reasons
        .iter()
        .flat_map(|reason| [1000, 1009, 1012, 3000, 3500, 4500].map(|code| (reason, code)))
        .map(|(reason, code)| json!(["centrifugo", code, reason, shown(centrifugo().action(code, reason))]))
        .collect();
    let text = format!("{{\n  \"runs\": [\n{}\n  ],\n  \"reasons\": [\n{}\n  ]\n}}\n", rows(&all), rows(&with_reasons));
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../clients/js/test/vectors/close-codes.json");
    if env::var_os("STAGGER_BLESS").is_some() {
        fs::write(&path, &text).unwrap();
    }
    assert_eq!(fs::read_to_string(&path).unwrap(), text, "run it again with STAGGER_BLESS=1");
}
