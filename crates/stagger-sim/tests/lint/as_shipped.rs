//! The page of the guide about clients as they are shipped.

use core::fmt::Write as _;

use stagger_core::{profile, profile::Profile};
use stagger_sim::lint::{Circumstances, Finding, findings, mended};

use super::support::{circumstances, published};

const PAGE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/guide/as-shipped.md");

/// The fleet of the table in "Choosing a strategy".
const FLEET: &str = "for=reconnecting clients=10k capacity=500/s";

const CLIENTS: [Profile; 16] = [
    profile::RECONNECTING_WEBSOCKET,
    profile::PARTYSOCKET,
    profile::SOCKET_IO,
    profile::PHOENIX,
    profile::CENTRIFUGE,
    profile::SIGNALR,
    profile::GRAPHQL_WS,
    profile::WEBSOCKETS,
    profile::STABLE_SOCKET,
    profile::PUSHER,
    profile::ABLY,
    profile::AWS_MQTT5,
    profile::ASYNC_NATS,
    profile::EZSOCKETS,
    profile::STUBBORN_IO,
    profile::STREAM_TUNGSTENITE,
];

const HEAD: &str = "# Clients as they are shipped

What `stagger check` finds in the defaults of sixteen WebSocket and messaging clients, as they are when nobody sets anything:
for a fleet of 10,000 whose server takes 500 connections a second. The versions that were read are listed by
`stagger plan --profiles`; [the rules](check.md#the-rules) say what each code means, and `stagger check --explain CODE` at
length. This page is written by a test, which fails when it is no longer true:

```sh
STAGGER_BLESS=1 cargo test -p stagger-sim as_shipped
```

A finding is no judgement on a library: some of these clients are meant for a handful of connections, and most let you set
what is missing here. It says what happens to a server when ten thousand of them lose it at once.
";

fn found(profile: &Profile, fleet: &Circumstances) -> Vec<Finding> {
    findings(&profile.policy(), fleet)
}

/// The codes that any of them has, in order.
fn columns(fleet: &Circumstances) -> Vec<&'static str> {
    let mut codes: Vec<&str> =
        CLIENTS.iter().flat_map(|profile| found(profile, fleet)).map(|finding| finding.rule().code()).collect();
    codes.sort_unstable();
    codes.dedup();
    codes
}

fn page() -> String {
    let fleet = circumstances(FLEET);
    let columns = columns(&fleet);
    let mut page = HEAD.to_owned();
    let titles = columns.iter().map(|code| format!(" {code} |")).collect::<String>();
    let rules = columns.iter().map(|_| ":-:|").collect::<String>();
    writeln!(page, "\n## At a glance\n\n| client |{titles}\n|---|{rules}").unwrap();
    for profile in &CLIENTS {
        let codes: Vec<&str> = found(profile, &fleet).iter().map(|finding| finding.rule().code()).collect();
        let cells = columns.iter().map(|code| if codes.contains(code) { " ● |" } else { " |" }).collect::<String>();
        writeln!(page, "| [{}](#{}) |{cells}", profile.name(), anchor(profile.name())).unwrap();
    }
    writeln!(page, "\n| code | finding |\n|---|---|").unwrap();
    for code in &columns {
        let rule = stagger_sim::lint::Rule::named(code).unwrap();
        writeln!(page, "| {code} | {} |", rule.title()).unwrap();
    }
    for profile in &CLIENTS {
        let policy = profile.policy();
        writeln!(page, "\n## {}\n\n{}, read at {}:\n", profile.name(), profile.title(), profile.version()).unwrap();
        writeln!(page, "```text\n{policy}\n```\n").unwrap();
        for finding in found(profile, &fleet) {
            let facts = finding.facts().join("; ");
            writeln!(page, "- **{}** {}: {facts}", finding.rule().code(), finding.rule().title()).unwrap();
        }
        writeln!(page, "\nAll of it mended:\n\n```text\n{}\n```", mended(&policy, &fleet, &[])).unwrap();
    }
    page
}

/// As the web sites that show Markdown make it of a heading.
fn anchor(heading: &str) -> String {
    heading.chars().filter(|c| c.is_alphanumeric() || *c == '-').collect()
}

/// After a change: `STAGGER_BLESS=1 cargo test -p stagger-sim as_shipped`.
#[test]
fn the_committed_page_is_what_the_rules_find() {
    published(PAGE, &page());
}

#[test]
fn every_client_that_reconnects_is_on_the_page() {
    let named = |profile: &Profile| CLIENTS.iter().any(|client| client.name() == profile.name());
    let jitters = Profile::all().filter(|profile| profile.policy().stable_after().is_some() && !named(profile));
    // Ours, and Kubernetes, which restarts containers.
    assert_eq!(jitters.map(Profile::name).collect::<Vec<_>>(), ["kubernetes", "web-socket"]);
}

#[test]
fn each_of_them_can_be_mended() {
    let fleet = circumstances(FLEET);
    for profile in &CLIENTS {
        let left = findings(&mended(&profile.policy(), &fleet, &[]), &fleet);
        assert!(left.is_empty(), "{}: {left:#?}", profile.name());
    }
}
