//! What the rules find in the default policies of clients that keep a connection up.

use stagger_core::{profile, profile::Profile};
use stagger_lint::{Finding, Severity, check, fix};

use super::support::{codes, context};

/// The fleet of the table in "Choosing a strategy".
const FLEET: &str = "for=reconnecting clients=10k capacity=500/s";

/// The clients, and the rules that find something.
const CLIENTS: [(Profile, &str); 17] = [
    (profile::RECONNECTING_WEBSOCKET, "S002 S004"),
    (profile::PARTYSOCKET, "S001 S004 S006"),
    (profile::SOCKET_IO, "S002 S004 S006 S015 S022"),
    (profile::PHOENIX, "S001 S004 S015 S022"),
    (profile::CENTRIFUGE, "S004 S015"),
    (profile::SIGNALR, "S001 S003 S004 S015 S023"),
    (profile::GRAPHQL_WS, "S004 S005 S015 S023"),
    (profile::WEBSOCKETS, "S001 S003 S004 S007 S015"),
    (profile::STABLE_SOCKET, "S004 S005 S015"),
    (profile::PUSHER, "S001 S004 S018 S022"),
    (profile::ABLY, "S003 S004 S015"),
    (profile::AWS_MQTT5, "S003 S004 S007"),
    (profile::ASYNC_NATS, "S001 S003 S004 S015 S022"),
    (profile::EZSOCKETS, "S001 S003 S004 S015 S022"),
    (profile::STUBBORN_IO, "S002 S004 S007 S015"),
    (profile::STREAM_TUNGSTENITE, "S003 S004 S015"),
    (profile::MCP_SDK, "S001 S004 S015 S023"),
];

#[test]
fn each_client_has_the_findings_of_its_defaults() {
    let fleet = context(FLEET);
    for (profile, want) in &CLIENTS {
        assert_eq!(codes(&profile.policy(), &fleet).join(" "), *want, "{}", profile.name());
    }
}

#[test]
fn every_client_that_reconnects_is_among_them() {
    let named = |profile: &Profile| CLIENTS.iter().any(|(client, _)| client.name() == profile.name());
    let jitters = Profile::all().filter(|profile| profile.policy().stable_after().is_some() && !named(profile));
    // Ours, and Kubernetes, which restarts containers.
    assert_eq!(jitters.map(Profile::name).collect::<Vec<_>>(), ["kubernetes", "web-socket"]);
}

#[test]
fn all_clients_can_be_fixed() {
    let fleet = context(FLEET);
    for (profile, _) in &CLIENTS {
        let left = check(&fix(&profile.policy(), &fleet, &[]), &fleet);
        // A note that is left has no change that makes nothing worse.
        let is_left =
            |finding: &Finding| finding.rule().severity() == Severity::Note && finding.suggestion().policy().is_none();
        assert!(left.iter().all(is_left), "{}: {left:#?}", profile.name());
    }
}
