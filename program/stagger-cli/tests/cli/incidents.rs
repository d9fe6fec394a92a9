//! Tests of `stagger simulate @incident`.

use std::path::Path;
use std::{env, fs};

use crate::simulate::{said, simulate};
use crate::support::{Files, see};

const PAGE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/guide/incidents.md");
const PICTURES: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/guide/incidents");

/// The line after which the page is what the command prints.
const WRITTEN: &str = "<!-- Written by the command above; a test compares them. -->\n\n";

/// After a change: `STAGGER_BLESS=1 cargo test -p stagger-cli incidents`.
#[test]
fn the_page_and_its_pictures_are_what_the_command_writes() {
    let files = Files::new();
    let command = ["@incident", "--md", "--svg", "incidents"];
    let text = said(simulate(&command).current_dir(files.path(".")));
    let page = fs::read_to_string(PAGE).expect("the page is read");
    let (own, written) = page.split_once(WRITTEN).expect("the page says where the command's part begins");
    assert!(own.contains(&format!("stagger simulate {}", command.join(" "))), "the page names the command");
    let mut pictures: Vec<_> =
        fs::read_dir(files.path("incidents")).expect("pictures").map(|file| file.unwrap().path()).collect();
    pictures.sort();
    assert_eq!(pictures.len(), 8);
    if env::var_os("STAGGER_BLESS").is_some() {
        fs::write(PAGE, format!("{own}{WRITTEN}{text}")).expect("the page is written");
        fs::create_dir_all(PICTURES).expect("the directory of the pictures");
        for picture in &pictures {
            fs::copy(picture, Path::new(PICTURES).join(picture.file_name().unwrap())).expect("the picture is written");
        }
        return;
    }
    for (at, (is, should)) in written.lines().zip(text.lines()).enumerate() {
        assert_eq!(is, should, "line {} of the written part", at + 1);
    }
    assert_eq!(written, text);
    for picture in &pictures {
        let name = picture.file_name().unwrap();
        let is = fs::read_to_string(Path::new(PICTURES).join(name)).unwrap_or_default();
        assert!(is == fs::read_to_string(picture).unwrap(), "{} differs from the command's", name.display());
        assert!(text.contains(&format!("](incidents/{})", name.display())), "the page shows {}", name.display());
    }
    // Without its cure, each system stays down; with it, none does.
    assert_eq!(text.matches("| verdict | still down at the horizon with 4 of 4 seeds | ").count(), 6);
    assert_eq!(
        text.matches(" | never fell with 4 of 4 seeds |").count()
            + text.matches(" | recovered with 4 of 4 seeds, ").count(),
        6
    );
    assert_eq!(text.matches(", the most that the model allows | none |").count(), 2);
}

#[test]
fn an_incident_says_what_is_known_and_what_became_of_it_without_and_with_its_cure() {
    let text = said(&mut simulate(&["system", "@incident/hotos-2021-retries", "--seeds=1"]));
    for part in [
        "source: https://",
        "published: ",
        "assumed: ",
        "not in the model: ",
        "without the cure\n  verdict: still down at the horizon, since 20s\n",
        "    + stale = \"hopeless\"\n    + budget = { tokens = 10, refund = 0.1 }\n",
        "  verdict: recovered, 0s after the trigger\n",
    ] {
        assert!(text.contains(part), "{part}\n{text}");
    }
    assert_eq!(text, said(&mut simulate(&["@incident/hotos-2021-retries", "--seeds=1"])));
    for columns in ["40", "120"] {
        let text = said(simulate(&["@incident/cloudflare-2025-09", "--seeds=1"]).env("COLUMNS", columns));
        let most: usize = columns.parse().unwrap();
        // Addresses cannot be broken.
        let long = text.lines().find(|line| line.chars().count() > most && !line.contains("https://"));
        assert_eq!(long, None);
    }
}

