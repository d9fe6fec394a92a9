//! Compares the pages of the reference with the code.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::{env, fs};

use stagger::profile::Profile;
use stagger::{DelaySource, Jitter, Policy, Ratio, StopReason};

const POLICY: &str = include_str!("../../../../docs/reference/policy.md");
const EVENTS: &str = include_str!("../../../../docs/reference/events.md");
const HEADERS: &str = include_str!("../../../../docs/reference/headers.md");
const ENVIRONMENT: &str = include_str!("../../../../docs/reference/environment.md");

/// The settings, as the parser has them.
const SETTINGS: &str = include_str!("../../../../crates/stagger-core/src/text/policy.rs");

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).ancestors().nth(2).unwrap().to_owned()
}

/// Returns the cells of each row of the table with this header.
fn rows<'a>(page: &'a str, header: &str) -> Vec<Vec<&'a str>> {
    let (_, table) = page.split_once(header).unwrap_or_else(|| panic!("no table {header:?}"));
    let rows = table.lines().skip(2).take_while(|line| line.starts_with('|'));
    rows.map(|row| row.trim_matches('|').split('|').map(str::trim).collect()).collect()
}

/// Returns the code spans of a text.
fn spans(text: &str) -> impl Iterator<Item = &str> {
    text.split('`').skip(1).step_by(2)
}

#[test]
fn the_page_has_every_setting_with_its_other_names() {
    let names = |text: &'static str| text.split('"').skip(1).step_by(2).map(str::to_owned).collect::<BTreeSet<_>>();
    let (_, keys) = SETTINGS.split_once("const KEYS").unwrap();
    let keys = keys.split_once("];").unwrap().0.lines().filter(|line| line.trim().starts_with("(Key::"));
    let parsed: BTreeSet<_> = keys.map(names).collect();
    let page = rows(POLICY, "| key | also |").into_iter();
    let listed = page.map(|row| spans(row[0]).chain(spans(row[1])).map(str::to_owned).collect()).collect();
    assert_eq!(parsed, listed);
}

/// What is at its default is not printed.
#[test]
fn the_defaults_on_the_page_are_those_of_an_empty_policy() {
    let printed = |text: &str| text.parse::<Policy>().unwrap().to_string();
    let all = "exponential base=100ms cap=30s multiplier=2 jitter=full max-attempts=4";
    assert_eq!(printed("exponential"), all);
    for default in ["floor=0s", "spread=0s", "max-elapsed=inf", "max-hint=5m", "hint=at-least", "stable-after=inf"] {
        assert_eq!(printed(&format!("exponential {default}")), all, "{default}");
    }
    let empty: Policy = "exponential".parse().unwrap();
    assert_eq!(empty.hint_spread(), Ratio::percent(50));
    assert_eq!(printed("linear"), printed("linear base=100ms step=100ms cap=30s jitter=full"));
    assert_eq!(printed("constant base=1s"), printed("constant base=1s jitter=equal"));
    assert_eq!(printed("list delays=1s"), printed("list delays=1s jitter=equal"));
}

#[test]
fn each_backoff_and_jitter_on_the_page_parses() {
    for row in rows(POLICY, "| backoff | ceiling of retry *n* |") {
        let backoff = spans(row[0]).next().unwrap();
        let given = match backoff {
            "constant" => " base=1s",
            "uniform" => " range=1s..2s",
            "list" => " delays=1s,2s",
            _ => "",
        };
        assert!(format!("{backoff}{given}").parse::<Policy>().is_ok(), "{backoff}");
        assert_eq!(backoff.parse::<Policy>().is_ok(), row[2] == "–", "{backoff}");
    }
    for row in rows(POLICY, "| jitter | interval |") {
        for jitter in spans(row[0]) {
            assert!(jitter.parse::<Jitter>().is_ok(), "{jitter}");
        }
    }
}

#[test]
fn the_page_has_every_stop_reason_with_its_sentence_and_every_source() {
    let listed: Vec<_> = rows(EVENTS, "| reason | in an error message |")
        .into_iter()
        .map(|row| (spans(row[0]).next().unwrap().to_owned(), row[1].to_owned()))
        .collect();
    let all: Vec<_> = StopReason::ALL.iter().map(|reason| (reason.name().to_owned(), reason.to_string())).collect();
    assert_eq!(listed, all);
    let listed = rows(EVENTS, "| source | meaning |").into_iter().map(|row| spans(row[0]).next().unwrap());
    assert!(listed.eq(DelaySource::ALL.iter().map(|source| source.name())));
}

