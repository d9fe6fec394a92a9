//! Tests of `examples/incidents` and of `stagger simulate system @incident/NAME`.

use std::fs;
use std::path::Path;

use crate::simulate::{json, said, simulate};
use crate::support::see;

const PAGE: &str = include_str!("../../../../docs/guide/simulate.md");
/// The files to which `examples/incidents` has links, which Git does not make everywhere.
const FILES: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../lab/stagger-lab/src/simulate/incidents");
const LINKS: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../examples/incidents");

/// Returns the names of the files in a directory, in order.
fn names(directory: &str) -> Vec<String> {
    let files = fs::read_dir(directory).expect("the directory is read");
    let mut names: Vec<_> =
        files.map(|file| file.expect("an entry").file_name().into_string().expect("a name in UTF-8")).collect();
    names.sort();
    names
}

/// Returns the line of a summary that begins with `name`, without it.
fn line<'a>(summary: &'a str, name: &str) -> &'a str {
    let found = summary.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(": "));
    found.unwrap_or_else(|| panic!("no line {name}: {summary}"))
}

#[test]
fn each_system_stays_down_without_its_cure_only_and_is_on_the_page() {
    let names = names(FILES);
    assert_eq!(names.len(), 12);
    assert_eq!(names, self::names(LINKS), "examples/incidents has a link to each file");
    for name in names {
        let path = Path::new(FILES).join(&name);
        let summary = said(&mut simulate(&["system", path.to_str().unwrap(), "--seeds=4"]));
        let verdict = line(&summary.replace("\n  ", " "), "verdict").to_owned();
        let stays_down = verdict == "still down with 4 of 4 seeds";
        assert_eq!(stays_down, !name.contains("-cure"), "{name}: {verdict}");
        let incident = name.trim_end_matches(".toml").trim_end_matches("-cure");
        assert!(PAGE.contains(&format!("| `@incident/{incident}` |")), "the page has {incident}");
    }
}

#[test]
fn a_mass_disconnect_crashes_the_server_again_without_its_cure_only() {
    let commands: Vec<_> = PAGE.split("```sh\nstagger simulate reconnect ").skip(1).collect();
    assert_eq!(commands.len(), 2);
    for command in commands {
        let command = command.split("```").next().unwrap().replace("\\\n", " ");
        let words = shlex::split(&command).unwrap();
        let words: Vec<_> = ["reconnect"].into_iter().chain(words.iter().map(String::as_str)).collect();
        let document = json(&said(simulate(&words).arg("--json")));
        let strategies = document["strategies"].as_array().unwrap();
        let crashes: Vec<_> =
            strategies.iter().map(|strategy| strategy["runs"][0]["crashes"].as_u64().unwrap()).collect();
        assert!(crashes.len() == 2 && crashes[0] > 0 && crashes[1] == 0, "{crashes:?}: {command}");
    }
}

#[test]
fn a_reference_runs_like_the_file_with_any_flag_of_a_system() {
    let file = format!("{FILES}/hotos-2021-retries-cure.toml");
    let rest = |args: &[&str]| said(&mut simulate(args)).split_once("\n\n").map(|(_, rest)| rest.to_owned());
    let of_file = rest(&["system", &file]);
    assert!(of_file.is_some());
    assert_eq!(of_file, rest(&["system", "@incident/hotos-2021-retries-cure"]), "all but the name of the file");
    let cure = "@incident/hotos-2021-retries-cure";
    let json = said(&mut simulate(&["system", cure, "--json"]));
    assert!(json.contains("\"schema\":\"stagger.system/1\"") && json.contains(cure), "{}", &json[..200]);
    see(&mut simulate(&["system", cure, "--assert", "recovery<=1s,metastable=no"])).exits(0);
    see(&mut simulate(&["system", "@incident/hotos-2021-retries", "--assert", "metastable=no"]))
        .exits(1)
        .says("assertion failed");
}

#[test]
fn unknown_incidents_and_flags_are_reported_with_a_remedy() {
    for (args, want) in [
        (
            &["system", "@incident/awz-2025-10"][..],
            "`awz-2025-10` is not a published incident; did you mean @incident/aws-2025-10?\nincidents: aws-2025-10, ",
        ),
        (&["system", "@incident/slack"], "did you mean @incident/slack-2022-02?"),
        (&["system", "@incident/weather"], "`weather` is not a published incident\nincidents: "),
        (&["system", "@outage"], "`@outage` is not a file; use @incident/NAME for a published incident"),
        (&["system", "@incident/aws-2025-10", "--rate=5"], "unexpected argument '--rate' found"),
        (&["system", "@incident/aws-2025-10", "-n", "5"], "unexpected argument '-n' found"),
        (&["@incident/aws-2025-10"], "name the scenario; use: stagger simulate system @incident/aws-2025-10"),
    ] {
        see(&mut simulate(args)).exits(2).says(want);
    }
}