#[test]
fn a_printed_file_is_run_like_the_incident() {
    let files = Files::new();
    for (part, verdict) in [("failure", "verdict: still down"), ("cure", "verdict: never fell")] {
        let name = format!("@incident/cloudflare-2025-09/{part}");
        let printed = said(&mut simulate(&[&name, "--print"]));
        assert!(
            printed.starts_with("# Cloudflare: ") && printed.contains("# Run it: stagger simulate system FILE\n"),
            "{printed}"
        );
        let path = files.write("system.toml", &printed);
        let of_file = said(&mut simulate(&["system", path.to_str().unwrap()]));
        assert!(of_file.contains(verdict), "{of_file}");
        let [of_file, by_name] = [of_file, said(&mut simulate(&[&name]))]
            .map(|text| text.split_once("\n\n").map(|(_, rest)| rest.to_owned()));
        assert_eq!(of_file, by_name, "all but the name of the file");
    }
    assert_eq!(
        said(&mut simulate(&["@incident/aws-2025-10", "--print"])),
        said(&mut simulate(&["@incident/aws-2025-10/failure", "--print"]))
    );
    let printed = said(&mut simulate(&["@incident/kubernetes-87794/cure", "--print"]));
    let path = files.write("storm.toml", &printed);
    let figures = |args: &[&str]| said(simulate(args).arg("--csv"));
    let (of_file, by_name) =
        (figures(&["--file", path.to_str().unwrap()]), figures(&["@incident/kubernetes-87794/cure"]));
    assert_eq!(of_file, by_name);
    assert!(by_name.starts_with("strategy,"), "{by_name}");
}

#[test]
fn one_file_of_an_incident_takes_the_flags_of_its_scenario() {
    let cure = "@incident/hotos-2021-retries/cure";
    let json = said(&mut simulate(&[cure, "--json"]));
    assert!(json.contains("\"schema\":\"stagger.system/1\"") && json.contains(cure), "{}", &json[..200]);
    see(&mut simulate(&[cure, "--assert", "recovery<=1s,metastable=no"])).exits(0);
    see(&mut simulate(&["@incident/hotos-2021-retries/failure", "--assert", "metastable=no"]))
        .exits(1)
        .says("assertion failed");
    see(&mut simulate(&["@incident/kubernetes-87794/cure", "--seed", "7", "--assert", "crashes<1"])).exits(0);
}

#[test]
fn unknown_incidents_and_flags_are_reported_with_a_remedy() {
    for (args, want) in [
        (
            &["@incident/awz-2025-10"][..],
            "`awz-2025-10` is not a published incident; did you mean @incident/aws-2025-10?\nincidents: \
             discord-2026-03, ",
        ),
        (&["@incident/slack"], "did you mean @incident/slack-2022-02?"),
        (&["@incident/slack-2022-02/fix"], "use @incident/slack-2022-02/failure or @incident/slack-2022-02/cure"),
        (&["system", "@incident/weather"], "`weather` is not a published incident\nincidents: "),
        (&["@outage"], "`@outage` is not a scenario; use @incident for the published incidents"),
        (&["@incident", "--print"], "--print: name an incident, as in: stagger simulate @incident/aws-2025-10 --print"),
        (&["outage", "--print"], "--print is for incidents; use: stagger simulate @incident/NAME --print"),
        (
            &["@incident/aws-2025-10", "--rate=5"],
            "--rate cannot be used with @incident/aws-2025-10, whose settings are all in its file",
        ),
        (&["@incident/aws-2025-10", "-n", "5"], "policy flags cannot be used with @incident/aws-2025-10"),
        (
            &["@incident/aws-2025-10", "--json"],
            "--json is for one of the two files of an incident; use @incident/aws-2025-10/failure or",
        ),
        (
            &["@incident", "--find=rate"],
            "--find is for one of the two files of an incident; use @incident/NAME/failure or",
        ),
        (
            &["@incident/aws-2025-10", "x.toml"],
            "`x.toml` follows @incident/aws-2025-10, which has a file of its own; remove it",
        ),
    ] {
        see(&mut simulate(args)).exits(2).says(want);
    }
}