/// Returns the texts that begin with `start` and end before `end`, in the sources of these crates.
fn in_sources(crates: &[&str], start: &str, end: fn(char) -> bool) -> BTreeMap<String, PathBuf> {
    let mut found = BTreeMap::new();
    let mut directories: Vec<_> = crates.iter().map(|name| root().join(name).join("src")).collect();
    while let Some(directory) = directories.pop() {
        for path in fs::read_dir(directory).unwrap().map(|entry| entry.unwrap().path()) {
            if path.is_dir() {
                directories.push(path);
            } else if path.extension().is_some_and(|extension| extension == "rs") {
                let text = fs::read_to_string(&path).unwrap();
                let parts = text.split(start).skip(1).map(|part| part.split(end).next().unwrap_or_default());
                found.extend(parts.map(|part| (part.to_owned(), path.clone())));
            }
        }
    }
    found
}

#[test]
fn the_page_has_every_header_that_the_sources_name() {
    let named = in_sources(&["crates/stagger-http", "crates/stagger-ws"], "HeaderName::from_static(\"", |c| c == '"');
    assert!(named.len() > 10);
    for (header, path) in named {
        assert!(HEADERS.contains(&format!("`{header}`")), "{header}, of {}", path.display());
    }
}

#[test]
fn the_page_has_every_variable_that_the_sources_name() {
    let crates = [
        "crates/stagger",
        "crates/stagger-sim",
        "crates/stagger-terminal",
        "lab/stagger-drill",
        "lab/stagger-lab",
        "lab/stagger-lint",
        "program/stagger-cli",
    ];
    let named = in_sources(&crates, "STAGGER_", |c| !c.is_ascii_uppercase() && c != '_');
    assert!(named.len() > 5);
    for (variable, path) in named.into_iter().filter(|(variable, _)| !variable.is_empty()) {
        assert!(ENVIRONMENT.contains(&format!("`STAGGER_{variable}`")), "STAGGER_{variable}, of {}", path.display());
    }
}

#[test]
fn each_profile_on_the_page_about_languages_exists() {
    const LANGUAGES: &str = include_str!("../../../../docs/guide/languages.md");
    let named: Vec<_> = rows(LANGUAGES, "| language |").into_iter().flat_map(|row| spans(row[1])).collect();
    assert!(named.len() > 8);
    for name in named {
        assert!(Profile::named(name).is_some(), "{name}");
    }
}

/// Writes the page of profiles.
fn profiles() -> String {
    let read_on = Profile::all().next().map(|profile| profile.read_on()).unwrap_or_default();
    let mut page =
        "# Profiles\n\nThe named policies: what each system does by default, and not what we recommend. Vary \
                    one with `stagger plan 'aws-sdk max-attempts=5'`.\nThis page is generated: \
                    `STAGGER_BLESS=1 cargo test -p stagger-guide`.\n\n"
            .to_owned();
    page += &format!("| name | system | policy | read in, {read_on} |\n|---|---|---|---|\n");
    for profile in Profile::all() {
        let (name, system) = (profile.name(), format!("{} {}", profile.title(), profile.version()));
        let is_ours = profile.title().starts_with("stagger,");
        let mut source = if is_ours { "–" } else { profile.source() }.to_owned();
        if profile.read_on() != read_on {
            source += &format!(", {}", profile.read_on());
        }
        page += &format!("| `{name}` | {} | `{}` | {source} |\n", system.trim_end(), profile.policy());
    }
    page
}

/// After a change: `STAGGER_BLESS=1 cargo test -p stagger-guide reference`.
#[test]
fn the_page_of_profiles_is_that_of_the_registry() {
    let path = root().join("docs/reference/profiles.md");
    if env::var_os("STAGGER_BLESS").is_some() {
        fs::write(&path, profiles()).unwrap();
    }
    let page = fs::read_to_string(path).unwrap();
    for (at, (is, should)) in page.lines().zip(profiles().lines()).enumerate() {
        assert_eq!(is, should, "line {}", at + 1);
    }
    assert_eq!(page, profiles());
}
